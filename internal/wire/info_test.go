package wire

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestInfoIsReadBack encodes and parses an Info with every field and one with none.
func TestInfoIsReadBack(t *testing.T) {
	at := time.UnixMilli
	whole := Info{
		Reason: "failed", Function: "a.f", Fields: []string{"1.A", "2[].B"}, Error: "no luck",
		Stack: "main.f\n\tf.go:1\n", Attempts: 3, Deaths: 2, At: at(1), FirstFailed: at(2), Worker: "w",
		Progress: Progress{Done: 4, Total: 5, Note: "half"}, Enqueued: at(6), Began: at(7), Result: []byte{0xc3},
		Message: []byte{0x90},
	}
	value := reflect.ValueOf(whole)
	for i := range value.NumField() {
		if value.Field(i).IsZero() {
			t.Errorf("the test lacks the field %s", value.Type().Field(i).Name)
		}
	}
	if got := ParseInfo(whole.Encode()); !reflect.DeepEqual(got, whole) {
		t.Errorf("found\n%+v, expected\n%+v", got, whole)
	}
	if b := new(Info).Encode(); !bytes.Equal(b, AppendMapHeader(nil, 0)) {
		t.Errorf("of nothing: found %x", b)
	}
	if got := ParseInfo([]byte("garbage")); !reflect.DeepEqual(got, Info{}) {
		t.Errorf("of garbage: found %+v", got)
	}
}

// TestTextsOfInfo: Encode keeps line feeds in stacks only, and cuts long texts at the end of a character.
func TestTextsOfInfo(t *testing.T) {
	const text = "a\nb\tc\x1b[1m\u2028\u00a0é"
	one, many := `a\nb\tc\x1b[1m\u2028`+"\u00a0é", "a\nb\tc"+`\x1b[1m\u2028`+"\u00a0é"
	i := Info{Function: text, Error: text, Stack: text, Progress: Progress{Note: text}}
	got := ParseInfo(i.Encode())
	if got.Function != one || got.Error != one || got.Stack != many || got.Progress.Note != one {
		t.Errorf("found %q, %q, %q and %q", got.Function, got.Error, got.Stack, got.Progress.Note)
	}
	if got := OneLine(one); got != one {
		t.Errorf("what has no control character became %q", got)
	}
	for text, want := range map[string]string{
		strings.Repeat("x", maxInfoText):         strings.Repeat("x", maxInfoText),
		strings.Repeat("x", maxInfoText+1):       strings.Repeat("x", maxInfoText),
		"x" + strings.Repeat("é", maxInfoText/2): "x" + strings.Repeat("é", maxInfoText/2-1),
	} {
		i := Info{Error: text, Stack: text, Progress: Progress{Note: text}}
		if got := ParseInfo(i.Encode()); got.Error != want || got.Stack != want || got.Progress.Note != want {
			t.Errorf("of %d bytes %d, %d and %d are kept, expected %d", len(text), len(got.Error), len(got.Stack),
				len(got.Progress.Note), len(want))
		}
	}
	fields := make([]string, MaxUnknownFields+1)
	i = Info{Fields: fields}
	if got := ParseInfo(i.Encode()); len(got.Fields) != MaxUnknownFields {
		t.Errorf("%d fields are read, expected %d", len(got.Fields), MaxUnknownFields)
	}
}
