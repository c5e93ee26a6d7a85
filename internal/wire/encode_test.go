package wire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/shamaton/msgpack/v2"
)

// go-delayed writes arguments with the library's MarshalAsArray. By position we write the same bytes. Values without
// structs have the same bytes in both forms.
func TestEncodeAsTheLibrary(t *testing.T) {
	five := 5
	for _, v := range []any{
		true, int8(-5), int64(1 << 40), int64(math.MinInt64), uint64(math.MaxUint64), float32(1.25), 2.5, "", "text",
		strings.Repeat("x", 40), strings.Repeat("x", 400),
		strings.Repeat("x", 70000),
		[]byte{1},
		make([]byte, 300), make([]byte, 70000),
		[3]byte{1, 2, 3},
		octets{1, 200},
		[]int{1, -1, 1000},
		make([]string, 20), make([]int8, 70000/2),
		[]float32{1},
		[2]string{"a", "b"},
		[][]int{{1}, nil},
		[]int(nil),
		[]any{1, "a", nil, 2.5, []byte{1}},
		&five,
		[]*int{&five, nil},
		map[string]int{"a": 1},
		map[int]bool{1: true},
		map[string]any(nil),
		map[string][]string{"k": {"v"}},
		point{1, 2},
		&point{1, 2},
		[]point{{1, 2}},
		item{ID: 1, Name: "n", Tags: []string{"t"}},
		item{},
		order{ID: 1, Items: []item{{}}, Extra: map[string]any{"k": 1}, Placed: time.Unix(1, 5), Next: &order{}},
		embedded{Parent: &Parent{3}},
		tree{1, &tree{2, nil, nil}, nil},
		many{},
		named{L: "x", B: blob{}, O: octets{1}},
		[]empty{{}},
		struct{}{},
		time.Unix(0, 0), time.Unix(1, 1), time.Unix(math.MaxUint32+1, 0), time.Unix(1<<34-1, 999999999),
		time.Unix(1<<34, 0), time.Unix(-1, 0),
		time.Time{},
	} {
		want, err := msgpack.MarshalAsArray(v)
		if err != nil {
			t.Fatal(err)
		}
		rv := reflect.ValueOf(v)
		got, structs, err := codecOf(t, rv.Type()).AppendAs(ByPosition, nil, rv)
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%T %v:\n got %x, %v\nwant %x", v, v, got, err, want)
		}
		if named := encode(t, v); structs == bytes.Equal(got, named) {
			t.Errorf("%T %v: holds a struct: %v, but by name it is %x", v, v, structs, named)
		}
	}
}

// Equal maps give equal bytes, because Append sorts the pairs by the bytes of their keys.
func TestEncodeMapsInOrder(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{map[string]int{"b": 1, "a": 2, "aa": 3, "": 4}, "84a004a16102a16201a2616103"},
		{map[int]string{3: "c", -1: "n", 1: "a", 200: "d"}, "8401a16103a163ccc8a164ffa16e"},
		{map[bool]int{true: 1, false: 0}, "82c200c301"},
		{map[any]any{"k": nil, 7: map[any]any{2: 2, 1: 1}, true: "x"}, "8307820101020" + "2a16bc0c3a178"},
	} {
		for range 10 {
			if got := hex.EncodeToString(encode(t, c.v)); got != c.want {
				t.Errorf("%v: got %s, want %s", c.v, got, c.want)
			}
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	type ring struct{ Next *ring }
	var loop ring
	loop.Next = &loop
	inSlice := []any{nil}
	inSlice[0] = inSlice
	inMap := map[string]any{}
	inMap["a"] = map[string]any{"b": inMap}
	var alone any
	alone = &alone
	selfSlice := make(forest, 1)
	selfSlice[0] = selfSlice
	selfMap := dict{}
	selfMap["d"] = selfMap
	var deep any = 1
	for range 33 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		name string
		v    any
		want string
	}{
		{
			"a struct in itself", loop,
			"expected at most 32 arrays and maps inside one another, found one more, or a value that contains itself",
		},
		{"a slice in itself", inSlice, "at most 32 arrays"},
		{"a named slice in itself", selfSlice, "at most 32 arrays"},
		{"a map in itself", inMap, "at most 32 arrays"},
		{"a named map in itself", selfMap, "at most 32 arrays"},
		{"an interface in itself", []any{alone}, "at [0]: expected a value that ends, found pointers in a ring"},
		{"33 slices", deep, "at most 32 arrays"},
		{"65,537 values", make([]int, 65536), "at [65535]: expected at most 65536 values, found more"},
		{
			"65,537 values in parts",
			[][]int{make([]int, 40000), make([]int, 40000)},
			"at [1][25533]: expected at most 65536 values",
		},
		{
			"65,539 values with the keys of structs", make([]struct{ A int }, 21846),
			"at [21845]: expected at most 65536 values",
		},
		{"65,537 values of any", make([]any, 65536), "at [65535]: expected at most 65536 values"},
		{"a string of 1 MiB and a byte", strings.Repeat("x", 1<<20+1), "expected at most 1048576 bytes, found more"},
		{"a string of 1 MiB", strings.Repeat("x", 1<<20), "expected at most 1048576 bytes"},
		{
			"1 MiB in parts",
			[]string{strings.Repeat("x", 1<<19), strings.Repeat("x", 1<<19)},
			"at [1]: expected at most 1048576 bytes",
		},
		{"1 MiB of binary", [][]byte{make([]byte, 1<<20)}, "at [0]: expected at most 1048576 bytes"},
		{"1 MiB of array", new([1 << 20]byte), "expected at most 1048576 bytes"},
		{
			"text that is not UTF-8",
			[]string{"ok", "\xff"},
			"at [1]: expected string in UTF-8, found string of 1 byte that is not UTF-8; send it as []byte",
		},
		{"text that is not UTF-8 as key", map[string]int{"\xff": 1}, "at [pair 0].key: expected string in UTF-8"},
		{"text that is not UTF-8 in a field", named{L: "\xff"}, "at .L: expected wire.label in UTF-8"},
		{"text that is not UTF-8 in a map", map[string]any{"k": "\xff"}, "at [pair 0]: expected string in UTF-8"},
		{
			"a function in an any",
			[]any{1, func() {}},
			"at [1]: expected a value that can travel, found another: func() cannot travel in a task",
		},
		{
			"an error in an any",
			map[string]any{"e": errors.New("x")},
			"at [pair 0]: expected a value that can travel, found another: errors.errorString",
		},
		{
			"a float as key",
			map[any]int{1.5: 1},
			"at [pair 0].key: expected a string, integer or boolean as map key, found float64",
		},
		{"nil as key", map[any]int{nil: 1}, "as map key, found nil"},
		{"a pointer as key", map[any]int{&loop: 1}, "as map key, found *wire.ring"},
		{
			"two keys that become one",
			map[any]int{int8(1): 1, int64(1): 2},
			"expected keys that differ, found two keys of map[interface {}]int that are the same in a message",
		},
		{"two such keys with others", map[any]int{int8(1): 1, "a": 3, uint(1): 2}, "expected keys that differ"},
		{
			"a time beyond all",
			[]time.Time{time.Unix(math.MinInt64, 0).Add(-1)},
			"at [0]: expected time.Time (timestamp), found a time that no timestamp holds",
		},
	} {
		rv := reflect.ValueOf(c.v)
		dst := []byte("before")
		got, err := codecOf(t, rv.Type()).Append(dst, rv)
		var ve *ValueError
		if !errors.As(err, &ve) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %.300v, want %q", c.name, err, c.want)
		}
		if string(got) != "before" {
			t.Errorf("%s: dst became %.100q", c.name, got)
		}
	}
}

func TestEncodeUpToTheLimits(t *testing.T) {
	var deep any = 1
	for range 32 {
		deep = []any{deep}
	}
	chain := any(1)
	for range 20 {
		c := chain
		chain = &c
	}
	for name, v := range map[string]any{
		"32 slices": deep, "65,536 values": make([]int, 65535),
		"65,536 pairs": [][]int{make([]int, 32766), make([]int, 32767)},
		"1 MiB":        strings.Repeat("x", 1<<20-5), "1 MiB of binary": make([]byte, 1<<20-5),
		"a long chain of pointers":               []any{chain, chain},
		"65,536 values with the keys of structs": make([]struct{ A int }, 21845),
	} {
		b := encode(t, v)
		if err := Check(b, Default); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The bytes in dst before the value do not count against the limits of the value.
func TestEncodeCountsItsOwnBytes(t *testing.T) {
	b, err := codecOf(t, reflect.TypeFor[string]()).Append(make([]byte, 1<<20), reflect.ValueOf("x"))
	if err != nil || len(b) != 1<<20+2 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func TestAppendNeedsItsType(t *testing.T) {
	ints := codecOf(t, reflect.TypeFor[int]())
	for v, want := range map[any]string{int8(7): "expected int, found int8", "7": "expected int, found string"} {
		if _, err := ints.Append(nil, reflect.ValueOf(v)); err == nil || err.Error() != want {
			t.Errorf("%v: %v", v, err)
		}
	}
	if _, err := ints.Append(nil, reflect.Value{}); err == nil || err.Error() != "expected int, found nil" {
		t.Errorf("nothing for an int: %v", err)
	}
	b, err := codecOf(t, reflect.TypeFor[any]()).Append(nil, reflect.Value{})
	if err != nil || !bytes.Equal(b, []byte{codeNil}) {
		t.Errorf("nothing for any: %x, %v", b, err)
	}
}

func TestAppendDynamic(t *testing.T) {
	for _, c := range []struct {
		v    any
		want string
	}{
		{nil, "c0"},
		{true, "c3"},
		{7, "07"},
		{int64(-1), "ff"},
		{1.5, "cb3ff8000000000000"},
		{"a", "a161"},
		{uint8(200), "ccc8"},
		{[]any{nil, "x"}, "92c0a178"},
		{point{1, 2}, "82a15801a15902"},
		{(*point)(nil), "c0"},
		{color(3), "03"},
		{[]any{color(3), label("l"), float32(1), uint(5), int8(-3), flag(true)}, "9603a16cca3f80000005fdc3"},
	} {
		b, err := appendAny([]byte{0xee}, c.v)
		if got := hex.EncodeToString(b); err != nil || got != "ee"+c.want {
			t.Errorf("%v: %s, %v", c.v, got, err)
		}
	}
	var ve *ValueError
	for _, v := range []any{"\xff", make(chan int)} {
		if b, err := appendAny([]byte{1}, v); !errors.As(err, &ve) || len(b) != 1 {
			t.Errorf("%T: %x, %v", v, b, err)
		}
	}
}

// AppendInt and AppendUint write the shortest form, as msgpack for Python does.
func TestAppendIntegers(t *testing.T) {
	for _, c := range []struct {
		v    int64
		want string
	}{
		{0, "00"},
		{127, "7f"},
		{128, "cc80"},
		{255, "ccff"},
		{256, "cd0100"},
		{65535, "cdffff"},
		{65536, "ce00010000"},
		{math.MaxUint32, "ceffffffff"},
		{math.MaxUint32 + 1, "cf0000000100000000"},
		{-1, "ff"},
		{-32, "e0"},
		{-33, "d0df"},
		{-128, "d080"},
		{-129, "d1ff7f"},
		{-32768, "d18000"},
		{-32769, "d2ffff7fff"},
		{math.MinInt32, "d280000000"},
		{math.MinInt32 - 1, "d3ffffffff7fffffff"},
	} {
		if got := hex.EncodeToString(AppendInt(nil, c.v)); got != c.want {
			t.Errorf("%d: %s, want %s", c.v, got, c.want)
		}
	}
	if got := hex.EncodeToString(AppendUint(nil, math.MaxUint64)); got != "cfffffffffffffffff" {
		t.Errorf("2^64-1: %s", got)
	}
	for n, want := range map[int]string{15: "8f", 16: "de0010", 65536: "df00010000"} {
		if got := hex.EncodeToString(AppendMapHeader(nil, n)); got != want {
			t.Errorf("map of %d: %s", n, got)
		}
	}
}
