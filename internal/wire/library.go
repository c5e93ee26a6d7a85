package wire

import (
	"reflect"

	"github.com/shamaton/msgpack/v2"
)

// The msgpack library has a specialized loop for each slice and map of Go's basic types, which is faster than reflect.
// So this package lets the library decode those once a walker has accepted the bytes. The library decodes nothing else,
// because with it all structs of a call have the same form and are looked up in a registry of the whole process, []byte
// and binary share memory with the input, times are in the local zone, and numbers in an any have the narrowest type.
// This package does not use it to encode either, because it cannot append to a buffer, walks each value twice, never
// returns from a value that contains itself, and writes maps in a random order. Tests compare our encoding of slices
// and structs with the library's, because go-delayed uses the library.

// From these lengths on, the library is faster than reflect.
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

// basic reports whether n is one of Go's predeclared types that the library decodes as this package does. float32 is
// not among them, because the library does not decode a float64 into a float32.
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

// libDecode sets dst, an addressable slice or map, to the value in b. b contains nothing else.
func libDecode(b []byte, dst reflect.Value) *ValueError {
	if err := msgpack.UnmarshalAsArray(b, dst.Addr().Interface()); err != nil {
		return &ValueError{Want: dst.Type().String(), Got: "a value that the library refuses: " + err.Error()}
	}
	return nil
}
