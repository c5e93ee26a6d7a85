package function

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/godelayed/delayed/internal/wire"
)

// TestStructsAmongArgumentsAreTold: encoding reports whether a payload has another form by position, wherever the
// struct is.
func TestStructsAmongArgumentsAreTold(t *testing.T) {
	item := argItem{"a", 1}
	for _, c := range []struct {
		fn   any
		args []any
		want bool
	}{
		{fnTwo, []any{1, "a"}, false},
		{fnStruct, []any{item}, true},
		{func(argItem, int) {}, []any{item, 1}, true},
		{func(int, argItem) {}, []any{1, item}, true},
		{func(int, ...argItem) {}, []any{1, item}, true},
		{func(argItem, ...int) {}, []any{item, 1, 2}, true},
		{fnAnys, []any{1, item, 2}, true},
		{fnAnys, []any{1, 2}, false},
	} {
		_, structs, err := namedFunction(t, c.fn).AppendPayload(wire.ByName, nil, c.args, nil)
		if err != nil || structs != c.want {
			t.Errorf("%T%v: found %v, %v, expected %v", c.fn, c.args, structs, err, c.want)
		}
		_, structs, err = EncodeArgs(wire.ByName, "test.fn", c.args, nil)
		if err != nil || structs != c.want {
			t.Errorf("by path %v: found %v, %v, expected %v", c.args, structs, err, c.want)
		}
	}
}

// TestContextAmongArguments: the error names the parameter for which a context was given.
func TestContextAmongArguments(t *testing.T) {
	f := namedFunction(t, func(int, string, ...bool) {})
	for i, want := range []string{"int", "string"} {
		args := []any{1, "a"}[:i]
		_, err := f.Encode(append(args, t.Context())[:1+i])
		var misfit *ArgumentError
		if !errors.As(err, &misfit) || misfit.Index != i || misfit.Want != want {
			t.Errorf("as argument %d: %v, expected one that wants a %s there", i+1, err, want)
		}
	}
}

// TestWhichArgumentDoesNotFit: errors count arguments as the caller does: those of a variadic parameter one by one, and
// the values of a list before it not at all.
func TestWhichArgumentDoesNotFit(t *testing.T) {
	bad := wireDict{{"Name", "a"}, {"N", 300}}
	for _, c := range []struct {
		fn      any
		payload any
		index   int
		want    string
	}{
		{func([]int8, ...string) {}, wireList{wireList{1, 300}, wireList{"a"}}, 0, "int8 at [1] of []int8"},
		{func([]int8, ...int8) {}, wireList{wireList{1}, wireList{1, 2, 300}}, 3, "int8"},
		{func(int, ...argItem) {}, wireList{1, wireList{bad}}, 1, "int8 at .N of function.argItem"},
		{func(int, argItem) {}, wireList{1, bad}, 1, "int8 at .N of function.argItem"},
	} {
		f := namedFunction(t, c.fn)
		_, err := f.Call(t.Context(), goMessage(t, "test.fn", packed(c.payload), noN))
		var misfit *ArgumentError
		if !errors.As(err, &misfit) || misfit.Index != c.index || misfit.Want != c.want {
			t.Errorf("%T: %v (%+v), expected argument %d to be %s", c.fn, err, misfit, c.index+1, c.want)
		}
	}
}

// TestArgsOf decodes the arguments of messages for a function, whatever path names it.
func TestArgsOf(t *testing.T) {
	f := mustFunction(t, Func(func(string, ...int) {}, Name("test.fn"), Alias("old.fn")))
	payload := packed(wireList{"a", wireList{1, 2}})
	for path, want := range map[string]string{
		"test.fn": "[a 1 2] true", "old.fn": "[a 1 2] true", "other.fn": "[] false",
	} {
		m := wire.Message{Kind: wire.GoPlain, Path: path, Payload: payload}
		args, ok, err := f.ArgsOf(m.Append(nil))
		if got := fmt.Sprint(args, " ", ok); err != nil || got != want {
			t.Errorf("%s: found %s, %v, expected %s", path, got, err, want)
		}
	}
	plain := mustFunction(t, fnTwo)
	m := wire.Message{Kind: wire.GoPlain, Path: plain.Path(), Payload: packed(wireList{1, "a"})}
	args, ok, err := plain.ArgsOf(m.Append(nil))
	if err != nil || !ok || !reflect.DeepEqual(args, []any{int64(1), "a"}) {
		t.Errorf("found %v, %v, %v", args, ok, err)
	}
	m.Payload = packed(wireList{1})
	if args, ok, err := plain.ArgsOf(m.Append(nil)); !errors.Is(err, ErrArguments) || !ok || args != nil {
		t.Errorf("of too few arguments: found %v, %v, %v", args, ok, err)
	}
	if args, ok, err := plain.ArgsOf([]byte("garbage")); err != nil || ok || args != nil {
		t.Errorf("of garbage: found %v, %v, %v", args, ok, err)
	}
}
