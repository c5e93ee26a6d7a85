//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"math"
	"reflect"
	"unicode/utf8"
)

// DecodeAny decodes the value at the front of b into one of the types that an empty interface gets: nil, bool, int64,
// uint64 (only above int64), float64, string, []byte, time.Time, []any, map[string]any, or map[any]any if a key is not
// a string. It returns the bytes after the value. The error is a *ValueError.
func DecodeAny(b []byte) (v any, rest []byte, err error) {
	c, err := CodecFor(reflect.TypeFor[any]())
	if err != nil {
		return nil, nil, err
	}
	rest, err = c.Decode(b, reflect.ValueOf(&v).Elem())
	return v, rest, err
}

// The sizes of an interface and of the values that it points to.
const (
	memIface  = 16
	memNumber = 8
	memString = 16
	memSlice  = 24
	memTime   = 24
)

// walkAny checks the value at w.b[i:], which will be decoded into an empty interface.
func (w *walker) walkAny(i, depth int) (next int, err *ValueError) {
	b := w.b
	if i >= len(b) {
		return 0, anyMismatch(b, i)
	}
	if _, _, next = intAt(b, i); next >= 0 {
		return next, w.add(memNumber)
	}
	if start, end := strAt(b, i); end >= 0 {
		if !utf8.Valid(b[start:end]) {
			return 0, &ValueError{Want: "a string in UTF-8", Got: found(b, i) + notUTF8}
		}
		return end, w.add(memString + memSize(end-start))
	}
	if cnt, next := arrayAt(b, i); next >= 0 {
		if err = enter(depth); err != nil {
			return 0, err
		}
		if err = w.add(memSlice + memArray(cnt, memIface)); err != nil {
			return 0, err
		}
		for k := range cnt {
			if next, err = w.walkAny(next, depth+1); err != nil {
				return 0, err.in(step(k))
			}
		}
		return next, nil
	}
	if cnt, next := mapAt(b, i); next >= 0 {
		if err = enter(depth); err != nil {
			return 0, err
		}
		return w.walkAnyMap(cnt, next, depth)
	}
	switch b[i] {
	case codeNil, codeTrue, codeFalse:
		return i + 1, nil
	}
	if _, _, next = floatAt(b, i); next >= 0 {
		return next, w.add(memNumber)
	}
	if start, end := binAt(b, i); end >= 0 {
		return end, w.add(memSlice + memSize(end-start))
	}
	if _, next = timeAt(b, i); next >= 0 {
		return next, w.add(memTime)
	}
	return 0, anyMismatch(b, i)
}

func anyMismatch(b []byte, i int) *ValueError {
	return &ValueError{Want: "a value", Got: found(b, i)}
}

// walkAnyMap checks the cnt pairs of a map that will be decoded into an empty interface. buildAnyMap makes a
// map[string]any, or a map[any]any if the first key is not a string. If a later key is not a string, it copies the
// map[string]any into a new map[any]any, so walkAnyMap counts the memory of both.
func (w *walker) walkAnyMap(cnt, i, depth int) (next int, err *ValueError) {
	strs := cnt == 0 || isStr(w.b, i)
	if strs {
		err = w.add(memMap(cnt, memString, memIface))
	} else {
		err = w.add(memMap(cnt, memIface, memIface) + memArray(cnt, memString))
	}
	if err != nil {
		return 0, err
	}
	next = i
	for k := range cnt {
		if strs && !isStr(w.b, next) {
			strs = false
			if err = w.add(memMap(cnt, memIface, memIface) + memArray(cnt, memString)); err != nil {
				return 0, err
			}
		}
		if next, err = w.walkAnyKey(next); err != nil {
			return 0, err.in(pair(k) + ".key")
		}
		if next, err = w.walkAny(next, depth+1); err != nil {
			return 0, err.in(pair(k))
		}
	}
	return next, nil
}

// isStr reports whether a string begins at b[i:].
func isStr(b []byte, i int) bool {
	_, end := strAt(b, i)
	return end >= 0
}

// walkAnyKey checks the key at w.b[i:] of a map that will be decoded into an empty interface.
func (w *walker) walkAnyKey(i int) (next int, err *ValueError) {
	if i < len(w.b) && w.b[i]|1 == codeTrue {
		return i + 1, nil
	}
	if _, _, next = intAt(w.b, i); next >= 0 {
		return next, w.add(memNumber)
	}
	if start, end := strAt(w.b, i); end >= 0 && utf8.Valid(w.b[start:end]) {
		return end, w.add(memSize(end - start))
	}
	return 0, &ValueError{Want: "a string, integer or boolean as map key", Got: found(w.b, i)}
}

// buildAny makes the value at b[i:], which walkAny has accepted. The only possible error is a duplicate key of a map.
func buildAny(b []byte, i int) (v any, next int, err *ValueError) {
	if u, neg, next := intAt(b, i); next >= 0 {
		if !neg && u > math.MaxInt64 {
			return u, next, nil
		}
		return int64(u), next, nil
	}
	if start, end := strAt(b, i); end >= 0 {
		return string(b[start:end]), end, nil
	}
	if cnt, next := arrayAt(b, i); next >= 0 {
		s := make([]any, cnt)
		for k := range s {
			if s[k], next, err = buildAny(b, next); err != nil {
				return nil, 0, err.in(step(k))
			}
		}
		return s, next, nil
	}
	if cnt, next := mapAt(b, i); next >= 0 {
		return buildAnyMap(b, cnt, next)
	}
	switch b[i] {
	case codeNil:
		return nil, i + 1, nil
	case codeTrue, codeFalse:
		return b[i] == codeTrue, i + 1, nil
	}
	if f, _, next := floatAt(b, i); next >= 0 {
		return f, next, nil
	}
	if start, end := binAt(b, i); end >= 0 {
		return append([]byte{}, b[start:end]...), end, nil
	}
	t, next := timeAt(b, i)
	return t, next, nil
}

// buildAnyMap makes a map of the cnt pairs that begin at b[i:].
func buildAnyMap(b []byte, cnt, i int) (v any, next int, err *ValueError) {
	if cnt > 0 && !isStr(b, i) {
		return buildAnyKeys(b, nil, cnt, i)
	}
	m := make(map[string]any, cnt)
	next = i
	for k := range cnt {
		start, end := strAt(b, next)
		if end < 0 {
			return buildAnyKeys(b, m, cnt, next)
		}
		elem, after, err := buildAny(b, end)
		if err != nil {
			return nil, 0, err.in(pair(k))
		}
		if m[string(b[start:end])] = elem; len(m) == k {
			return nil, 0, twice(k)
		}
		next = after
	}
	return m, next, nil
}

// buildAnyKeys makes a map[any]any of cnt pairs. text holds the pairs that buildAnyMap has decoded already; the next
// pair begins at b[i:], and its key is not a string.
func buildAnyKeys(b []byte, text map[string]any, cnt, i int) (v any, next int, err *ValueError) {
	m := make(map[any]any, cnt)
	for key, elem := range text {
		m[key] = elem
	}
	next = i
	for k := len(text); k < cnt; k++ {
		key, val, err := buildAny(b, next)
		if err != nil {
			return nil, 0, err
		}
		elem, after, err := buildAny(b, val)
		if err != nil {
			return nil, 0, err.in(pair(k))
		}
		if m[key] = elem; len(m) == k {
			return nil, 0, twice(k)
		}
		next = after
	}
	return m, next, nil
}

// twice returns the error for pair k of a map, whose key is a duplicate.
func twice(k int) *ValueError {
	return &ValueError{Where: pair(k) + ".key", Want: "each key of a map once", Got: "the same key again"}
}

// IsNil reports whether v is nil or an interface that holds a nil pointer, map, slice, function or channel.
func IsNil(v any) bool {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan:
		return r.IsNil()
	default:
		return false
	}
}
