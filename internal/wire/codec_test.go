package wire

import (
	"bytes"
	"errors"
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

// encode writes v by its static type, or its dynamic one if T is any.
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
		true, false, flag(true), int8(-128), int8(127), int16(-129), int32(math.MinInt32), int64(math.MinInt64), int64(math.MaxInt64), 0, -1, -32, -33, 127, 128,
		uint8(255), uint16(256), uint32(65536), uint64(math.MaxUint64), uint(1 << 32), color(7), secs(-5),
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
			ID: 1, Email: ptr("a@b"), Items: []item{{ID: 2}, {ID: 3, Tags: []string{}}}, Extra: map[string]any{"k": int64(1)}, Placed: moment,
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
			Bool: true, I8: -1, U64: 1 << 63, F32: 0.5, Str: "s", Bin: []byte{0}, Arr: [2]int16{1, -1}, Map: map[int]string{1: "a"}, Any: []any{int64(1)},
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

// strict are values that must be refused, with the words that say so.
var strictCases = []struct {
	name string
	typ  reflect.Type
	in   string
	want string
}{
	{"300 into uint8", reflect.TypeFor[uint8](), "cd012c", "expected uint8, found integer 300, out of range"},
	{"256 into a named uint8", reflect.TypeFor[color](), "cd0100", "expected wire.color, found integer 256, out of range"},
	{"-1 into uint", reflect.TypeFor[uint](), "ff", "expected uint, found integer -1, out of range"},
	{"-1 into uint64", reflect.TypeFor[uint64](), "d3ffffffffffffffff", "expected uint64, found integer -1, out of range"},
	{"128 into int8", reflect.TypeFor[int8](), "cc80", "found integer 128, out of range"},
	{"-129 into int8", reflect.TypeFor[int8](), "d1ff7f", "found integer -129, out of range"},
	{"2^31 into int32", reflect.TypeFor[int32](), "ce80000000", "found integer 2147483648, out of range"},
	{"2^63 into int64", reflect.TypeFor[int64](), "cf8000000000000000", "found integer 9223372036854775808, out of range"},
	{"2^64-1 into int", reflect.TypeFor[int](), "cfffffffffffffffff", "found integer 18446744073709551615, out of range"},
	{"1.5 into int", reflect.TypeFor[int](), "cb3ff8000000000000", "expected int, found float 1.5"},
	{"1.0 into int", reflect.TypeFor[int](), "cb3ff0000000000000", "expected int, found float 1"},
	{"NaN into uint", reflect.TypeFor[uint](), "cb7ff8000000000000", "expected uint, found float NaN"},
	{"true into int", reflect.TypeFor[int](), "c3", "expected int, found true"},
	{"1 into bool", reflect.TypeFor[bool](), "01", "expected bool, found integer 1"},
	{"nil into bool", reflect.TypeFor[bool](), "c0", "expected bool, found nil"},
	{"nil into int", reflect.TypeFor[int](), "c0", "expected int, found nil"},
	{"nil into float64", reflect.TypeFor[float64](), "c0", "expected float64, found nil"},
	{"nil into string", reflect.TypeFor[string](), "c0", "expected string, found nil"},
	{"nil into struct", reflect.TypeFor[point](), "c0", "expected wire.point (array of 2 values, or map), found nil"},
	{"nil into array", reflect.TypeFor[[2]int](), "c0", "expected [2]int (array of 2 values), found nil"},
	{"nil into [n]byte", reflect.TypeFor[[2]byte](), "c0", "expected [2]uint8 (binary of 2 bytes), found nil"},
	{"nil into time", reflect.TypeFor[time.Time](), "c0", "expected time.Time (timestamp), found nil"},
	{"nil among ints", reflect.TypeFor[[]int](), "9201c0", "at [1]: expected int, found nil"},
	{"2^53+1 into float64", reflect.TypeFor[float64](), "cf0020000000000001", "expected float64, found integer 9007199254740993, which it cannot hold exactly"},
	{"-(2^53+1) into float64", reflect.TypeFor[float64](), "d3ffdfffffffffffff", "found integer -9007199254740993, which it cannot hold exactly"},
	{"2^64-1 into float64", reflect.TypeFor[float64](), "cfffffffffffffffff", "which it cannot hold exactly"},
	{"2^24+1 into float32", reflect.TypeFor[float32](), "ce01000001", "expected float32, found integer 16777217, which it cannot hold exactly"},
	{"0.1 into float32", reflect.TypeFor[float32](), "cb3fb999999999999a", "expected float32, found float 0.1, which it cannot hold exactly"},
	{"1e300 into float32", reflect.TypeFor[float32](), "cb7e37e43c8800759c", "which it cannot hold exactly"},
	{"string into float", reflect.TypeFor[float64](), "a131", "expected float64, found string of 1 byte"},
	{"binary into string", reflect.TypeFor[string](), "c40161", "expected string, found binary of 1 byte"},
	{"integer into string", reflect.TypeFor[string](), "07", "expected string, found integer 7"},
	{"string that is not UTF-8", reflect.TypeFor[string](), "a2c328", "expected string, found string of 2 bytes that is not UTF-8"},
	{"string into []byte", reflect.TypeFor[[]byte](), "a161", "expected []uint8 (binary), found string of 1 byte"},
	{"array into []byte", reflect.TypeFor[[]byte](), "9101", "expected []uint8 (binary), found array of 1 value"},
	{"binary into []int", reflect.TypeFor[[]int](), "c40101", "expected []int (array), found binary of 1 byte"},
	{"string into []string", reflect.TypeFor[[]string](), "a161", "expected []string (array), found string of 1 byte"},
	{"binary of 1 into [2]byte", reflect.TypeFor[[2]byte](), "c40101", "expected [2]uint8 (binary of 2 bytes), found binary of 1 byte"},
	{"array into [2]byte", reflect.TypeFor[[2]byte](), "920102", "found array of 2 values"},
	{"array of 1 into [2]int", reflect.TypeFor[[2]int](), "9101", "expected [2]int (array of 2 values), found array of 1 value"},
	{"array of 3 into [2]int", reflect.TypeFor[[2]int](), "93010203", "found array of 3 values"},
	{"map into []int", reflect.TypeFor[[]int](), "80", "expected []int (array), found map of 0 pairs"},
	{"array into map", reflect.TypeFor[map[string]int](), "90", "expected map[string]int (map), found array of 0 values"},
	{"integer key for string", reflect.TypeFor[map[string]int](), "810101", "at [pair 0].key: expected string, found integer 1"},
	{"string key for integer", reflect.TypeFor[map[int8]int](), "81a16101", "at [pair 0].key: expected int8, found string of 1 byte"},
	{"300 as int8 key", reflect.TypeFor[map[int8]int](), "81cd012c01", "at [pair 0].key: expected int8, found integer 300, out of range"},
	{"a key twice", reflect.TypeFor[map[string]*int](), "82a161c0a161c0", "at [pair 1].key: expected each key of a map once, found the same key again"},
	{"an integer key twice, of different width", reflect.TypeFor[map[int]int](), "820101cc0102", "at [pair 1].key: expected each key of a map once"},
	{"a key twice in the library", reflect.TypeFor[map[string]int](), "85a16101a16202a16303a16404a16105", "expected each key of a map once, found one of them again"},
	{"a key twice inside", reflect.TypeFor[map[string]map[string]any](), "81a16b82a16101a16102", "at [pair 0][pair 1].key: expected each key of a map once"},
	{"a key twice in an any", reflect.TypeFor[any](), "9182a16101a16102", "at [0][pair 1].key: expected each key of a map once"},
	{"an integer key twice in an any", reflect.TypeFor[any](), "830101a16101cc0101", "at [pair 2].key: expected each key of a map once"},
	{"a string key twice around another in an any", reflect.TypeFor[any](), "83a161010101a16102", "at [pair 2].key: expected each key of a map once"},
	{"nil value in a map", reflect.TypeFor[map[string]int](), "81a161c0", "at [pair 0]: expected int, found nil"},
	{"too few fields", reflect.TypeFor[point](), "9101", "expected wire.point (array of 2 values, or map), found array of 1 value"},
	{"too many fields", reflect.TypeFor[point](), "93010203", "found array of 3 values"},
	{"string into struct", reflect.TypeFor[point](), "a158", "expected wire.point (array of 2 values, or map), found string of 1 byte"},
	{"timestamp into struct", reflect.TypeFor[point](), "d6ff00000000", "found timestamp"},
	{"a field of the wrong kind", reflect.TypeFor[point](), "9201a132", "at .Y: expected int, found string of 1 byte"},
	{"a key missing", reflect.TypeFor[point](), "81a15801", `expected the key "Y" of wire.point, found a map without it`},
	{"all keys missing", reflect.TypeFor[point](), "80", `expected the key "X" of wire.point, found a map without it`},
	{"a key unknown", reflect.TypeFor[point](), "83a15801a15902a15a03", `expected a key of wire.point, found the key "Z"`},
	{"a long key unknown", reflect.TypeFor[point](), "81d93c" + strings.Repeat("61", 60) + "01", `found the key "` + strings.Repeat("a", 40) + `" and 20 bytes more`},
	{"a field's name where it has a tag", reflect.TypeFor[item](), "84a2494401a44e616d65a161a5507269636501a454616773c0", `found the key "Name"`},
	{"a field that stays at home", reflect.TypeFor[item](), "81a46e6f7465a161", `found the key "note"`},
	{"a field's key twice", reflect.TypeFor[point](), "82a15801a15802", `expected each key once, found the key "X" again`},
	{"a struct's key that is a number", reflect.TypeFor[point](), "820101a15802", "expected a string as key for wire.point, found integer 1"},
	{"the value of a key", reflect.TypeFor[point](), "82a15801a159c0", "at .Y: expected int, found nil"},
	{"deep inside", reflect.TypeFor[order](), "9601c0929401a161cb0000000000000000c0940105cb0000000000000000c0c0d6ff00000000c0", "at .Items[1].Name: expected string, found integer 5"},
	{"text for a time", reflect.TypeFor[time.Time](), "aa323032342d30312d3031", "expected time.Time (timestamp), found string of 10 bytes"},
	{"an integer for a time", reflect.TypeFor[time.Time](), "ce65920080", "expected time.Time (timestamp), found integer"},
	{"another extension for a time", reflect.TypeFor[time.Time](), "d60500000000", "expected time.Time (timestamp), found extension type 5"},
	{"a time beyond all", reflect.TypeFor[time.Time](), "c70cff000000007fffffffffffffff", "found timestamp that is out of range or cut off"},
	{"an extension in an any", reflect.TypeFor[any](), "91d40500", "at [0]: expected a value, found extension type 5"},
	{"broken text in an any", reflect.TypeFor[any](), "81a161a1ff", "at [pair 0]: expected a string in UTF-8, found string of 1 byte that is not UTF-8"},
	{"a nil key in an any", reflect.TypeFor[any](), "81c001", "at [pair 0].key: expected a string, integer or boolean as map key, found nil"},
	{"a broken key in an any", reflect.TypeFor[any](), "81a1ff01", "at [pair 0].key: expected a string, integer or boolean as map key"},
	{"a float key for any", reflect.TypeFor[map[any]int](), "81cb000000000000000001", "at [pair 0].key: expected a string, integer or boolean as map key, found float 0"},
	{"a pointer's value", reflect.TypeFor[*uint8](), "cd0100", "expected uint8, found integer 256"},
	{"a pointer to a pointer's value", reflect.TypeFor[**string](), "07", "expected string, found integer 7"},
	{"a struct with fields into struct{}", reflect.TypeFor[struct{}](), "9101", "expected struct {} (array of 0 values, or map), found array of 1 value"},
	{"a map with pairs into struct{}", reflect.TypeFor[struct{}](), "81a16101", `found the key "a"`},
	{"nothing", reflect.TypeFor[any](), "", "expected a value, found the end of the bytes"},
	{"nothing for a number", reflect.TypeFor[int](), "", "expected int, found the end of the bytes"},
	{"the byte that is never used", reflect.TypeFor[any](), "c1", "expected a value, found byte 0xc1"},
}

func TestDecodeIsStrict(t *testing.T) {
	for _, c := range strictCases {
		in := unhex(t, c.in)
		dst := reflect.New(c.typ).Elem()
		rest, err := codecOf(t, c.typ).Decode(in, dst)
		var ve *ValueError
		if !errors.As(err, &ve) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s (%s): got %v, want %q", c.name, c.in, err, c.want)
		}
		if rest != nil || !dst.IsZero() {
			t.Errorf("%s: rest %x, value %v beside the error", c.name, rest, dst)
		}
	}
}

// What differs from the usual bytes and must be understood all the same.
func TestDecodeAccepts(t *testing.T) {
	seven := 7
	for _, c := range []struct {
		in   string
		want any
	}{
		{"cf0000000000000007", int8(7)},
		{"d30000000000000007", uint8(7)},
		{"d0ff", int64(-1)},
		{"cc07", 7},
		{"d10080", uint8(128)},
		{"d3ffffffffffffffff", int8(-1)},
		{"cb3ff8000000000000", float32(1.5)},
		{"ca3fc00000", 1.5},
		{"07", 7.0},
		{"ff", float32(-1)},
		{"cf0020000000000000", float64(1 << 53)},
		{"cf8000000000000000", float64(1 << 63)},
		{"d38000000000000000", -float64(1 << 63)},
		{"cf8000000000000000", float32(1 << 63)},
		{"ce01000000", float32(1 << 24)},
		{"cb7ff0000000000000", float32(math.Inf(1))},
		{"00", float32(0)},
		{"db0000000161", "a"},
		{"c60000000101", []byte{1}},
		{"dd0000000101", []int{1}},
		{"df00000001a16101", map[string]int{"a": 1}},
		{"82a15801a15902", point{1, 2}},
		{"82a15902a15801", point{1, 2}},
		{"9282a15801a15902920304", []point{{1, 2}, {3, 4}}},
		{"83a2494401a46e616d65a16ea5507269636502", item{ID: 1, Name: "n", Price: 2}},
		{"84a454616773c0a2494401a46e616d65a16ea5507269636502", item{ID: 1, Name: "n", Price: 2}},
		{"80", struct{}{}},
		{"90", struct{}{}},
		{"80", empty{}},
		{"07", ptr(&seven)},
		{"9101", []color{1}},
		{"9107", [1]any{int64(7)}},
		{"d7ff00000000" + "00000001", time.Unix(1, 0).UTC()},
		{"c70cff000000000000000000000001", time.Unix(1, 0).UTC()},
		{"c70cff00000000fffffff1886e0900", time.Time{}},
		{"83a54f776e657281a357686fa16da6506172656e74c0a14e05", embedded{Owner: Owner{"m"}, N: 5}},
		{"dc0010" + strings.Repeat("cb3ff0000000000000", 16), []float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
		{"dc0010" + strings.Repeat("07", 16), []float64{7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7}},
	} {
		got, err := decodeAs(t, reflect.TypeOf(c.want), unhex(t, c.in))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%T from %s: got %#v, %v; want %#v", c.want, c.in, got, err, c.want)
		}
	}
	got, err := decodeAs(t, reflect.TypeFor[float32](), unhex(t, "cb7ff8000000000000"))
	if f, _ := got.(float32); err != nil || f == f {
		t.Errorf("NaN as float32: %v, %v", got, err)
	}
}

func TestDecodeAny(t *testing.T) {
	for in, want := range map[string]any{
		"c0": nil, "c2": false, "07": int64(7), "e0": int64(-32), "ccff": int64(255), "cf7fffffffffffffff": int64(math.MaxInt64),
		"cf8000000000000000": uint64(1 << 63), "ca3fc00000": 1.5, "cb3ff8000000000000": 1.5, "a161": "a", "c40161": []byte("a"), "c400": []byte{},
		"d6ff00000001": time.Unix(1, 0).UTC(), "90": []any{}, "9207c0": []any{int64(7), nil}, "80": map[string]any{}, "81a16107": map[string]any{"a": int64(7)},
		"81a1619181a162c3": map[string]any{"a": []any{map[string]any{"b": true}}}, "810107": map[any]any{int64(1): int64(7)},
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

// Nothing of the previous value shows through, and nothing shares memory with the input.
func TestDecodeIsFresh(t *testing.T) {
	old := order{ID: 9, Email: ptr("old"), Items: []item{{ID: 8, note: "old"}}, Extra: map[string]any{"old": 1}, Next: &order{}}
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

// Slices of bytes that stand side by side in the input must not grow into one another.
func TestDecodedBytesAreApart(t *testing.T) {
	var got [][]byte
	if _, err := codecOf(t, reflect.TypeFor[[][]byte]()).Decode(unhex(t, "92c40161c40162"), reflect.ValueOf(&got).Elem()); err != nil {
		t.Fatal(err)
	}
	if _ = append(got[0], 'x'); string(got[1]) != "b" {
		t.Errorf("got %q", got)
	}
}

// One slice of length 0 serves all decodes of a type; that must not show.
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
		if _, err := c.Decode([]byte{7}, dst); err == nil || !strings.Contains(err.Error(), "expected a variable of type int") {
			t.Errorf("%v: %v", dst, err)
		}
	}
}

// Depth is bounded even when nobody has called Check.
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
			if err == nil || !strings.Contains(err.Error(), "expected at most 32 arrays and maps inside one another, found one more") {
				t.Errorf("%v %d deep: %.200v", c.typ, n, err)
			}
		}
	}
}

func TestFromArray(t *testing.T) {
	for typ, want := range map[reflect.Type]bool{
		reflect.TypeFor[[]int](): true, reflect.TypeFor[[2]int](): true, reflect.TypeFor[point](): true, reflect.TypeFor[any](): true, reflect.TypeFor[*point](): true,
		reflect.TypeFor[**[]string](): true, reflect.TypeFor[octets](): true, reflect.TypeFor[struct{}](): true, reflect.TypeFor[[]byte](): false,
		reflect.TypeFor[[4]byte](): false, reflect.TypeFor[int](): false, reflect.TypeFor[string](): false, reflect.TypeFor[map[string]int](): false,
		reflect.TypeFor[time.Time](): false, reflect.TypeFor[*time.Time](): false, reflect.TypeFor[*int](): false,
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

// Depth is that of the deepest value, and of a value that has it Check accepts no less.
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
		if lim := (Limits{Bytes: maxBytes, Elems: maxElems, Depth: depth, Path: maxPath}); bounded && Check(encode(t, c.v), lim) != nil {
			t.Errorf("%T is deeper than %d", c.v, depth)
		}
	}
}
