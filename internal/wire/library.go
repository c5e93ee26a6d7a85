package wire

import (
	"reflect"

	"github.com/shamaton/msgpack/v2"
)

// The library has a loop for each slice and map of Go's basic types, which is faster than reflect. So it decodes these
// once a walker has accepted the bytes, and nothing else, because with it all structs of a call have the same form and
// are looked up in a registry of the whole process, []byte and binary share memory with the input, times are in the
// local zone, and numbers in an any have the narrowest type. It does not encode either, because it cannot append to a
// buffer, walks each value twice, never returns from a value that contains itself, and writes maps in a random order.
// Tests compare our encoding of slices and structs with the library's, because go-delayed uses it.

// From these lengths on the library is faster than reflect.
const (
	libSlice = 16
	libMap   = 4
)

// inLibrary reports whether the library has a loop for the type of n, a slice or a map.
func inLibrary(n *node) bool {
	if n.typ.Name() != "" || !basic(n.elem) {
		return false
	}
	if n.op == opSlice {
		return true
	}
	return basic(n.key) && (n.key.op == opString || (n.key.op == opInt || n.key.op == opUint) &&
		(n.elem.op == opString || n.elem.op == opBool))
}

// basic reports whether n is one of Go's own types. float32 is not among them: the library takes no float64 for it.
func basic(n *node) bool {
	switch n.op {
	case opBool, opInt, opUint, opString:
		return n.typ.PkgPath() == ""
	case opFloat:
		return n.typ.PkgPath() == "" && n.bits == 64
	default:
		return false
	}
}

// libDecode sets dst, a slice or map that can be addressed, to the value that is the whole of b.
func libDecode(b []byte, dst reflect.Value) *ValueError {
	if err := msgpack.UnmarshalAsArray(b, dst.Addr().Interface()); err != nil {
		return &ValueError{Want: dst.Type().String(), Got: "a value that the library refuses: " + err.Error()}
	}
	return nil
}
