package function

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/wire"
)

// TestStructChanges checks the rules of docs/DEPLOYING.md: how a function of one version handles the calls of another.
func TestStructChanges(t *testing.T) {
	type (
		v1        struct{ First, Last string }
		reordered struct{ Last, First string }
		added     struct {
			First, Last string
			Age         int
		}
		removed struct{ First string }
		renamed struct{ Given, Last string }
		tagged  struct {
			Given string `msgpack:"First"`
			Last  string
		}
		optional struct {
			First string
			Last  *string
		}
		changed struct {
			First string
			Last  int
		}
		docs1 struct {
			ID    int64
			Count int
			Mail  string
		}
		docs2 struct {
			Note  string
			Items int `msgpack:"Count"`
			ID    int64
			Mail  *string
		}
		docs2WithoutNote struct {
			Items int `msgpack:"Count"`
			ID    int64
			Mail  *string
		}
		wider  struct{ N int64 }
		narrow struct{ N int8 }
		nested struct {
			ID   int
			Of   []v1
			ByID map[string]*v1
		}
		nestedAdded struct {
			ID   int
			Of   []added
			ByID map[string]*added
		}
	)
	ada := v1{"Ada", "Lovelace"}
	last := "Lovelace"
	more := added{First: "Ada", Last: "Lovelace"}
	for _, c := range []struct {
		name string
		sent any
		to   any    // a value of the parameter's type in the other version
		want any    // the expected argument; missing: it does not fit
		park string // the missing fields because of which the task is parked
	}{
		{"reordered", ada, reordered{}, reordered{"Lovelace", "Ada"}, ""},
		{"reordered, back", reordered{"Lovelace", "Ada"}, v1{}, ada, ""},
		{"added, old task", ada, added{}, more, ""},
		{"added, new task", added{"Ada", "Lovelace", 36}, v1{}, nil, "1.Age"},
		{"added, new task without a value", more, v1{}, nil, "1.Age"},
		{"removed, old task", ada, removed{}, nil, "1.Last"},
		{"removed, new task", removed{"Ada"}, v1{}, v1{First: "Ada"}, ""},
		{"renamed, old task", ada, renamed{}, nil, "1.First"},
		{"renamed, new task", renamed{"Ada", "Lovelace"}, v1{}, nil, "1.Given"},
		{"renamed with a tag, old task", ada, tagged{}, tagged{"Ada", "Lovelace"}, ""},
		{"renamed with a tag, new task", tagged{"Ada", "Lovelace"}, v1{}, ada, ""},
		{"made optional, old task", ada, optional{}, optional{"Ada", &last}, ""},
		{"made optional, new task", optional{"Ada", &last}, v1{}, ada, ""},
		{"made optional, new task with nil", optional{"Ada", nil}, v1{}, missing, ""},
		{"type changed, old task", ada, changed{}, missing, ""},
		{"type changed, new task", changed{"Ada", 1}, v1{}, missing, ""},
		{"type widened", narrow{5}, wider{}, wider{5}, ""},
		{"type narrowed, it fits", wider{5}, narrow{}, narrow{5}, ""},
		{"type narrowed, it does not fit", wider{500}, narrow{}, missing, ""},
		{"type changed and field added", struct{ First, Last, More any }{1, 2, 3}, v1{}, nil, "1.More"},
		{
			"inside, old task",
			nested{1, []v1{ada}, map[string]*v1{"a": &ada}},
			nestedAdded{},
			nestedAdded{1, []added{more}, map[string]*added{"a": &more}},
			"",
		},
		{
			"inside, new task",
			nestedAdded{1, []added{{}}, map[string]*added{"a": {}}},
			nested{},
			nil, "1.Of[].Age 1.ByID[].Age",
		},
		{"optional no more, old task", optional{"Ada", &last}, v1{}, ada, ""},
		{"optional no more, old task with nil", optional{"Ada", nil}, v1{}, missing, ""},
		{"the example, old task", docs1{1, 2, last}, docs2{}, docs2{Items: 2, ID: 1, Mail: &last}, ""},
		{"the example, new task", docs2{"n", 2, 1, &last}, docs1{}, nil, "1.Note"},
		{
			"the example, new task without the added field",
			docs2WithoutNote{2, 1, &last},
			docs1{},
			docs1{1, 2, last},
			"",
		},
		{"integer to float", struct{ N int }{5}, struct{ N float64 }{}, struct{ N float64 }{5}, ""},
		{"integer to float, not exact", struct{ N int64 }{1<<53 + 1}, struct{ N float64 }{}, missing, ""},
		{
			"another type of the same fields", ada,
			struct{ First, Last string }{},
			struct{ First, Last string }{"Ada", "Lovelace"},
			"",
		},
		{"pointer for a struct", ada, &v1{}, &ada, ""},
		{"struct for a pointer", &ada, v1{}, ada, ""},
		{"struct for a map", ada, map[string]string{}, map[string]string{"First": "Ada", "Last": "Lovelace"}, ""},
		{"map for a struct", map[string]string{"First": "Ada"}, v1{}, v1{First: "Ada"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			sender, receiver := functionOn(t, reflect.TypeOf(c.sent)), functionOn(t, reflect.TypeOf(c.to))
			payload, err := sender.Encode([]any{c.sent})
			if err != nil {
				t.Fatal(err)
			}
			m := goMessage(t, receiver.Path(), payload, noN)
			got, err := receiver.Call(t.Context(), m)
			if fields := strings.Join(receiver.UnknownFields(m), " "); fields != c.park {
				t.Errorf("unknown fields %q, expected %q", fields, c.park)
			}
			var wrong *ArgumentError
			switch {
			case c.want == missing || c.park != "":
				if !errors.As(err, &wrong) {
					t.Errorf("found %v, %v, expected an *misfitError", got, err)
				}
			case err != nil || !reflect.DeepEqual(got, c.want):
				t.Errorf("found %+v, %v, expected %+v", got, err, c.want)
			}
		})
	}
}

// TestFunctionChanges checks the rules of docs/DEPLOYING.md for functions.
func TestFunctionChanges(t *testing.T) {
	type call struct{ args []any }
	ran := func(args ...any) call { return call{args} }
	var got call
	named := func(fn any, opts ...option) *specified {
		return Func(fn, append(opts, Name("test.fn"))...)
	}
	one := named(func(a int) { got = ran(a) })
	two := named(func(a, b int) { got = ran(a, b) })
	swapped := named(func(b, a int) { got = ran(a, b) })
	mixed, mixedSwapped := named(func(a int, s string) { got = ran(a, s) }),
		named(func(s string, a int) { got = ran(a, s) })
	optional := named(func(a, b int) { got = ran(a, b) }, Optional(1))
	full := named(func(_ context.Context, a int) (string, error) { got = ran(a); return "", nil })
	for _, c := range []struct {
		name     string
		from, to *specified
		args     []any
		want     []any // nil: it does not fit
	}{
		{"parameter added with Optional, old task", one, optional, []any{1}, []any{1, 0}},
		{"parameter added with Optional, new task", optional, one, []any{1, 2}, nil},
		{"parameter added, old task", one, two, []any{1}, nil},
		{"parameter added, new task", two, one, []any{1, 2}, nil},
		{"parameters swapped", two, swapped, []any{1, 2}, []any{2, 1}},
		{"parameters of two types swapped", mixed, mixedSwapped, []any{1, "x"}, nil},
		{"context and results added", one, full, []any{1}, []any{1}},
		{"context and results removed", full, one, []any{1}, []any{1}},
	} {
		from, to := mustFunction(t, c.from), mustFunction(t, c.to)
		payload, err := from.Encode(c.args)
		if err != nil {
			t.Fatal(c.name, err)
		}
		got = call{}
		m := goMessage(t, to.Path(), payload, noN)
		_, err = to.Call(t.Context(), m)
		var wrong *ArgumentError
		if errors.As(err, &wrong) != (c.want == nil) || !reflect.DeepEqual(got.args, c.want) ||
			to.UnknownFields(m) != nil {
			t.Errorf("%s: called with %v, %v, expected %v", c.name, got.args, err, c.want)
		}
	}
}

// functionOn returns a function that returns its one argument, which has the given type.
func functionOn(t *testing.T, typ reflect.Type) *Function {
	t.Helper()
	signature := reflect.FuncOf([]reflect.Type{typ}, []reflect.Type{typ}, false)
	fn := reflect.MakeFunc(signature, func(args []reflect.Value) []reflect.Value { return args })
	return mustFunction(t, Func(fn.Interface(), Name("test.fn")))
}

// Fields are found in an argument at any position, and their paths show which workers lack them.
func TestUnknownFieldsOfAnyArgument(t *testing.T) {
	type old struct{ A int }
	type current struct{ A, B int }
	x, list := current{1, 2}, []any{current{1, 2}, current{3, 4}}
	named := func(fn any, opts ...option) *specified {
		return Func(fn, append(opts, Name("test.fn"))...)
	}
	for _, c := range []struct {
		name     string
		old, new *specified
		args     []any
		fields   string
	}{
		{"second of two", named(func(int, old) {}), named(func(int, current) {}), []any{1, x}, "2.B"},
		{"both", named(func(old, *old) {}), named(func(current, *current) {}), []any{x, &x}, "1.B 2.B"},
		{"tail", named(func(int, ...old) {}), named(func(int, ...current) {}), append([]any{1}, list...), "2[].B"},
		{"tail alone", named(func(...old) {}), named(func(...current) {}), list, "1[].B"},
		{
			"tail of maps", named(func(...map[string]old) {}), named(func(...map[string]current) {}),
			[]any{map[string]current{"k": x}},
			"1[][].B",
		},
		{"one, which is a list", named(func([]old) {}), named(func([]current) {}), []any{[]current{x, x}}, "1[].B"},
		{"beside a missing one", named(func(old, int) {}, Optional(1)), named(func(current) {}), []any{x}, "1.B"},
		{
			"beside a missing one, a list", named(func([]old, int) {}, Optional(1)), named(func([]current) {}),
			[]any{[]current{x, x}},
			"1[].B",
		},
		{"beside one more", named(func(old) {}), named(func(current, int) {}), []any{x, 1}, "1.B"},
	} {
		before, after := mustFunction(t, c.old), mustFunction(t, c.new)
		payload, err := after.Encode(c.args)
		if err != nil {
			t.Fatal(c.name, err)
		}
		counted, _, err := EncodeArgs(wire.ByName, "a.b", c.args, nil)
		if err != nil {
			t.Fatal(c.name, err)
		}
		for n, b := range map[int][]byte{noN: payload, len(c.args): counted} {
			if n == noN && c.name == "beside one more" {
				continue // by position, the old version sees the arguments as one struct of another length
			}
			fields := before.UnknownFields(goMessage(t, before.Path(), b, n))
			if got := strings.Join(fields, " "); got != c.fields {
				t.Errorf("%s, n=%d: found %q, expected %q", c.name, n, got, c.fields)
			}
			for _, path := range fields {
				if !before.lacks(path) || after.lacks(path) {
					t.Errorf("%s: %s is lacked: before %v, after %v", c.name, path, before.lacks(path),
						after.lacks(path))
				}
			}
			if fields := after.UnknownFields(goMessage(t, after.Path(), b, n)); fields != nil {
				t.Errorf("%s, n=%d: the sender lacks %v", c.name, n, fields)
			}
		}
	}
	f := mustFunction(t, named(func(old) {}))
	for _, path := range []string{"", "1", "1.A", "0.B", "2.B", "-1.B", ".B", "x.B", "99999999999999999999.B", "1B"} {
		if f.lacks(path) {
			t.Errorf("%q is lacked", path)
		}
	}
	many := wireDict{}
	for i := range 3 * wire.MaxUnknownFields {
		many = append(many, wirePair{fmt.Sprintf("F%d", i), i})
	}
	if fields := f.UnknownFields(goMessage(t, f.Path(), packed(many), noN)); len(fields) != wire.MaxUnknownFields {
		t.Errorf("%d fields are reported, expected %d", len(fields), wire.MaxUnknownFields)
	}
}

// Each field is reported once, however many values of a variadic parameter have it, and several arguments give no more
// fields than one.
func TestUnknownFieldsAreToldOnce(t *testing.T) {
	type old struct{ A int }
	one := wireDict{{"A", 1}, {"B", 2}, {"C", 3}}
	f := namedFunction(t, func(...old) {})
	for n, payload := range map[int]wireList{noN: {one, one, one}, 3: {one, one, one}} {
		fields := f.UnknownFields(goMessage(t, "test.fn", packed(payload), n))
		if got := strings.Join(fields, " "); got != "1[].B 1[].C" {
			t.Errorf("n=%d: found %q", n, got)
		}
	}
	// Python and go-delayed also write a single argument as a list of one.
	f = namedFunction(t, func(map[string]old) {})
	payload := packed(wireList{wireDict{{"k", one}}})
	if got := f.UnknownFields(goMessage(t, "test.fn", payload, noN)); strings.Join(got, " ") != "1[].B 1[].C" {
		t.Errorf("found %q in a list of one", got)
	}
	many := wireDict{}
	for i := range wire.MaxUnknownFields - 1 {
		many = append(many, wirePair{fmt.Sprintf("F%d", i), i})
	}
	f = namedFunction(t, func(old, old) {})
	fields := f.UnknownFields(goMessage(t, "test.fn", packed(wireList{many, many}), noN))
	if len(fields) != wire.MaxUnknownFields {
		t.Errorf("%d fields are reported, expected %d", len(fields), wire.MaxUnknownFields)
	}
}
