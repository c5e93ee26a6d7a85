package wire

import (
	"bytes"
	"math"
	"reflect"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/limits"
)

// allocated returns the bytes that f allocates.
func allocated(f func()) int {
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// memSize, memArray and memMap return at least what the runtime takes.
func TestMemSize(t *testing.T) {
	limits.Only(t)
	var sink []byte
	for n := 1; n < 70000; n += 1 + n/50 {
		times := max(16, 10000/n)
		got := allocated(func() {
			for range times {
				sink = make([]byte, n)
			}
		})
		// The runtime puts several tiny objects into one block; measuring itself takes a few bytes.
		if perObject := (got - 512) / times; perObject > memSize(n)*memSlack {
			t.Errorf("memSize(%d) = %d, the runtime takes %d", n, memSize(n), perObject)
		}
	}
	runtime.KeepAlive(sink)
}

func TestMemMap(t *testing.T) {
	limits.Only(t)
	// These lengths include those at which the hash most often splits or doubles tables: 897, 1780, 1793, 3560, 3585,
	// 7130, 14250.
	type big [200]byte
	for _, n := range []int{
		0, 1, 7, 8, 9, 14, 15, 28, 29, 100, 447, 449, 895, 896, 897, 1500, 1780, 1792, 1793, 3560,
		3585, 5000, 7130, 14250, 40000,
	} {
		for _, c := range []struct {
			name      string
			key, elem int
			make      func() any
		}{
			{"map[any]any", 16, 16, func() any {
				m := make(map[any]any, n)
				for i := range n {
					m[i] = nil
				}
				return m
			}},
			{"map[int]bool", 8, 1, func() any {
				m := make(map[int]bool, n)
				for i := range n {
					m[i] = true
				}
				return m
			}},
			{"map[int]big", 8, 200, func() any {
				m := make(map[int]big, n)
				for i := range n {
					m[i] = big{}
				}
				return m
			}},
			{"map[int64]time.Time", 8, 24, func() any {
				m := make(map[int64]time.Time, n)
				for i := range n {
					m[int64(i)] = time.Time{}
				}
				return m
			}},
		} {
			var m any
			got := allocated(func() { m = c.make() })
			want := memMap(n, c.key, c.elem)
			if c.key == 16 {
				want += 8 * n // the numbers that the keys point to
			}
			if got > want*memSlack+512 {
				t.Errorf("%s of %d: memMap says %d, the runtime takes %d", c.name, n, want, got)
			}
			runtime.KeepAlive(m)
		}
	}
}

func TestMemArrayDoesNotOverflow(t *testing.T) {
	const huge = math.MaxInt/2 + 1
	for _, c := range [][2]int{{huge, huge}, {huge, 4}, {3, huge}, {2, huge}} {
		if n := memArray(c[0], c[1]); n < huge {
			t.Errorf("memArray(%d, %d) = %d", c[0], c[1], n)
		}
	}
	if n := memArray(0, huge); n != 0 {
		t.Errorf("memArray of nothing = %d", n)
	}
}

// bound returns the most bytes that decoding a value of n bytes may allocate.
func bound(n int) int { return (memPerByte*n + 64<<10) * memSlack }

// Whatever the bytes and the type, decoding stays within the limit. The inputs are those that would cost most: headers
// that claim much, the smallest values of the largest types, maps of one pair.
func TestDecodeMemory(t *testing.T) {
	type large struct {
		Big [4096]int `msgpack:",omitempty"`
	}
	type wide struct {
		A, B, C, D []*[]int
		E          *large `msgpack:",omitempty"`
	}
	repeat := func(header func([]byte, int) []byte, value string, n int) []byte {
		return append(header(nil, n), bytes.Repeat([]byte(value), n)...)
	}
	numbered := func(n int, value string) []byte {
		b := AppendMapHeader(nil, n)
		for i := range n {
			b = append(AppendInt(b, int64(i)), value...)
		}
		return b
	}
	words := func(n int, value string) []byte {
		b := AppendMapHeader(nil, n)
		for i := range n {
			b = append(AppendString(b, strconv.FormatInt(int64(i), 36)), value...)
		}
		return b
	}
	array := AppendArrayHeader
	tooMuch := 0
	for _, c := range []struct {
		typ reflect.Type
		in  []byte
	}{
		{reflect.TypeFor[[]large](), repeat(array, "\x80", 1000)},
		{reflect.TypeFor[[]*large](), repeat(array, "\x80", 1000)},
		{reflect.TypeFor[[]large](), repeat(array, "\x80", 65000)},
		{reflect.TypeFor[*large](), []byte{0x80}},
		{reflect.TypeFor[map[int]large](), numbered(500, "\x80")},
		{reflect.TypeFor[[]wide](), repeat(array, "\x95\xc0\xc0\xc0\xc0\xc0", 10000)},
		{reflect.TypeFor[[]wide](), repeat(array, "\x95\x92\x90\x90\xc0\xc0\xc0\xc0", 5000)},
		{reflect.TypeFor[[]*[]int](), repeat(array, "\x90", 60000)},
		{reflect.TypeFor[[][]int](), repeat(array, "\x90", 60000)},
		{reflect.TypeFor[[][]int](), repeat(array, "\x91\x00", 30000)},
		{reflect.TypeFor[[]any](), repeat(array, "\x90", 60000)},
		{reflect.TypeFor[[]any](), repeat(array, "\x80", 60000)},
		{reflect.TypeFor[any](), repeat(array, "\x91\xc0", 30000)},
		{reflect.TypeFor[any](), repeat(array, "\xcb????????", 10000)},
		{reflect.TypeFor[any](), repeat(array, "\xcd\x01\x01", 30000)},
		{reflect.TypeFor[any](), repeat(array, "\xa2ab", 30000)},
		{reflect.TypeFor[any](), repeat(array, "\xc4\x01a", 30000)},
		{reflect.TypeFor[any](), repeat(array, "\xd6\xff\x00\x00\x00\x00", 10000)},
		{reflect.TypeFor[any](), repeat(array, "\x81\xa1a\x01", 10000)},
		{reflect.TypeFor[any](), repeat(array, "\x81\xa5abcde\x01", 10000)},
		{reflect.TypeFor[any](), repeat(array, "\x81\x01\x01", 1000)},
		{reflect.TypeFor[any](), repeat(array, "\x82\xa1a\x01\x01\x01", 1000)},
		{reflect.TypeFor[any](), numbered(897, "\xc0")},
		{reflect.TypeFor[any](), numbered(30000, "\xc0")},
		{reflect.TypeFor[any](), words(897, "\xc0")},
		{reflect.TypeFor[any](), words(30000, "\xc0")},
		{reflect.TypeFor[map[any]any](), numbered(30000, "\xc0")},
		{reflect.TypeFor[map[string]any](), words(30000, "\x90")},
		{reflect.TypeFor[map[string]string](), words(30000, "\xa2ab")},
		{reflect.TypeFor[map[int]bool](), numbered(30000, "\xc3")},
		{reflect.TypeFor[map[string]bool](), words(30000, "\xc3")},
		{reflect.TypeFor[[]map[string]int](), repeat(array, "\x80", 60000)},
		{reflect.TypeFor[[]map[string]int](), repeat(array, "\x81\xa1a\x01", 10000)},
		{reflect.TypeFor[[]map[string]int](), repeat(array, "\x84\xa1a\x01\xa1b\x01\xa1c\x01\xa1d\x01", 5000)},
		{reflect.TypeFor[[]map[bool]struct{}](), repeat(array, "\x81\xc3\x90", 10000)},
		{reflect.TypeFor[[]string](), repeat(array, "\xa2ab", 30000)},
		{reflect.TypeFor[[][]byte](), repeat(array, "\xc4\x01a", 30000)},
		{reflect.TypeFor[[]time.Time](), repeat(array, "\xd6\xff\x00\x00\x00\x00", 10000)},
		{reflect.TypeFor[[]*time.Time](), repeat(array, "\xd6\xff\x00\x00\x00\x00", 10000)},
		{reflect.TypeFor[[]id16](), repeat(array, "\xc4\x10"+strings.Repeat("x", 16), 1000)},
		{reflect.TypeFor[[]**int](), repeat(array, "\x01", 60000)},
		{reflect.TypeFor[[][]bool](), repeat(array, "\xdc\x00\x10"+strings.Repeat("\xc3", 16), 3000)},
		{reflect.TypeFor[[]empty](), repeat(array, "\x90", 60000)},
		{reflect.TypeFor[[]string](), AppendString(array(nil, 1), strings.Repeat("x", 1<<20-10))},
		{reflect.TypeFor[everything](), []byte("\x8d")},
	} {
		codec := codecOf(t, c.typ)
		dst := reflect.New(c.typ).Elem()
		var err error
		got := allocated(func() { _, err = codec.Decode(c.in, dst) })
		if got > bound(len(c.in)) {
			limits.Errorf(t, "%v from %d bytes (%x…): %d bytes allocated, the bound is %d (error %v)", c.typ, len(c.in),
				c.in[:min(9, len(c.in))], got, bound(len(c.in)), err)
		}
		if err != nil && strings.Contains(err.Error(), "bytes of memory") {
			tooMuch++
		}
	}
	// Decode must refuse some values of the list, or the test proves nothing.
	if tooMuch < 5 {
		t.Errorf("only %d of the values were refused for their size", tooMuch)
	}
}

// A sum of memory that overflows an int is too much, too.
func TestMemoryDoesNotOverflow(t *testing.T) {
	huge := reflect.StructOf([]reflect.StructField{{
		Name: "A", Type: reflect.ArrayOf(1<<(strconv.IntSize-18), reflect.TypeFor[byte]()),
		Tag: `msgpack:",omitempty"`,
	}})
	typ := reflect.SliceOf(reflect.SliceOf(huge))
	row := append(AppendArrayHeader(nil, 65000), bytes.Repeat([]byte{0x80}, 65000)...)
	in := append(AppendArrayHeader(nil, 3), bytes.Repeat(row, 3)...) // three of them make the sum negative
	if _, err := decodeAs(t, typ, in); err == nil || !strings.Contains(err.Error(), "bytes of memory") {
		t.Errorf("%.200v", err)
	}
}

// The bytes after a value do not count as its own: a small value must not take the memory that a large one after it may
// take.
func TestMemoryCountsTheValueAlone(t *testing.T) {
	type large struct {
		Big [4096]int `msgpack:",omitempty"`
	}
	codec := codecOf(t, reflect.TypeFor[[]large]())
	in := append([]byte("\x92\x80\x80"), make([]byte, 1<<20)...)
	dst := reflect.New(reflect.TypeFor[[]large]()).Elem()
	if _, err := codec.Decode(in, dst); err == nil ||
		!strings.Contains(err.Error(),
			"expected a value that takes at most 16576 bytes of memory for 3 bytes of message") {
		t.Errorf("%d values, %v", dst.Len(), err)
	}
}

// Decode does not refuse the values of ordinary programs for the memory that they take.
func TestMemoryOfOrdinaryValues(t *testing.T) {
	var rows []any
	for i := range 5000 {
		rows = append(rows, map[string]any{"user_id": i + 100000, "name": "somebody", "active": true})
	}
	numbers := make([]any, 60000)
	for i := range numbers {
		numbers[i] = i
	}
	pairs := map[string]any{}
	for i := range 20000 {
		pairs["key"+strconv.Itoa(i)] = i
	}
	for name, v := range map[string]any{
		"rows": rows, "numbers": numbers, "pairs": pairs,
		"one": map[string]any{"a": map[string]any{"b": map[string]any{"c": 1}}},
	} {
		if _, _, err := DecodeAny(encode(t, v)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
