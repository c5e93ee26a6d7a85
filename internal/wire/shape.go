package wire

import (
	"reflect"
	"strconv"
)

// Shape describes how messages hold the values of a type, in terms that other languages know. docs/PROTOCOL.md lists
// the kinds.
type Shape struct {
	Kind   string       `json:"kind"`
	Name   string       `json:"name,omitempty"`   // ref: name of the type in Shapes.Types
	Length *int         `json:"length,omitempty"` // list and bytes: their length, if it is fixed
	Key    *Shape       `json:"key,omitempty"`    // map
	Elem   *Shape       `json:"elem,omitempty"`   // list, map and optional
	Fields []ShapeField `json:"fields,omitempty"` // struct, in the order of its array form
}

// ShapeField is one field of a struct.
type ShapeField struct {
	Name      string `json:"name"` // its key in a map
	Omitempty bool   `json:"omitempty,omitempty"`
	Type      *Shape `json:"type"`
}

// Shapes collects the shapes of named types: structs, and types that contain themselves. The zero value is empty.
type Shapes struct {
	Types map[string]*Shape
	names map[reflect.Type]string
}

// Of returns the shape of t. It fails with an *UnsupportedError if values of t cannot be sent.
func (s *Shapes) Of(t reflect.Type) (*Shape, error) {
	c, err := CodecFor(t)
	if err != nil {
		return nil, err
	}
	if s.Types == nil {
		s.Types, s.names = map[string]*Shape{}, map[reflect.Type]string{}
	}
	return s.of(c.node), nil
}

func (s *Shapes) of(n *node) *Shape {
	if n.typ.Name() == "" || n.op != opStruct && !n.contains(n, map[*node]bool{}) {
		return s.shape(n)
	}
	name, known := s.names[n.typ]
	if !known {
		name = n.typ.PkgPath() + "." + n.typ.Name()
		for i := 2; s.Types[name] != nil; i++ { // types declared inside functions may share a name
			name = n.typ.PkgPath() + "." + n.typ.Name() + "·" + strconv.Itoa(i)
		}
		s.names[n.typ] = name
		shape := new(Shape)
		s.Types[name] = shape
		*shape = *s.shape(n)
	}
	return &Shape{Kind: "ref", Name: name}
}

// contains reports whether a value of n's type can contain a value of what's type.
func (n *node) contains(what *node, seen map[*node]bool) bool {
	parts := []*node{n.key, n.elem}
	for i := range n.fields {
		parts = append(parts, n.fields[i].node)
	}
	for _, part := range parts {
		if part == nil || seen[part] {
			continue
		}
		seen[part] = true
		if part == what || part.contains(what, seen) {
			return true
		}
	}
	return false
}

// kinds are the kinds of shapes. A number is followed by its bits.
var kinds = [...]string{
	opBool: "bool", opInt: "int", opUint: "uint", opFloat: "float", opString: "string", opBytes: "bytes",
	opByteArray: "bytes", opTime: "time", opAny: "any", opPtr: "optional", opSlice: "list", opArray: "list",
	opMap: "map", opStruct: "struct",
}

func (s *Shapes) shape(n *node) *Shape {
	shape := &Shape{Kind: kinds[n.op]}
	switch n.op {
	case opInt, opUint, opFloat:
		shape.Kind += strconv.Itoa(n.bits)
	case opByteArray, opArray:
		shape.Length = &n.len
	case opStruct:
		for _, f := range n.fields {
			shape.Fields = append(shape.Fields, ShapeField{Name: f.key, Omitempty: f.omit, Type: s.of(f.node)})
		}
	default:
	}
	if n.key != nil {
		shape.Key = s.of(n.key)
	}
	if n.elem != nil {
		shape.Elem = s.of(n.elem)
	}
	return shape
}
