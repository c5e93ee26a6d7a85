package function

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/wire"
)

// TestEncodeResult encodes what a function has returned, and nothing if middleware has not called it.
func TestEncodeResult(t *testing.T) {
	for _, c := range []struct {
		name  string
		fn    any
		value any
		want  []byte
	}{
		{"a value", fnResult, 4, wire.AppendInt(nil, 4)},
		{"a value and an error", fnBoth, 0, wire.AppendInt(nil, 0)},
		{"not called", fnResult, nil, nil},
		{"not called, a value and an error", fnBoth, nil, nil},
		{"an interface that is nil", func() any { return nil }, nil, wire.Nil},
		{"an interface", func() any { return "x" }, "x", wire.AppendString(nil, "x")},
		{"a pointer that is nil", func() *int { return nil }, (*int)(nil), wire.Nil},
		{"no result", fnNone, nil, nil},
		{"only an error", fnError, nil, nil},
	} {
		if b, err := namedFunction(t, c.fn).EncodeResult(c.value); err != nil || !bytes.Equal(b, c.want) {
			t.Errorf("%s: found %x, %v, expected %x", c.name, b, err, c.want)
		}
	}
}

// TestResultThatCannotTravel: a result that cannot be encoded is an error only if it must be kept, and the error names
// its function.
func TestResultThatCannotTravel(t *testing.T) {
	f := namedFunction(t, func() chan int { return nil })
	if f.NoResult == nil || !errors.Is(f.NoResult, ErrFunction) || !strings.Contains(f.NoResult.Error(), "test.fn") {
		t.Errorf("found %v", f.NoResult)
	}
	if b, err := f.EncodeResult(make(chan int)); b != nil || !errors.Is(err, ErrFunction) {
		t.Errorf("found %x, %v", b, err)
	}
	if f := namedFunction(t, fnResult); f.NoResult != nil {
		t.Errorf("an int cannot travel: %v", f.NoResult)
	}
}
