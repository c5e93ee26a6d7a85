package wire

import (
	"fmt"
	"slices"
	"time"
)

// MapWriter writes a map with text keys, whose number of pairs is known only at the end. It leaves out pairs whose
// value is zero. Call Begin first and End last.
type MapWriter struct {
	dst   []byte
	start int
	n     int
}

// Begin begins a map at the end of dst.
func (w *MapWriter) Begin(dst []byte) { *w = MapWriter{dst: append(dst, 0), start: len(dst)} }

// End returns the bytes with the map.
func (w *MapWriter) End() []byte {
	var header [5]byte // one byte if there are few pairs
	return slices.Replace(w.dst, w.start, w.start+1, AppendMapHeader(header[:0], w.n)...)
}

// key begins a pair. The caller appends the value to what it returns, and stores that in w.dst.
func (w *MapWriter) key(key string) []byte {
	w.n++
	return AppendString(w.dst, key)
}

// Text writes a text, which must be valid UTF-8.
func (w *MapWriter) Text(key, v string) {
	if v != "" {
		w.dst = AppendString(w.key(key), v)
	}
}

// Number writes an integer.
func (w *MapWriter) Number(key string, v int64) {
	if v != 0 {
		w.dst = AppendInt(w.key(key), v)
	}
}

// Time writes a time in ms since 1970.
func (w *MapWriter) Time(key string, t time.Time) {
	if !t.IsZero() {
		w.dst = AppendInt(w.key(key), t.UnixMilli())
	}
}

// Flag writes a boolean.
func (w *MapWriter) Flag(key string, v bool) {
	if v {
		w.dst = AppendBool(w.key(key), true)
	}
}

// Bin writes binary data; nil is its zero value.
func (w *MapWriter) Bin(key string, v []byte) {
	if v != nil {
		w.dst = AppendBin(w.key(key), v)
	}
}

// MapReader reads a decoded map. Its methods return zero for keys that are missing or have values of other types, and
// keep the first such value as the error.
type MapReader struct {
	values map[string]any
	Err    error
}

// ReadMap returns a reader of what DecodeAny has returned. It has no keys if that is no map with text keys.
func ReadMap(decoded any) MapReader {
	values, _ := decoded.(map[string]any)
	return MapReader{values: values}
}

// valueOf returns the value of a key if that is a T.
func valueOf[T any](r *MapReader, key, want string) (v T) {
	v, ok := r.values[key].(T)
	if !ok && r.values[key] != nil {
		r.refuse(key, want)
	}
	return v
}

func (r *MapReader) refuse(key, want string) {
	if r.Err == nil {
		r.Err = fmt.Errorf("%q: expected %s, found %v", key, want, r.values[key])
	}
}

// Text reads a text.
func (r *MapReader) Text(key string) string { return valueOf[string](r, key, "a string") }

// Bin reads binary data.
func (r *MapReader) Bin(key string) []byte { return valueOf[[]byte](r, key, "binary") }

// Flag reads a boolean.
func (r *MapReader) Flag(key string) bool { return valueOf[bool](r, key, "a boolean") }

// List reads an array.
func (r *MapReader) List(key string) []any { return valueOf[[]any](r, key, "an array") }

// Number reads an integer, and returns it even if it is out of bounds.
func (r *MapReader) Number(key string, lowest, highest int64) int64 {
	want := fmt.Sprintf("a number from %d to %d", lowest, highest)
	n := valueOf[int64](r, key, want)
	if r.values[key] != nil && (n < lowest || n > highest) {
		r.refuse(key, want)
	}
	return n
}

// Time reads a time in ms since 1970; zero if it is missing.
func (r *MapReader) Time(key string) time.Time {
	if _, ok := r.values[key].(int64); !ok {
		_ = r.Number(key, 0, maxTime) // for the error
		return time.Time{}
	}
	return time.UnixMilli(r.Number(key, 0, maxTime))
}

// maxTime is the latest time in ms since 1970 that a number of Lua and JavaScript holds exactly.
const maxTime = 1 << 53
