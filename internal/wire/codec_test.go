package wire

import (
	"bytes"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"
)

// codecOf returns the codec for a type that has one.
func codecOf(t testing.TB, typ reflect.Type) *Codec {
	t.Helper()
	c, err := CodecFor(typ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// encode writes v by its dynamic type.
func encode(t testing.TB, v any) []byte {
	t.Helper()
	rv := reflect.ValueOf(v)
	b, err := codecOf(t, rv.Type()).Append(nil, rv)
	if err != nil {
		t.Fatalf("%T %v: %v", v, v, err)
	}
	return b
}

// decodeAs reads b into a new value of type typ.
func decodeAs(t testing.TB, typ reflect.Type, b []byte) (any, error) {
	t.Helper()
	dst := reflect.New(typ).Elem()
	rest, err := codecOf(t, typ).Decode(b, dst)
	if err == nil && len(rest) != 0 {
		t.Errorf("%v from %x: %x left over", typ, b, rest)
	}
	return dst.Interface(), err
}

func TestCodecRoundTrip(t *testing.T) {
	moment := time.Date(2024, 2, 29, 12, 30, 0, 123456789, time.UTC)
	long := make([]int, 1000)
	words := make([]string, 40)
	byName := map[string]int{}
	for i := range long {
		long[i] = (i - 500) * i * i * i
		words[i%40] = strings.Repeat("w", i%40)
		byName[strconv.Itoa(i)] = i
	}
	five := 5
	pfive := &five
	for _, v := range []any{
		true, false, flag(true), int8(-128), int8(127), int16(-129), int32(math.MinInt32), int64(math.MinInt64),
		int64(math.MaxInt64), 0, -1, -32, -33, 127, 128,
		uint8(255), uint16(256), uint32(65536), uint64(math.MaxUint64), uint(math.MaxUint), color(7), secs(-5),
		float32(1.5), float32(math.Inf(1)), 1.5, math.Inf(-1), math.MaxFloat64, math.SmallestNonzeroFloat64, -0.5,
		"", "a", strings.Repeat("é", 20), strings.Repeat("x", 300), strings.Repeat("x", 70000), label("l"),
		[]byte(nil),
		[]byte{},
		[]byte{1, 2},
		make([]byte, 300), make([]byte, 70000),
		blob{9},
		id16{1, 15: 9},
		[0]byte{},
		[300]byte{7},
		octets(nil),
		octets{1, 200},
		[]color{3},
		moment, time.Unix(0, 0).UTC(),
		time.Time{},
		time.Unix(1<<34-1, 0).UTC(), time.Unix(1<<34, 5).UTC(), time.Unix(-1, 1).UTC(),
		time.Unix(math.MaxUint32, 0).UTC(), time.Unix(1<<32, 0).UTC(),
		[]int(nil),
		[]int{},
		[]int{1, -2, 300},
		long, long[:15], long[:16],
		[]int64{5},
		[]uint16{1, 65535},
		words, words[:3],
		[]bool{true, false},
		[]float64{1, 2.5},
		[]float32{1, 2.5},
		make([]float64, 20), make([]float32, 20), make([]bool, 20), make([]uint64, 20), make([]int8, 20),
		[][]int{{1}, nil, {}, long[:20]},
		[3]string{"a", "", "c"},
		[0]int{},
		[2][]byte{{1}, nil},
		[]*int{pfive, nil},
		[][]string{words, words[:1], nil},
		(*int)(nil), pfive, &pfive, (**int)(nil), (*point)(nil), &point{1, 2},
		map[string]int(nil),
		map[string]int{},
		map[string]int{"a": 1},
		byName,
		map[string]string{"a": "b", "c": "d", "e": "f", "g": "h"},
		map[int]string{-5: "x", 300: "y", 1: "z", 0: ""},
		map[bool]int{true: 1, false: 0},
		map[label]color{"l": 2},
		map[uint8]bool{1: true, 2: false, 3: true, 4: true},
		map[int]*point{1: nil, 2: {3, 4}},
		map[string][]int{"a": {1}, "b": nil},
		map[string]any{"n": nil, "i": int64(5), "s": []any{"x", true, 2.5}},
		map[any]any{"a": int64(1), int64(2): "b", true: nil, uint64(math.MaxUint64): false},
		map[any]int{"x": 1, false: 2},
		point{3, -4},
		[]point{{1, 2}, {3, 4}},
		empty{},
		[]empty{{}, {}},
		struct{}{},
		item{ID: 1, Name: "nut", Price: 0.25, Tags: []string{"m4"}},
		embedded{Owner: Owner{"me"}, Parent: &Parent{7}, N: 1},
		embedded{},
		order{
			ID: 1, Email: ptr("a@b"), Items: []item{{ID: 2}, {ID: 3, Tags: []string{}}},
			Extra: map[string]any{"k": int64(1)}, Placed: moment,
			Next: &order{Items: nil, Placed: time.Unix(9, 0).UTC()},
		},
		tree{1, &tree{2, nil, nil}, &tree{3, &tree{4, nil, nil}, nil}},
		forest{{}, {{}}, nil},
		dict{"a": {"b": {}}, "c": nil},
		many{},
		named{1, "l", 2, true, id16{3}, blob{4}, octets{5}},
		[]any{},
		[]any{nil, int64(-1), "x", []byte{1}, moment, []any{}, map[string]any{}},
		everything{
			Bool: true, I8: -1, U64: 1 << 63, F32: 0.5, Str: "s", Bin: []byte{0}, Arr: [2]int16{1, -1},
			Map: map[int]string{1: "a"}, Any: []any{int64(1)},
			Time: moment, Ptr: &pfive, Keys: map[any]int{"a": 1, int64(2): 2}, Flags: map[bool][]string{true: {"y"}},
		},
	} {
		b := encode(t, v)
		if err := Check(b, Default); err != nil {
			t.Errorf("%T %v: wrote %x: %v", v, v, b, err)
			continue
		}
		got, err := decodeAs(t, reflect.TypeOf(v), b)
		if err != nil {
			t.Errorf("%T %v from %x: %v", v, v, b, err)
			continue
		}
		if !reflect.DeepEqual(got, v) {
			t.Errorf("%T from %x:\n got %#v\nwant %#v", v, b, got, v)
		}
		if again := encode(t, v); !bytes.Equal(again, b) {
			t.Errorf("%T: written as %x and then as %x", v, b, again)
		}
		if len(b) > 300 {
			continue
		}
		for n := range b {
			if _, err := decodeAs(t, reflect.TypeOf(v), b[:n]); err == nil {
				t.Errorf("%T: accepted the first %d bytes of %x", v, n, b)
			}
		}
	}
}

func TestDecodeAny(t *testing.T) {
	for in, want := range map[string]any{
		"c0": nil, "c2": false, "07": int64(7), "e0": int64(-32), "ccff": int64(255),
		"cf7fffffffffffffff": int64(math.MaxInt64),
		"cf8000000000000000": uint64(1 << 63), "ca3fc00000": 1.5, "cb3ff8000000000000": 1.5, "a161": "a",
		"c40161": []byte("a"), "c400": []byte{},
		"d6ff00000001": time.Unix(1, 0).UTC(), "90": []any{}, "9207c0": []any{int64(7), nil}, "80": map[string]any{},
		"81a16107":           map[string]any{"a": int64(7)},
		"81a1619181a162c3":   map[string]any{"a": []any{map[string]any{"b": true}}},
		"810107":             map[any]any{int64(1): int64(7)},
		"83a16107c380cc80a0": map[any]any{"a": int64(7), true: map[string]any{}, int64(128): ""},
	} {
		got, rest, err := DecodeAny(append(unhex(t, in), 0xee))
		if err != nil || !reflect.DeepEqual(got, want) || !bytes.Equal(rest, []byte{0xee}) {
			t.Errorf("%s: got %#v, %x, %v; want %#v", in, got, rest, err, want)
		}
	}
	if v, rest, err := DecodeAny([]byte{0xc1}); v != nil || rest != nil || err == nil {
		t.Errorf("got %v, %x, %v", v, rest, err)
	}
}

// Decode leaves nothing of the previous value in dst, and shares no memory with the input.
func TestDecodeIsFresh(t *testing.T) {
	old := order{
		ID: 9, Email: ptr("old"), Items: []item{{ID: 8, note: "old"}}, Extra: map[string]any{"old": 1},
		Next: &order{},
	}
	kept := old
	in := encode(t, order{ID: 1})
	if _, err := codecOf(t, reflect.TypeFor[order]()).Decode(in, reflect.ValueOf(&old).Elem()); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(old, order{ID: 1}) {
		t.Errorf("got %+v", old)
	}
	if *kept.Email != "old" || kept.Items[0].ID != 8 || len(kept.Extra) != 1 {
		t.Errorf("decoding wrote into what the old value pointed to: %+v", kept)
	}

	for _, v := range []any{
		"text", []byte("data"),
		[]any{"text", []byte("data")},
		map[string]any{"key": "text"},
		named{L: "l", B: blob("b"), I: id16{1}},
		strings.Split(strings.Repeat("words ", 20), " "),
		map[string]string{"a": "b", "c": "d", "e": "f", "g": "h"},
		map[any]any{"a": int64(1), true: "x"},
	} {
		in := encode(t, v)
		got, err := decodeAs(t, reflect.TypeOf(v), in)
		if err != nil {
			t.Fatal(err)
		}
		for i := range in {
			in[i] = 0xee
		}
		if !reflect.DeepEqual(got, v) {
			t.Errorf("%T shares memory with the input: %v", v, got)
		}
	}
}

// Appending to a decoded []byte must not overwrite one that is adjacent in the input.
func TestDecodedBytesAreApart(t *testing.T) {
	var got [][]byte
	if _, err := codecOf(t, reflect.TypeFor[[][]byte]()).Decode(unhex(t, "92c40161c40162"),
		reflect.ValueOf(&got).Elem()); err != nil {
		t.Fatal(err)
	}
	if _ = append(got[0], 'x'); string(got[1]) != "b" {
		t.Errorf("got %q", got)
	}
}

// All empty slices that a codec decodes are copies of one slice; callers must not notice.
func TestDecodedEmptySlicesAreApart(t *testing.T) {
	c := codecOf(t, reflect.TypeFor[[]int]())
	var a, b []int
	for _, dst := range []*[]int{&a, &b} {
		if _, err := c.Decode([]byte{0x90}, reflect.ValueOf(dst).Elem()); err != nil || *dst == nil {
			t.Fatalf("%v, %v", *dst, err)
		}
	}
	a, b = append(a, 1), append(b, 2)
	if a[0] != 1 || b[0] != 2 {
		t.Errorf("got %v and %v", a, b)
	}
}

func TestDecodeRest(t *testing.T) {
	in := unhex(t, "0792a1610305c0")
	var n int
	var l []any
	rest, err := codecOf(t, reflect.TypeFor[int]()).Decode(in, reflect.ValueOf(&n).Elem())
	if err != nil || n != 7 {
		t.Fatal(n, err)
	}
	rest, err = codecOf(t, reflect.TypeFor[[]any]()).Decode(rest, reflect.ValueOf(&l).Elem())
	if err != nil || len(l) != 2 || !bytes.Equal(rest, []byte{5, 0xc0}) {
		t.Errorf("got %v, %x, %v", l, rest, err)
	}
}

func TestDecodeNeedsItsVariable(t *testing.T) {
	c := codecOf(t, reflect.TypeFor[int]())
	var n8 int8
	for _, dst := range []reflect.Value{reflect.ValueOf(7), reflect.ValueOf(&n8).Elem(), {}} {
		if _, err := c.Decode([]byte{7}, dst); err == nil ||
			!strings.Contains(err.Error(), "expected a variable of type int") {
			t.Errorf("%v: %v", dst, err)
		}
	}
}

// Decode bounds the depth even if nobody has called Check.
func TestDecodeDepth(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		open string
		last byte
	}{
		{reflect.TypeFor[any](), "\x91", 0x90},
		{reflect.TypeFor[any](), "\x81\xa1a", 0x80},
		{reflect.TypeFor[any](), "\x81\x01", 0x80},
		{reflect.TypeFor[forest](), "\x91", 0x90},
		{reflect.TypeFor[dict](), "\x81\xa1a", 0x80},
		{reflect.TypeFor[*tree](), "\x93\x01\xc0", 0xc0},
		{reflect.TypeFor[*tree](), "\x83\xa1V\x01\xa1L\xc0\xa1R", 0xc0},
	} {
		ok := append(bytes.Repeat([]byte(c.open), 31), c.last)
		if _, err := decodeAs(t, c.typ, ok); err != nil {
			t.Errorf("%v 32 deep: %v", c.typ, err)
		}
		for _, n := range []int{32, 33, 1 << 20} {
			deep := append(bytes.Repeat([]byte(c.open), n), c.open...)
			_, err := decodeAs(t, c.typ, append(deep, c.last))
			if err == nil || !strings.Contains(err.Error(),
				"expected at most 32 arrays and maps inside one another, found one more") {
				t.Errorf("%v %d deep: %.200v", c.typ, n, err)
			}
		}
	}
}

func TestFromArray(t *testing.T) {
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[[]int](): true, reflect.TypeFor[[2]int](): true, reflect.TypeFor[point](): true,
		reflect.TypeFor[any](): true, reflect.TypeFor[*point](): true,
		reflect.TypeFor[**[]string](): true, reflect.TypeFor[octets](): true, reflect.TypeFor[struct{}](): true,
		reflect.TypeFor[[]byte]():  false,
		reflect.TypeFor[[4]byte](): false, reflect.TypeFor[int](): false, reflect.TypeFor[string](): false,
		reflect.TypeFor[map[string]int](): false,
		reflect.TypeFor[time.Time]():      false, reflect.TypeFor[*time.Time](): false, reflect.TypeFor[*int](): false,
	} {
		if got := codecOf(t, typ).FromArray(); got != want {
			t.Errorf("%v: %v", typ, got)
		}
	}
}

func TestArrayHeader(t *testing.T) {
	if n, rest, ok := ArrayHeader([]byte{0x92, 1, 2}); n != 2 || len(rest) != 2 || !ok {
		t.Errorf("got %d, %x, %v", n, rest, ok)
	}
	for _, in := range []string{"", "92", "9201", "80", "c0", "dcffff", "dd"} {
		if n, rest, ok := ArrayHeader(unhex(t, in)); n != 0 || rest != nil || ok {
			t.Errorf("%s: got %d, %x, %v", in, n, rest, ok)
		}
	}
	for _, n := range []int{0, 15, 16, 65535, 65536} {
		got, rest, ok := ArrayHeader(append(AppendArrayHeader(nil, n), make([]byte, n)...))
		if got != n || len(rest) != n || !ok {
			t.Errorf("%d: got %d, %d, %v", n, got, len(rest), ok)
		}
	}
}

// Depth returns the depth of the deepest value of a type, and Check accepts such a value only with at least that depth.
func TestCodecDepth(t *testing.T) {
	for _, c := range []struct {
		v       any // as deep as its type allows
		depth   int
		bounded bool
	}{
		{5, 0, true},
		{"s", 0, true},
		{[]byte("b"), 0, true},
		{[3]byte{}, 0, true},
		{time.Unix(1, 0), 0, true},
		{ptr(5), 0, true},
		{[]int{1}, 1, true},
		{[1][]int{{1}}, 2, true},
		{map[string][]int{"a": {1}}, 2, true},
		{point{1, 2}, 1, true},
		{[]*point{{1, 2}}, 2, true},
		{item{}, 2, true},
		{[]any{1}, 0, false},
		{map[any]int{1: 1}, 0, false},
		{order{}, 0, false},
		{tree{}, 0, false},
	} {
		codec := codecOf(t, reflect.TypeOf(c.v))
		depth, bounded := codec.Depth()
		if depth != c.depth || bounded != c.bounded {
			t.Errorf("%T: %d, %v, expected %d, %v", c.v, depth, bounded, c.depth, c.bounded)
		}
		if lim := (Limits{Bytes: maxBytes, Elems: maxElems, Depth: depth, Path: maxPath}); bounded &&
			Check(encode(t, c.v), lim) != nil {
			t.Errorf("%T is deeper than %d", c.v, depth)
		}
	}
}
