package function

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	bignum "math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// The values that Delay accepts, and the bytes that it sends for them.
func TestEncode(t *testing.T) {
	ptr := "note"
	tests := []struct {
		name string
		fn   any
		args []any
		want any // the expected payload; missing: there is none
	}{
		{"no parameters", fnNone, nil, missing},
		{"context only", fnCtx, nil, missing},
		{"one: bare", fnInt, []any{5}, 5},
		{"two: array", fnTwo, []any{int64(7), "x"}, wireList{7, "x"}},
		{"context is not sent", fnCtxTwo, []any{int64(7), "x"}, wireList{7, "x"}},
		{"receiver is not sent", (*testMailer).Send, []any{7}, 7},
		{
			"three", fnThree,
			[]any{1, &argItem{"n", 2}, []int{3, 4}},
			wireList{1, wireDict{{"Name", "n"}, {"N", 2}}, wireList{3, 4}},
		},
		{"variadic without", fnVariadic, nil, wireList{}},
		{"variadic alone: the array itself", fnVariadic, []any{1, 2, 3}, wireList{1, 2, 3}},
		{"variadic of one", fnVariadic, []any{1}, wireList{1}},
		{"variadic at the end", fnOneAndVariadic, []any{"s", 1, 2}, wireList{"s", wireList{1, 2}}},
		{"variadic at the end without", fnOneAndVariadic, []any{"s"}, wireList{"s", wireList{}}},
		{"variadic converts", fnOneAndVariadic, []any{"s", int8(1), uint64(2)}, wireList{"s", wireList{1, 2}}},
		{"ready slice", fnOneAndVariadic, []any{"s", []int{1, 2}}, wireList{"s", wireList{1, 2}}},
		{"ready slice alone", fnVariadic, []any{[]int{1, 2}}, wireList{1, 2}},
		{"ready nil slice", fnVariadic, []any{[]int(nil)}, nil},
		{"slice that is an element", fnAnys, []any{[]any{1, "x"}}, wireList{wireList{1, "x"}}},
		{"slice that is an element of slices", fnLists, []any{[]int{1}}, wireList{wireList{1}}},
		{"ready slice of slices", fnLists, []any{[][]int{{1}, {2}}}, wireList{wireList{1}, wireList{2}}},
		{"nil elements", fnPointers, []any{nil, &argItem{"n", 1}}, wireList{nil, wireDict{{"Name", "n"}, {"N", 1}}}},
		{"one nil element", fnPointers, []any{nil}, wireList{nil}},
		{"anything", fnAnys, []any{nil, 1, "x", true, 2.5, []byte{1}}, wireList{nil, 1, "x", true, 2.5, []byte{1}}},

		{"integer fits", fnInt8, []any{int64(-128)}, -128},
		{"unsigned to signed", fnInt8, []any{uint64(127)}, 127},
		{"named integer", fnUserID, []any{5}, 5},
		{"named integer to plain", fnInt, []any{argUserID(5)}, 5},
		{"duration is an integer", fnInt, []any{time.Second}, 1000000000},
		{"integer to float", fnFloat, []any{3}, 3.0},
		{"named float", fnFloat, []any{float64(2)}, 2.0},
		{"named string", fnLabel, []any{"x"}, "x"},
		{"named string to plain", fnString, []any{argLabel("x")}, "x"},
		{"named bool", fnBool, []any{argFlag(true)}, true},
		{"named slice", fnIDs, []any{[]int64{1}}, wireList{1}},
		{"slice of another name", fnIDs, []any{argOtherIDs{1}}, wireList{1}},
		{"nil pointer", fnPointer, []any{nil}, nil},
		{"typed nil pointer", fnPointer, []any{(*argItem)(nil)}, nil},
		{"nil slice", fnSlice, []any{nil}, nil},
		{"nil map", fnMap, []any{nil}, nil},
		{"nil interface", fnAny, []any{nil}, nil},
		{"nil bytes", fnBytes, []any{nil}, nil},
		{"struct in interface", fnAny, []any{argItem{"n", 1}}, wireDict{{"Name", "n"}, {"N", 1}}},
		{"time", fnTime, []any{argTime}, argTime},
		{
			"struct", namedLiteral(func(argOrder) {}),
			[]any{argOrder{5, []argItem{{"n", 1}}, &ptr}},
			wireDict{{"ID", 5}, {"Items", wireList{wireDict{{"Name", "n"}, {"N", 1}}}}, {"Note", "note"}},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := mustFunction(t, tt.fn)
			got, err := f.Encode(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == missing {
				if got != nil {
					t.Fatalf("payload %x, want none", got)
				}
				return
			}
			if want := packed(tt.want); !bytes.Equal(got, want) {
				t.Errorf("payload %x, want %x", got, want)
			}
		})
	}
}

const missing = "no payload"

func namedLiteral(fn any) *specified { return Func(fn, Name("literal")) }

func TestEncodeRefuses(t *testing.T) {
	ctx := t.Context()
	secret := "s3cr3t"
	tests := []struct {
		name  string
		fn    any
		args  []any
		index int
		want  string // parts of Want and Got
		got   string
	}{
		{"too few", fnTwo, []any{int64(1)}, -1, "2 arguments (int64, string)", "1"},
		{"too many", fnTwo, []any{int64(1), "x", "y"}, -1, "2 arguments (int64, string)", "3"},
		{"none for one", fnInt, nil, -1, "1 argument (int)", "0"},
		{"one for none", fnNone, []any{1}, -1, "no arguments", "1"},
		{"too few for variadic", fnOneAndVariadic, nil, -1, "at least 1 argument (string, ...int)", "0"},

		{"string for integer", fnInt, []any{secret}, 0, "int", "string"},
		{"integer for string", fnString, []any{65}, 0, "string", "int 65"},
		{"string for bytes", fnBytes, []any{secret}, 0, "[]uint8", "string"},
		{"bytes for string", fnString, []any{[]byte(secret)}, 0, "string", "[]uint8"},
		{"float for integer", fnInt, []any{2.0}, 0, "int", "float64 2"},
		{"bool for integer", fnInt, []any{true}, 0, "int", "bool"},
		{"integer for bool", fnBool, []any{1}, 0, "bool", "int 1"},
		{"float for wider float", fnFloat, []any{float32(1)}, 0, "float64", "float32 1"},
		{"float for narrower float", fnFloat32, []any{1.0}, 0, "float32", "float64 1"},
		{"value for pointer", fnPointer, []any{argItem{Name: secret}}, 0, "*function.argItem", "function.argItem"},
		{"pointer for value", fnStruct, []any{&argItem{Name: secret}}, 0, "function.argItem", "*function.argItem"},
		{"slice of other integers", fnSlice, []any{[]int64{1}}, 0, "[]int", "[]int64"},
		{"array for slice", fnSlice, []any{[1]int{1}}, 0, "[]int", "[1]int"},
		{"runes for string", fnString, []any{[]rune(secret)}, 0, "string", "[]int32"},
		{"integer for time", fnTime, []any{1}, 0, "time.Time", "int 1"},
		{"nil for integer", fnInt, []any{nil}, 0, "int", "nil"},
		{"nil for string", fnTwo, []any{int64(1), nil}, 1, "string", "nil"},
		{"nil for struct", fnStruct, []any{nil}, 0, "function.argItem", "nil"},
		{"integer too big", fnInt8, []any{128}, 0, "int8", "int 128"},
		{"negative for unsigned", namedLiteral(func(uint) {}), []any{-1}, 0, "uint", "int -1"},
		{"unsigned too big", fnInt, []any{uint64(math.MaxUint64)}, 0, "int", "uint64 18446744073709551615"},
		{"inexact float", fnFloat, []any{int64(1<<53 + 1)}, 0, "float64", "int64 9007199254740993"},

		{"in the tail", fnOneAndVariadic, []any{"s", 1, "x"}, 2, "int", "string"},
		{"nil in the tail", fnVariadic, []any{nil}, 0, "int", "nil"},
		{"ready slice is not the only one", fnVariadic, []any{1, []int{2}}, 1, "int", "[]int"},
		{"ready slice is followed by another", fnVariadic, []any{[]int{2}, 1}, 0, "int", "[]int"},
		{"ready slice of another type", fnVariadic, []any{[]int64{2}}, 0, "int", "[]int64"},

		{"context as argument", fnTwo, []any{ctx, "x"}, 0, "int64", "DelayContext(ctx, fn, ...)"},
		{"context too many", fnTwo, []any{ctx, int64(1), "x"}, 0, "int64", "DelayContext(ctx, fn, ...)"},
		{"context for the injected one", fnCtxTwo, []any{ctx, int64(1), "x"}, 0, "int64", "DelayContext(ctx, fn, ...)"},
		{"context for nothing", fnCtx, []any{ctx}, 0, "no argument", "DelayContext(ctx, fn, ...)"},
		{"context for anything", fnAny, []any{ctx}, 0, "interface {}", "DelayContext(ctx, fn, ...)"},
		{"context for anything variadic", fnAnys, []any{1, ctx}, 1, "interface {}", "DelayContext(ctx, fn, ...)"},

		{"invalid string", fnString, []any{"\xff"}, 0, "UTF-8", ""},
		{"channel in interface", fnAny, []any{make(chan int)}, 0, "", "chan int"},
		{"channel inside interface", fnAny, []any{map[string]any{"a": make(chan int)}}, 0, "", "chan int"},
		{"too deep", fnTree, []any{deepTree(40)}, 0, "", ""},
		{"too many elements", fnSlice, []any{make([]int, 65537)}, 0, "65536", ""},
		{"too many elements together", fnLists, []any{make([]int, 40000), make([]int, 40000)}, -1, "65536", ""},
		{"too long", fnString, []any{strings.Repeat("x", 1<<20+1)}, 0, "", ""},
		{"too long together", fnAnys, []any{strings.Repeat("x", 6e5), strings.Repeat("x", 6e5)}, -1, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := mustFunction(t, tt.fn)
			_, err := f.Encode(tt.args)
			var e *ArgumentError
			if !errors.As(err, &e) || !errors.Is(err, ErrArguments) {
				t.Fatalf("%v, want an *misfitError", err)
			}
			if e.Func != f.Path() || e.Index != tt.index || !strings.Contains(e.Want, tt.want) ||
				!strings.Contains(e.Got, tt.got) {
				t.Errorf("%+v, want index %d, %q, %q", *e, tt.index, tt.want, tt.got)
			}
			if e.Want == "" || e.Got == "" || len(e.Error()) > 500 {
				t.Errorf("unhelpful: %v", e)
			}
			if strings.Contains(e.Error(), secret) {
				t.Errorf("shows the argument: %v", e)
			}
		})
	}
}

func deepTree(n int) argTree {
	if n == 0 {
		return argTree{}
	}
	return argTree{Kids: []argTree{deepTree(n - 1)}}
}

// Every pair of integer and float types, at every boundary: Delay accepts a number exactly if the parameter's type can
// hold it.
func TestEncodeNumbers(t *testing.T) {
	ints := []reflect.Type{
		reflect.TypeFor[int](), reflect.TypeFor[int8](), reflect.TypeFor[int16](), reflect.TypeFor[int32](),
		reflect.TypeFor[int64](),
		reflect.TypeFor[uint](), reflect.TypeFor[uint8](), reflect.TypeFor[uint16](), reflect.TypeFor[uint32](),
		reflect.TypeFor[uint64](),
		reflect.TypeFor[argUserID](), reflect.TypeFor[argLevel](), reflect.TypeFor[time.Duration](),
	}
	floats := []reflect.Type{reflect.TypeFor[float32](), reflect.TypeFor[float64](), reflect.TypeFor[argRatio]()}
	var numbers []*bignum.Int
	for _, bits := range []uint{0, 7, 8, 15, 16, 24, 25, 31, 32, 53, 54, 62, 63, 64} {
		for d := int64(-2); d <= 2; d++ {
			n := new(bignum.Int).Add(new(bignum.Int).Lsh(bignum.NewInt(1), bits), bignum.NewInt(d))
			numbers = append(numbers, n, new(bignum.Int).Neg(n))
		}
	}
	value := func(n *bignum.Int, typ reflect.Type) (v reflect.Value, ok bool) {
		v = reflect.New(typ).Elem()
		if v.CanInt() {
			if !n.IsInt64() || v.OverflowInt(n.Int64()) {
				return v, false
			}
			v.SetInt(n.Int64())
			return v, true
		}
		if !n.IsUint64() || v.OverflowUint(n.Uint64()) {
			return v, false
		}
		v.SetUint(n.Uint64())
		return v, true
	}
	accepted, refused := 0, 0
	for _, n := range numbers {
		for _, from := range ints {
			arg, ok := value(n, from)
			if !ok {
				continue
			}
			for _, to := range append(ints, floats...) {
				var want bool
				var exact float64
				switch to.Kind() {
				case reflect.Float32:
					f, acc := new(bignum.Float).SetInt(n).Float32()
					exact, want = float64(f), acc == bignum.Exact
				case reflect.Float64:
					f, acc := new(bignum.Float).SetInt(n).Float64()
					exact, want = f, acc == bignum.Exact
				default:
					_, want = value(n, to)
				}
				p := &param{typ: to}
				got, ok := p.fit(arg.Interface(), nil)
				if ok != want {
					t.Fatalf("%s %v for %s: accepted %t, want %t", from, n, to, ok, want)
				}
				if !ok {
					refused++
					continue
				}
				accepted++
				if got.Type() != to || got.CanFloat() && got.Float() != exact || !got.CanFloat() &&
					fmt.Sprint(got) != fmt.Sprint(arg) && to != reflect.TypeFor[time.Duration]() &&
					from != reflect.TypeFor[time.Duration]() {
					t.Fatalf("%s %v became %s %v", from, n, got.Type(), got)
				}
			}
		}
	}
	if accepted < 1000 || refused < 1000 {
		t.Errorf("only %d accepted and %d refused", accepted, refused)
	}
}

func TestEncodeArgs(t *testing.T) {
	for _, tt := range []struct {
		args []any
		want wireList
	}{
		{[]any{5}, wireList{5}},
		{[]any{nil}, wireList{nil}},
		{[]any{[]int{1, 2}}, wireList{wireList{1, 2}}},
		{
			[]any{int8(1), "x", argLabel("y"), argUserID(7), 2.5, argTime, argItem{"n", 1}},
			wireList{1, "x", "y", 7, 2.5, argTime, wireList{"n", 1}},
		},
		{[]any{map[string]int{"a": 1}, []byte("b"), (*argItem)(nil)}, wireList{wireDict{{"a", 1}}, []byte("b"), nil}},
	} {
		got, _, err := EncodeArgs(wire.ByPosition, "a.b", tt.args, nil)
		if err != nil || !bytes.Equal(got, packed(tt.want)) {
			t.Errorf("encodeArgs(%v) = %x, %v; want %x", tt.args, got, err, packed(tt.want))
		}
	}
	if got, _, err := EncodeArgs(wire.ByName, "a.b", nil, nil); got != nil || err != nil {
		t.Errorf("encodeArgs() = %x, %v; want no payload, as of a function without parameters", got, err)
	}
	for _, tt := range []struct {
		args  []any
		index int
		part  string
	}{
		{[]any{1, make(chan int)}, 1, "chan int"},
		{[]any{t.Context()}, 0, "Enqueue(ctx, task)"},
		{[]any{func() {}}, 0, "func()"},
		{[]any{1, "\xff"}, 1, "UTF-8"},
		{[]any{make([]int, 40000), make([]int, 40000)}, -1, "65536"},
	} {
		_, _, err := EncodeArgs(wire.ByName, "a.b", tt.args, nil)
		var e *ArgumentError
		if !errors.As(err, &e) || e.Index != tt.index || !strings.Contains(err.Error(), tt.part) {
			t.Errorf("encodeArgs: %v, want index %d, %q", err, tt.index, tt.part)
		}
	}
}

// Workers accept what Delay accepts, because both have the same limits.
func TestEncodeLimitsAreTheWorkers(t *testing.T) {
	f := namedFunction(t, func(string) {})
	longest := 0
	for n := 1<<20 - 10; n <= 1<<20; n++ {
		payload, err := f.Encode([]any{strings.Repeat("x", n)})
		if err != nil {
			continue
		}
		longest = n
		if err := wire.Check(payload, wire.Default); err != nil {
			t.Fatalf("string of %d bytes passes at Delay, and then: %v", n, err)
		}
	}
	if longest != 1<<20-5 {
		t.Errorf("longest string %d bytes, want %d", longest, 1<<20-5)
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, bm := range []struct {
		name string
		fn   any
		args []any
	}{
		{"int64,string", fnCtxTwo, []any{int64(42), "en"}},
		{"int for int64,string", fnCtxTwo, []any{42, "en"}},
		{"struct", fnStruct, []any{argItem{"name", 1}}},
	} {
		b.Run(bm.name, func(b *testing.B) {
			f := mustFunction(b, bm.fn)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := f.Encode(bm.args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestEncodeFlat: encoding checks the limits again for all values except those that cannot exceed them.
func TestEncodeFlat(t *testing.T) {
	type leaf struct{ A, B int }
	type ring struct{ Next *ring }
	for _, c := range []struct {
		fn   any
		flat bool
	}{
		{func() {}, true},
		{func(int64, string, []byte, time.Time, *bool) {}, true},
		{func([][]leaf, map[string][]float64, ...string) {}, true},
		{func(any) {}, false},
		{func(int, []any) {}, false},
		{func(ring) {}, false},
		{func(int, ...any) {}, false},
	} {
		if f := mustFunction(t, Func(c.fn, Name("f"))); f.flat != c.flat {
			t.Errorf("%T: flat is %v", c.fn, f.flat)
		}
	}
	var deep any
	for range wire.Default.Depth {
		deep = []any{deep}
	}
	if _, err := mustFunction(t, Func(func(any) {}, Name("f"))).Encode([]any{deep}); err != nil {
		t.Errorf("as deep as may be: %v", err)
	}
	if _, err := mustFunction(t, Func(func(any, int) {}, Name("f"))).Encode([]any{deep, 1}); !errors.Is(err,
		ErrArguments) {
		t.Errorf("one deeper, for the array of two arguments: %v", err)
	}
	many := make([]bool, wire.Default.Elems/2)
	f := mustFunction(t, Func(func(a, b []bool) {}, Name("f")))
	if _, err := f.Encode([]any{many[1:], many[2:]}); err != nil {
		t.Errorf("as many as may be: %v", err)
	}
	if _, err := f.Encode([]any{many[1:], many[1:]}); !errors.Is(err, ErrArguments) {
		t.Errorf("one more: %v", err)
	}
}
