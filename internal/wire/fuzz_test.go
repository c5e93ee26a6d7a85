package wire

import (
	"bytes"
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/limits"
)

// seeds gives a fuzzer one value of each kind, some that are cut off, and a few hostile ones.
func seeds(f *testing.F, add func(b []byte)) {
	f.Helper()
	for _, v := range sampleValues(f) {
		add(v)
		add(v[:len(v)/2])
	}
	for _, c := range strictCases {
		add(unhex(f, c.in))
	}
	for _, typ := range targets {
		add(pack(f, reflect.New(typ).Elem().Interface()))
	}
	add(bytes.Repeat([]byte{0x91}, 100))
	add(bytes.Repeat([]byte{0xdd, 0, 0, 1, 0}, 20))
	add(append([]byte{0xdc, 0x10, 0}, bytes.Repeat([]byte("\x81\xa1a\x01"), 0x1000)...))
}

// FuzzCheck compares Check with a simple recursive implementation.
func FuzzCheck(f *testing.F) {
	seeds(f, func(b []byte) { f.Add(b) })
	f.Fuzz(func(t *testing.T, b []byte) {
		lim := Limits{Bytes: 1 << 16, Elems: 1000, Depth: 20}
		err := Check(b, lim)
		if len(b) <= lim.Bytes {
			r := reference{b: b, elems: lim.Elems}
			end := r.value(0, lim.Depth, false)
			if ok := end == len(b); ok != (err == nil) {
				t.Fatalf("%x: Check says %v, the reference ends at %d", b, err, end)
			}
		}
		if next, _, err := skim(b, 0, lim.Elems, lim.Depth, loose); err == nil && next > len(b) {
			t.Fatalf("%x: loose end at %d", b, next)
		}
		_ = Found(b)
	})
}

// reference checks values as the MessagePack specification describes them, one rule after the other.
type reference struct {
	b     []byte
	elems int
}

// value returns where the value at i ends, or −1.
func (r *reference) value(i, depth int, key bool) int {
	if i < 0 || i >= len(r.b) || r.elems == 0 {
		return -1
	}
	r.elems--
	c := r.b[i]
	length := func(w int) int {
		n := 0
		for k := 1; k <= w; k++ {
			if i+k >= len(r.b) {
				return math.MaxInt32
			}
			n = n<<8 | int(r.b[i+k])
		}
		return n
	}
	end := -1
	isKey := true
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc2, c == 0xc3:
		end = i + 1
	case c <= 0x8f:
		return r.container(i+1, 2*int(c&15), depth, true, key)
	case c <= 0x9f:
		return r.container(i+1, int(c&15), depth, false, key)
	case c <= 0xbf:
		end = i + 1 + int(c&31)
	case c == 0xc0:
		end, isKey = i+1, false
	case c == 0xc4, c == 0xc5, c == 0xc6:
		w := 1 << (c - 0xc4)
		end, isKey = i+1+w+length(w), false
	case c == 0xca, c == 0xcb:
		end, isKey = i+5+4*int(c-0xca), false
	case c >= 0xcc && c <= 0xcf:
		end = i + 1 + 1<<(c-0xcc)
	case c >= 0xd0 && c <= 0xd3:
		end = i + 1 + 1<<(c-0xd0)
	case c >= 0xd9 && c <= 0xdb:
		w := 1 << (c - 0xd9)
		end = i + 1 + w + length(w)
	case c == 0xdc, c == 0xdd:
		w := 2 << (c - 0xdc)
		return r.container(i+1+w, length(w), depth, false, key)
	case c == 0xde, c == 0xdf:
		w := 2 << (c - 0xde)
		return r.container(i+1+w, 2*length(w), depth, true, key)
	case c == 0xd6 && i+6 <= len(r.b) && r.b[i+1] == 0xff:
		end, isKey = i+6, false
	case c == 0xd7 && i+10 <= len(r.b) && r.b[i+1] == 0xff:
		if binary.BigEndian.Uint64(r.b[i+2:])>>34 < 1e9 {
			end, isKey = i+10, false
		}
	case c == 0xc7 && i+15 <= len(r.b) && r.b[i+1] == 12 && r.b[i+2] == 0xff:
		nsec, sec := binary.BigEndian.Uint32(r.b[i+3:]), int64(binary.BigEndian.Uint64(r.b[i+7:]))
		if nsec < 1e9 && sec <= math.MaxInt64-62135596800 {
			end, isKey = i+15, false
		}
	}
	if end > len(r.b) || key && !isKey {
		return -1
	}
	return end
}

func (r *reference) container(i, n, depth int, pairs, key bool) int {
	if key || depth == 0 || n > len(r.b) {
		return -1
	}
	for k := range n {
		if i = r.value(i, depth-1, pairs && k%2 == 0); i < 0 {
			return -1
		}
	}
	return i
}

// FuzzParse: messages that Parse accepts are within the limits, and Parse reads what Append writes from one as the same
// message.
func FuzzParse(f *testing.F) {
	seeds(f, func(b []byte) {
		f.Add((&Message{Kind: GoPlain, Path: "main.f", Payload: b}).Append(nil))
		f.Add((&Message{
			Kind: GoExtended, Path: "main.f", Payload: b,
			Meta: Meta{ID: "x", Rest: &Pairs{1, append([]byte("\xa1r"), b...)}},
		}).Append(nil))
		f.Add((&Message{Kind: Py, Path: "m:f", Py: &PyCall{Args: append([]byte{0x91}, b...)}}).Append(nil))
		f.Add((&Message{
			Kind: PyExtended, Path: "m:f", Py: &PyCall{Kwargs: append([]byte{0x81, 1}, b...)},
			Meta: Meta{HasN: true},
		}).Append(nil))
		f.Add(b)
	})
	f.Add([]byte("\xa6main.f"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		lim := Limits{Bytes: 1 << 16, Elems: 1000, Depth: 20, Path: 100}
		before := bytes.Clone(raw)
		m, err := Parse(raw, lim)
		if !bytes.Equal(raw, before) {
			t.Fatalf("Parse changed %x into %x", before, raw)
		}
		if err != nil {
			_ = err.Error()
			return
		}
		if m.Path == "" || len(m.Path) > lim.Path || m.Python() != strings.Contains(m.Path, ":") {
			t.Fatalf("%x: path %q of a %v", raw, m.Path, m.Kind)
		}
		if next, _, err := skim(raw, 0, lim.Elems, lim.Depth, loose); err != nil || next != len(raw) {
			t.Fatalf("%x: accepted, but the checker says %d, %v", raw, next, err)
		}
		if len(m.Payload) > 0 {
			if err := Check(m.Payload, lim); err != nil {
				t.Fatalf("%x: accepted with payload %x: %v", raw, m.Payload, err)
			}
		}
		again := m.Append(nil)
		m2, err := Parse(again, Limits{Bytes: lim.Bytes + 100, Elems: lim.Elems + 10, Depth: lim.Depth, Path: lim.Path})
		if err != nil {
			t.Fatalf("%x written again as %x: %v", raw, again, err)
		}
		if third := m2.Append(nil); !bytes.Equal(again, third) {
			t.Fatalf("%x, then %x", again, third)
		}
		for _, m := range []*Message{&m, &m2} { // Append may leave out or fill in empty arguments
			call := PyCall{m.Args(), m.Kwargs()}
			if isEmpty(call.Args) {
				call.Args = nil
			}
			if isEmpty(call.Kwargs) {
				call.Kwargs = nil
			}
			m.Py = &call
		}
		if !reflect.DeepEqual(m, m2) {
			t.Fatalf("%x:\n%+v written again as %x:\n%+v", raw, m, again, m2)
		}
	})
}

// FuzzDecode: whatever the bytes, checked or not, no type panics or takes more memory than the limit, and a decoded
// value stays equal when it is encoded and decoded again. The first byte of the input chooses the type.
func FuzzDecode(f *testing.F) {
	for i, typ := range targets {
		f.Add(byte(i), pack(f, reflect.New(typ).Elem().Interface()))
		for _, c := range strictCases {
			if c.typ == typ {
				f.Add(byte(i), unhex(f, c.in))
			}
		}
	}
	seeds(f, func(b []byte) { f.Add(byte(slices.Index(targets, reflect.TypeFor[any]())), b) })
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		typ := targets[int(which)%len(targets)]
		codec := codecOf(t, typ)
		dst := reflect.New(typ).Elem()
		before := bytes.Clone(b)
		var rest []byte
		var err error
		if got := allocated(func() { rest, err = codec.Decode(b, dst) }); got > bound(len(b)) {
			limits.Errorf(t, "%v from %x: %d bytes allocated, the bound is %d", typ, b, got, bound(len(b)))
		}
		if !bytes.Equal(b, before) {
			t.Fatalf("decoding changed %x into %x", before, b)
		}
		if err != nil {
			if s := err.Error(); strings.Contains(s, "panic") || strings.Contains(s, "library") {
				t.Fatalf("%v from %x: %v", typ, b, err)
			}
			if !dst.IsZero() {
				t.Fatalf("%v from %x: %v beside %v", typ, b, dst, err)
			}
			_ = codec.Unknown(b, 3)
			return
		}
		if unknown := codec.Unknown(b, 3); unknown != nil {
			t.Fatalf("%v from %x: decoded, but lacks %v", typ, b, unknown)
		}
		used := b[:len(b)-len(rest)]
		if n, _, err := skim(b, 0, math.MaxInt32, maxDepth, strict); err != nil || n != len(used) {
			t.Fatalf("%v from %x: decoded %d bytes that the checker refuses: %v", typ, b, len(used), err)
		}
		for i := range b {
			b[i] ^= 0xff // v must not share memory with the input
		}
		again, err := codec.Append(nil, dst)
		if err != nil {
			// Append may refuse a value that Decode accepts, because it is too large: the array form of a struct has
			// fewer bytes than the map form.
			if len(before) < maxElems/8 {
				t.Fatalf("%v from %x: cannot be written again: %v", typ, before, err)
			}
			return
		}
		back := reflect.New(typ).Elem()
		if _, err := codec.Decode(again, back); err != nil {
			if strings.Contains(err.Error(), "bytes of memory") {
				return // with shorter numbers the value has fewer bytes, which may allow too little memory for it
			}
			t.Fatalf("%v from %x: written again as %x: %v", typ, before, again, err)
		}
		if third, err := codec.Append(nil, back); err != nil || !bytes.Equal(again, third) {
			t.Fatalf("%v from %x: written as %x, then as %x, %v", typ, before, again, third, err)
		}
		if !equal(dst, back) {
			t.Fatalf("%v from %x: %#v, then %#v", typ, before, dst, back)
		}
	})
}

// equal is reflect.DeepEqual, but NaN equals NaN.
func equal(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() {
		return a.IsValid() == b.IsValid()
	}
	switch a.Kind() {
	case reflect.Float32, reflect.Float64:
		return a.Float() == b.Float() || a.Float() != a.Float() && b.Float() != b.Float()
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return equal(a.Elem(), b.Elem())
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() || a.Kind() == reflect.Slice && a.IsNil() != b.IsNil() {
			return false
		}
		for i := range a.Len() {
			if !equal(a.Index(i), b.Index(i)) {
				return false
			}
		}
		return true
	case reflect.Map:
		if a.Len() != b.Len() || a.IsNil() != b.IsNil() {
			return false
		}
		for _, k := range a.MapKeys() {
			if !equal(a.MapIndex(k), b.MapIndex(k)) {
				return false
			}
		}
		return true
	case reflect.Struct:
		if a.Type() == typeTime {
			return a.Interface().(time.Time).Equal(b.Interface().(time.Time)) //nolint:errcheck // the type is known
		}
		for i := range a.NumField() {
			if !equal(a.Field(i), b.Field(i)) {
				return false
			}
		}
		return true
	default:
		return a.Equal(b)
	}
}
