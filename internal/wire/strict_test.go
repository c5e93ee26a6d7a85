package wire

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

// strictCases are values that Decode must refuse, with the words of the error.
var strictCases = []struct {
	name string
	typ  reflect.Type
	in   string
	want string
}{
	{"300 into uint8", reflect.TypeFor[uint8](), "cd012c", "expected uint8, found integer, out of range"},
	{"256 into a named uint8", reflect.TypeFor[color](), "cd0100", "expected wire.color, found integer, out of range"},
	{"-1 into uint", reflect.TypeFor[uint](), "ff", "expected uint, found integer, out of range"},
	{"-1 into uint64", reflect.TypeFor[uint64](), "d3ffffffffffffffff", "expected uint64, found integer, out of range"},
	{"128 into int8", reflect.TypeFor[int8](), "cc80", "found integer, out of range"},
	{"-129 into int8", reflect.TypeFor[int8](), "d1ff7f", "found integer, out of range"},
	{"2^31 into int32", reflect.TypeFor[int32](), "ce80000000", "found integer, out of range"},
	{"2^63 into int64", reflect.TypeFor[int64](), "cf8000000000000000", "found integer, out of range"},
	{"2^64-1 into int", reflect.TypeFor[int](), "cfffffffffffffffff", "found integer, out of range"},
	{"1.5 into int", reflect.TypeFor[int](), "cb3ff8000000000000", "expected int, found float"},
	{"1.0 into int", reflect.TypeFor[int](), "cb3ff0000000000000", "expected int, found float"},
	{"NaN into uint", reflect.TypeFor[uint](), "cb7ff8000000000000", "expected uint, found float"},
	{"true into int", reflect.TypeFor[int](), "c3", "expected int, found boolean"},
	{"1 into bool", reflect.TypeFor[bool](), "01", "expected bool, found integer"},
	{"nil into bool", reflect.TypeFor[bool](), "c0", "expected bool, found nil"},
	{"nil into int", reflect.TypeFor[int](), "c0", "expected int, found nil"},
	{"nil into float64", reflect.TypeFor[float64](), "c0", "expected float64, found nil"},
	{"nil into string", reflect.TypeFor[string](), "c0", "expected string, found nil"},
	{"nil into struct", reflect.TypeFor[point](), "c0", "expected wire.point (map, or array of 2 values), found nil"},
	{"nil into array", reflect.TypeFor[[2]int](), "c0", "expected [2]int (array of 2 values), found nil"},
	{"nil into [n]byte", reflect.TypeFor[[2]byte](), "c0", "expected [2]uint8 (binary of 2 bytes), found nil"},
	{"nil into time", reflect.TypeFor[time.Time](), "c0", "expected time.Time (timestamp), found nil"},
	{"nil among ints", reflect.TypeFor[[]int](), "9201c0", "at [1]: expected int, found nil"},
	{
		"2^53+1 into float64", reflect.TypeFor[float64](), "cf0020000000000001",
		"expected float64, found integer, which it cannot hold exactly",
	},
	{
		"-(2^53+1) into float64", reflect.TypeFor[float64](), "d3ffdfffffffffffff",
		"found integer, which it cannot hold exactly",
	},
	{"2^64-1 into float64", reflect.TypeFor[float64](), "cfffffffffffffffff", "which it cannot hold exactly"},
	{
		"2^24+1 into float32", reflect.TypeFor[float32](), "ce01000001",
		"expected float32, found integer, which it cannot hold exactly",
	},
	{
		"0.1 into float32", reflect.TypeFor[float32](), "cb3fb999999999999a",
		"expected float32, found float, which it cannot hold exactly",
	},
	{"1e300 into float32", reflect.TypeFor[float32](), "cb7e37e43c8800759c", "which it cannot hold exactly"},
	{"string into float", reflect.TypeFor[float64](), "a131", "expected float64, found string of 1 byte"},
	{"binary into string", reflect.TypeFor[string](), "c40161", "expected string, found binary of 1 byte"},
	{"integer into string", reflect.TypeFor[string](), "07", "expected string, found integer"},
	{
		"string that is not UTF-8", reflect.TypeFor[string](), "a2c328",
		"expected string, found string of 2 bytes that is not UTF-8",
	},
	{"string into []byte", reflect.TypeFor[[]byte](), "a161", "expected []uint8 (binary), found string of 1 byte"},
	{"array into []byte", reflect.TypeFor[[]byte](), "9101", "expected []uint8 (binary), found array of 1 value"},
	{"binary into []int", reflect.TypeFor[[]int](), "c40101", "expected []int (array), found binary of 1 byte"},
	{"string into []string", reflect.TypeFor[[]string](), "a161", "expected []string (array), found string of 1 byte"},
	{
		"binary of 1 into [2]byte", reflect.TypeFor[[2]byte](), "c40101",
		"expected [2]uint8 (binary of 2 bytes), found binary of 1 byte",
	},
	{"array into [2]byte", reflect.TypeFor[[2]byte](), "920102", "found array of 2 values"},
	{
		"array of 1 into [2]int", reflect.TypeFor[[2]int](), "9101",
		"expected [2]int (array of 2 values), found array of 1 value",
	},
	{"array of 3 into [2]int", reflect.TypeFor[[2]int](), "93010203", "found array of 3 values"},
	{"map into []int", reflect.TypeFor[[]int](), "80", "expected []int (array), found map of 0 pairs"},
	{
		"array into map", reflect.TypeFor[map[string]int](), "90",
		"expected map[string]int (map), found array of 0 values",
	},
	{
		"integer key for string", reflect.TypeFor[map[string]int](), "810101",
		"at [pair 0].key: expected string, found integer",
	},
	{
		"string key for integer", reflect.TypeFor[map[int8]int](), "81a16101",
		"at [pair 0].key: expected int8, found string of 1 byte",
	},
	{
		"300 as int8 key", reflect.TypeFor[map[int8]int](), "81cd012c01",
		"at [pair 0].key: expected int8, found integer, out of range",
	},
	{
		"a key twice", reflect.TypeFor[map[string]*int](), "82a161c0a161c0",
		"at [pair 1].key: expected each key of a map once, found the same key again",
	},
	{
		"an integer key twice, of different width", reflect.TypeFor[map[int]int](), "820101cc0102",
		"at [pair 1].key: expected each key of a map once",
	},
	{
		"a key twice in the library", reflect.TypeFor[map[string]int](), "85a16101a16202a16303a16404a16105",
		"expected each key of a map once, found one of them again",
	},
	{
		"a key twice inside", reflect.TypeFor[map[string]map[string]any](), "81a16b82a16101a16102",
		"at [pair 0][pair 1].key: expected each key of a map once",
	},
	{
		"a key twice in an any", reflect.TypeFor[any](), "9182a16101a16102",
		"at [0][pair 1].key: expected each key of a map once",
	},
	{
		"an integer key twice in an any", reflect.TypeFor[any](), "830101a16101cc0101",
		"at [pair 2].key: expected each key of a map once",
	},
	{
		"a string key twice around another in an any", reflect.TypeFor[any](), "83a161010101a16102",
		"at [pair 2].key: expected each key of a map once",
	},
	{"nil value in a map", reflect.TypeFor[map[string]int](), "81a161c0", "at [pair 0]: expected int, found nil"},
	{
		"too few fields", reflect.TypeFor[point](), "9101",
		"expected wire.point (map, or array of 2 values), found array of 1 value",
	},
	{"too many fields", reflect.TypeFor[point](), "93010203", "found array of 3 values"},
	{
		"string into struct", reflect.TypeFor[point](), "a158",
		"expected wire.point (map, or array of 2 values), found string of 1 byte",
	},
	{"timestamp into struct", reflect.TypeFor[point](), "d6ff00000000", "found timestamp"},
	{"a field of the wrong kind", reflect.TypeFor[point](), "9201a132", "at .Y: expected int, found string of 1 byte"},
	{
		"a key unknown", reflect.TypeFor[point](), "83a15801a15902a15a03",
		`expected a key of wire.point, found the key "Z"`,
	},
	{
		"a long key unknown", reflect.TypeFor[point](), "81d93c" + strings.Repeat("61", 60) + "01",
		`found the key "` + strings.Repeat("a", 40) + `" and 20 bytes more`,
	},
	{
		"a field's name where it has a tag", reflect.TypeFor[item](),
		"84a2494401a44e616d65a161a5507269636501a454616773c0",
		`found the key "Name"`,
	},
	{"a field that stays at home", reflect.TypeFor[item](), "81a46e6f7465a161", `found the key "note"`},
	{
		"a field's key twice", reflect.TypeFor[point](), "82a15801a15802",
		`expected each key once, found the key "X" again`,
	},
	{
		"a struct's key that is a number", reflect.TypeFor[point](), "820101a15802",
		"expected a string as key for wire.point, found integer",
	},
	{"the value of a key", reflect.TypeFor[point](), "82a15801a159c0", "at .Y: expected int, found nil"},
	{
		"deep inside", reflect.TypeFor[order](),
		"9601c0929401a161cb0000000000000000c0940105cb0000000000000000c0c0d6ff00000000c0",
		"at .Items[1].Name: expected string, found integer",
	},
	{
		"text for a time", reflect.TypeFor[time.Time](), "aa323032342d30312d3031",
		"expected time.Time (timestamp), found string of 10 bytes",
	},
	{
		"an integer for a time", reflect.TypeFor[time.Time](), "ce65920080",
		"expected time.Time (timestamp), found integer",
	},
	{
		"another extension for a time", reflect.TypeFor[time.Time](), "d60500000000",
		"expected time.Time (timestamp), found extension type 5",
	},
	{
		"a time beyond all", reflect.TypeFor[time.Time](), "c70cff000000007fffffffffffffff",
		"found timestamp that is out of range or cut off",
	},
	{"an extension in an any", reflect.TypeFor[any](), "91d40500", "at [0]: expected a value, found extension type 5"},
	{
		"broken text in an any", reflect.TypeFor[any](), "81a161a1ff",
		"at [pair 0]: expected a string in UTF-8, found string of 1 byte that is not UTF-8",
	},
	{
		"a nil key in an any", reflect.TypeFor[any](), "81c001",
		"at [pair 0].key: expected a string, integer or boolean as map key, found nil",
	},
	{
		"a broken key in an any", reflect.TypeFor[any](), "81a1ff01",
		"at [pair 0].key: expected a string, integer or boolean as map key",
	},
	{
		"a float key for any", reflect.TypeFor[map[any]int](), "81cb000000000000000001",
		"at [pair 0].key: expected a string, integer or boolean as map key, found float",
	},
	{"a pointer's value", reflect.TypeFor[*uint8](), "cd0100", "expected uint8, found integer"},
	{"a pointer to a pointer's value", reflect.TypeFor[**string](), "07", "expected string, found integer"},
	{
		"a struct with fields into struct{}", reflect.TypeFor[struct{}](), "9101",
		"expected struct {} (map, or array of 0 values), found array of 1 value",
	},
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

// Decode accepts values that differ from the bytes that Append writes.
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
		{
			"dc0010" + strings.Repeat("cb3ff0000000000000", 16),
			[]float32{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
		},
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
