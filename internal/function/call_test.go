package function

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/limits"
)

// Every form in which arguments can arrive: with the number of arguments (n) and without (noN).
func TestCall(t *testing.T) {
	type got = []any
	variadic := func(ctx context.Context, v ...int) { note(ctx, v) }
	tail := func(ctx context.Context, s string, v ...int) { note(ctx, s, v) }
	tests := []struct {
		name    string
		fn      any
		payload any // missing: none
		n       int
		want    got
	}{
		{"none", func(ctx context.Context) { note(ctx) }, missing, noN, got{}},
		{"none, as go-delayed sends it", func(ctx context.Context) { note(ctx) }, nil, noN, got{}},
		{"none, empty array", func(ctx context.Context) { note(ctx) }, wireList{}, noN, got{}},
		{"none, n", func(ctx context.Context) { note(ctx) }, wireList{}, 0, got{}},
		{"none, n without payload", func(ctx context.Context) { note(ctx) }, missing, 0, got{}},

		{"one, bare", func(ctx context.Context, a int) { note(ctx, a) }, 5, noN, got{5}},
		{"one, array", func(ctx context.Context, a int) { note(ctx, a) }, wireList{5}, noN, got{5}},
		{"one, n", func(ctx context.Context, a int) { note(ctx, a) }, wireList{5}, 1, got{5}},
		{"string, array", func(ctx context.Context, a string) { note(ctx, a) }, wireList{"x"}, noN, got{"x"}},
		{
			"bytes, array", func(ctx context.Context, a []byte) { note(ctx, a) },
			wireList{[]byte("x")},
			noN,
			got{[]byte("x")},
		},
		{
			"map, array", func(ctx context.Context, a map[string]int) { note(ctx, a) },
			wireList{wireDict{{"a", 1}}},
			noN,
			got{map[string]int{"a": 1}},
		},
		{"slice, bare", func(ctx context.Context, a []int) { note(ctx, a) }, wireList{5}, noN, got{[]int{5}}},
		{"slice, n", func(ctx context.Context, a []int) { note(ctx, a) }, wireList{wireList{5}}, 1, got{[]int{5}}},
		{
			"slice of slices, bare", func(ctx context.Context, a [][]int) { note(ctx, a) },
			wireList{wireList{5}},
			noN,
			got{[][]int{{5}}},
		},
		{
			"struct, by position", func(ctx context.Context, a argItem) { note(ctx, a) },
			wireList{"x", 1},
			noN,
			got{argItem{"x", 1}},
		},
		{
			"struct, by name", func(ctx context.Context, a argItem) { note(ctx, a) },
			wireDict{{"N", 1}, {"Name", "x"}},
			noN,
			got{argItem{"x", 1}},
		},
		{
			"struct, n", func(ctx context.Context, a argItem) { note(ctx, a) },
			wireList{wireList{"x", 1}},
			1,
			got{argItem{"x", 1}},
		},
		{"any, bare array", func(ctx context.Context, a any) { note(ctx, a) }, wireList{5}, noN, got{[]any{int64(5)}}},
		{"any, n", func(ctx context.Context, a any) { note(ctx, a) }, wireList{5}, 1, got{int64(5)}},
		{"pointer, nil", func(ctx context.Context, a *argItem) { note(ctx, a) }, nil, noN, got{(*argItem)(nil)}},
		{
			"pointer", func(ctx context.Context, a *argItem) { note(ctx, *a) },
			wireList{"x", 1},
			noN,
			got{argItem{"x", 1}},
		},
		{"time", func(ctx context.Context, a time.Time) { note(ctx, a) }, argTime, noN, got{argTime}},
		{
			"named", func(ctx context.Context, a argUserID, b argLabel) { note(ctx, a, b) },
			wireList{5, "x"},
			noN,
			got{argUserID(5), argLabel("x")},
		},

		{
			"two", func(ctx context.Context, a int64, b string) { note(ctx, a, b) },
			wireList{7, "x"},
			noN,
			got{int64(7), "x"},
		},
		{
			"two, n", func(ctx context.Context, a int64, b string) { note(ctx, a, b) },
			wireList{7, "x"},
			2,
			got{int64(7), "x"},
		},
		{
			"integer for float", func(ctx context.Context, a float64, b string) { note(ctx, a, b) },
			wireList{7, "x"},
			noN,
			got{7.0, "x"},
		},
		{
			"embedded", func(ctx context.Context, a argNested, b int) { note(ctx, a, b) },
			wireList{wireList{wireList{true}, wireDict{{"a", 1}}}, 2},
			noN,
			got{argNested{ArgBase: ArgBase{true}, Tags: map[string]int{"a": 1}}, 2},
		},

		{"variadic, no payload", variadic, missing, noN, got{[]int(nil)}},
		{"variadic, as go-delayed sends nothing", variadic, nil, noN, got{[]int(nil)}},
		{"variadic, the array itself", variadic, wireList{1, 2}, noN, got{[]int{1, 2}}},
		{"variadic, n", variadic, wireList{1, 2}, 2, got{[]int{1, 2}}},
		{"variadic, n of one", variadic, wireList{1}, 1, got{[]int{1}}},
		{"variadic, n of none", variadic, wireList{}, 0, got{[]int(nil)}},
		{"variadic, n without payload", variadic, missing, 0, got{[]int(nil)}},
		{"variadic, n and a list", variadic, wireList{wireList{1, 2}}, 1, got{[]int{1, 2}}},
		{"tail, array element", tail, wireList{"s", wireList{1, 2}}, noN, got{"s", []int{1, 2}}},
		{"tail, nil", tail, wireList{"s", nil}, noN, got{"s", []int(nil)}},
		{"tail, n", tail, wireList{"s", 1, 2}, 3, got{"s", []int{1, 2}}},
		{"tail, n of none", tail, wireList{"s"}, 1, got{"s", []int(nil)}},
		{"tail, n and a list", tail, wireList{"s", wireList{1, 2}}, 2, got{"s", []int{1, 2}}},
		{
			"tail of any, n and a list that is an element",
			func(ctx context.Context, s string, v ...any) { note(ctx, s, v) },
			wireList{"s", wireList{1}},
			2,
			got{"s", []any{[]any{int64(1)}}},
		},
		{
			"tail of lists, n", func(ctx context.Context, v ...[]int) { note(ctx, v) },
			wireList{wireList{1}},
			1,
			got{[][]int{{1}}},
		},
		{
			"tail of structs, n and one by position", func(ctx context.Context, v ...argItem) { note(ctx, v) },
			wireList{wireList{"x", 1}},
			1,
			got{[]argItem{{"x", 1}}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := namedFunction(t, tt.fn)
			var notes []any
			ctx := context.WithValue(t.Context(), notesKey{}, &notes)
			if result, err := f.Call(ctx, goMessage(t, f.Path(), payloadOf(tt.payload), tt.n)); err != nil ||
				result != nil {
				t.Fatalf("%v, %v", result, err)
			}
			if len(notes) == 0 && len(tt.want) == 0 {
				return
			}
			if !reflect.DeepEqual(notes, tt.want) {
				t.Errorf("called with %#v, want %#v", notes, tt.want)
			}
		})
	}
}

type notesKey struct{}

// note records the arguments of a function for the test.
func note(ctx context.Context, args ...any) {
	if notes, ok := ctx.Value(notesKey{}).(*[]any); ok {
		*notes = append([]any{}, args...)
	}
}

func payloadOf(v any) []byte {
	if v == missing {
		return nil
	}
	return packed(v)
}

func TestCallRefuses(t *testing.T) {
	tests := []struct {
		name      string
		fn        any
		payload   any
		n         int
		index     int
		want, got string // parts
	}{
		{"nothing for one", fnInt, missing, noN, -1, "1 argument (int)", "none"},
		{"nothing for a pointer", fnPointer, missing, noN, -1, "1 argument (*function.argItem)", "none"},
		{"nothing for two", fnTwo, missing, noN, -1, "2 arguments (int64, string)", "none"},
		{"shorter than the parameters", fnTwo, wireList{8}, noN, -1, "2 arguments", "1"},
		{"longer than the parameters", fnTwo, wireList{8, "x", 9}, noN, -1, "2 arguments", "3"},
		{"bare value for two", fnTwo, 8, noN, -1, "2 arguments", "integer"},
		{"argument for none", fnNone, 8, noN, -1, "no arguments", "integer"},
		{"arguments for none", fnNone, wireList{8}, noN, -1, "no arguments", "array of 1 value"},
		{"n: too few", fnTwo, wireList{8}, 1, -1, "2 arguments", "1"},
		{"n: too many", fnTwo, wireList{8, "x", 9}, 3, -1, "2 arguments", "3"},
		{"n: not the length", fnTwo, wireList{8, "x"}, 3, -1, "array of the 3 arguments", "array of 2 values"},
		{"n: no array", fnInt, 8, 1, -1, "array of the 1 argument", "integer"},
		{"n: no array for none", fnNone, 8, 0, -1, "array of the 0 arguments", "integer"},
		{"n: no payload", fnInt, missing, 1, -1, "array of the 1 argument", ""},
		{"n: too few for variadic", fnOneAndVariadic, wireList{}, 0, -1, "at least 1 argument (string, ...int)", "0"},
		{
			"variadic omitted without n", fnOneAndVariadic,
			wireList{"s"},
			noN, -1, "at least 1 argument (string, ...int)",
			"1",
		},
		{"bare value for variadic", fnVariadic, 1, noN, 0, "", "integer"},

		{"integer too big", fnInt8, 300, noN, 0, "int8", "out of range"},
		{"negative for unsigned", namedLiteral(func(uint) {}), -1, noN, 0, "uint", "out of range"},
		{"unsigned too big", namedLiteral(func(int64) {}), argTooBig, noN, 0, "int64", "out of range"},
		{"float for integer", fnInt, 1.5, noN, 0, "int", "float"},
		{"inexact", fnFloat, int64(1<<53 + 1), noN, 0, "float64", "cannot hold exactly"},
		{"huge float for float32", fnFloat32, math.MaxFloat64, noN, 0, "float32", ""},
		{"string for integer", fnTwo, wireList{"s3cr3t", "x"}, noN, 0, "int64", "string"},
		{"second argument", fnTwo, wireList{1, 2}, noN, 1, "string", "integer"},
		{"bytes for slice", fnSlice, []byte("s3cr3t"), noN, 0, "", "binary"},
		{"nil for integer", fnInt, nil, noN, 0, "int", "nil"},
		{"nil for struct", fnStruct, nil, noN, 0, "", "nil"},
		{"short struct", fnStruct, wireList{"x"}, noN, 0, "", "array of 1 value"},
		{"long struct", fnStruct, wireList{"x", 1, 2}, noN, 0, "", "array of 3 values"},
		{
			"struct with a key too many", fnStruct,
			wireDict{{"Name", "x"}, {"N", 1}, {"Admin", true}},
			noN, 0, "",
			"Admin",
		},
		{
			"inside", namedLiteral(func(int, argOrder) {}),
			wireList{0, wireList{1, wireList{wireList{"x", 1}, wireList{"y", 300}}, nil}},
			noN, 1,
			".Items[1].N of function.argOrder", "out of range",
		},
		{"in the tail", fnOneAndVariadic, wireList{"s", wireList{1, "s3cr3t"}}, noN, 2, "int", "string"},
		{"n: in the tail", fnOneAndVariadic, wireList{"s", 1, 2, "s3cr3t"}, 4, 3, "int", "string"},
		{
			"n: inside the tail", namedLiteral(func(...argItem) {}),
			wireList{wireList{"x", 1}, wireList{"x", 300}},
			2, 1,
			".N of function.argItem", "out of range",
		},
		{"n: in the list for the tail", fnVariadic, wireList{wireList{1, "s3cr3t"}}, 1, 1, "int", "string"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := mustFunction(t, tt.fn)
			result, err := f.Call(t.Context(), goMessage(t, f.Path(), payloadOf(tt.payload), tt.n))
			var e *ArgumentError
			if !errors.As(err, &e) || result != nil {
				t.Fatalf("%v, %v; want an *misfitError", result, err)
			}
			if e.Func != f.Path() || e.Index != tt.index || !strings.Contains(e.Want, tt.want) ||
				!strings.Contains(e.Got, tt.got) {
				t.Errorf("%+v, want index %d, %q, %q", *e, tt.index, tt.want, tt.got)
			}
			if e.Want == "" || e.Got == "" || strings.Contains(e.Error(), "s3cr3t") {
				t.Errorf("unhelpful or telling: %v", e)
			}
		})
	}
}

// A refused message calls no function.
func TestCallRefusesBeforeTheCall(t *testing.T) {
	called := false
	f := namedFunction(t, func(int64, string) { called = true })
	for _, p := range []any{missing, wireList{8}, wireList{8, 9}, wireList{nil, "x"}, 8, wireList{8, "x", 1}} {
		if _, err := f.Call(t.Context(), goMessage(t, f.Path(), payloadOf(p), noN)); err == nil || called {
			t.Errorf("payload %v: %v, called %t", p, err, called)
		}
	}
}

func TestCallResults(t *testing.T) {
	tests := []struct {
		name   string
		fn     any
		args   []any
		result any
		err    error
	}{
		{"nothing", fnNone, nil, nil, nil},
		{"error", fnError, nil, nil, errTest},
		{"no error", fnCtxTwo, []any{1, "x"}, nil, nil},
		{"result", fnResult, []any{21}, 42, nil},
		{"result and no error", fnBoth, []any{7, false}, 7, nil},
		{"result and error", fnBoth, []any{7, true}, 7, errTest},
		{"nil pointer as result", namedLiteral(func() *argItem { return nil }), nil, (*argItem)(nil), nil},
		{"nil interface as result", namedLiteral(func() any { return nil }), nil, nil, nil},
		{"generic", Func(fnGeneric[string], Name("generic")), []any{"x"}, "x", nil},
		{"printf", fmt.Sprintf, []any{"%d %s", 1, "x"}, "1 x", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := mustFunction(t, tt.fn)
			payload, err := f.Encode(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			result, err := f.Call(t.Context(), goMessage(t, f.Path(), payload, noN))
			if result != tt.result || !errors.Is(err, tt.err) {
				t.Errorf("%#v, %v; want %#v, %v", result, err, tt.result, tt.err)
			}
		})
	}
}

// The function gets the caller's own context, and Call does not keep it afterwards.
func TestCallContext(t *testing.T) {
	type key struct{}
	f := namedFunction(t, func(ctx context.Context, _ int) (bool, error) {
		return ctx.Value(key{}) == "here", ctx.Err()
	})
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "here"))
	m := goMessage(t, f.Path(), packed(1), noN)
	if found, err := f.Call(ctx, m); found != true || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	cancel()
	if _, err := f.Call(ctx, m); !errors.Is(err, context.Canceled) {
		t.Error("the function does not see the cancellation:", err)
	}
	if found, err := f.Call(t.Context(), m); found != false || err != nil {
		t.Errorf("the next call has the context of the last: %v, %v", found, err)
	}
	fr, _ := f.frames.Get().(*frame)
	if *fr.ctx != nil {
		t.Error("the frame keeps the context alive")
	}
}

// The limit for calls: three allocations for two arguments, of which one is the string itself.
func TestCallAllocates(t *testing.T) {
	limits.Only(t)
	for _, tt := range []struct {
		fn     any
		args   []any
		atMost float64
	}{
		{fnNone, nil, 1},
		{fnTwo, []any{int64(1 << 40), "a string of some length"}, 2},
		{fnCtxTwo, []any{int64(1 << 40), "a string of some length"}, 3},
	} {
		f := mustFunction(t, tt.fn)
		payload, err := f.Encode(tt.args)
		if err != nil {
			t.Fatal(err)
		}
		m := goMessage(t, f.Path(), payload, noN)
		ctx := t.Context()
		// Take the least of several runs, because the race detector makes sync.Pool lose frames at random.
		got := math.Inf(1)
		for range 100 {
			got = min(got, testing.AllocsPerRun(1, func() {
				if _, err := f.Call(ctx, m); err != nil {
					t.Fatal(err)
				}
			}))
		}
		if got > tt.atMost {
			t.Errorf("%s: %v allocations, want at most %v", f.Path(), got, tt.atMost)
		}
	}
}

func BenchmarkCall(b *testing.B) {
	for _, bm := range []struct {
		name string
		fn   any
		args []any
	}{
		{"none", fnNone, nil},
		{"ctx error", namedLiteral(func(context.Context) error { return nil }), nil},
		{"int64,string", fnTwo, []any{int64(1 << 40), "en"}},
		{"ctx,int64,string error", fnCtxTwo, []any{int64(1 << 40), "en"}},
		{"struct", fnStruct, []any{argItem{"name", 1}}},
		{"variadic", fnOneAndVariadic, []any{"s", 1, 2, 3}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			f := mustFunction(b, bm.fn)
			payload, err := f.Encode(bm.args)
			if err != nil {
				b.Fatal(err)
			}
			m := goMessage(b, f.Path(), payload, noN)
			ctx := b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Call(ctx, m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
