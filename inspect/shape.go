package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/godelayed/delayed/internal/wire"
)

// Shape says how tasks hold the values of a type, in terms of all languages. Shapes of types that contain themselves
// are circles, so print and encode them with care.
type Shape struct {
	// Kind is "bool", "string", "bytes", "time", "any", "int8" to "int64", "uint8" to "uint64", "float32", "float64",
	// "optional" (an Elem, or nil), "list", "map" or "struct".
	Kind   string
	Name   string // of a struct or of a type that contains itself, as its language writes it; "" if it has none
	Length int    // of a list or of bytes with a fixed length; else -1
	Key    *Shape // of a map
	Elem   *Shape // of an optional, a list or a map
	Fields []Field
}

// Field is one field of a struct.
type Field struct {
	Name  string // its key in a task
	Shape *Shape
}

// shapes turns what a worker has published into shapes.
type shapes struct {
	types map[string]*wire.Shape // those that refs name
	known map[string]*Shape
}

// of returns the shape of s. What is strange is "any": it may come from a worker of a newer version.
func (all *shapes) of(s *wire.Shape) *Shape {
	if s == nil {
		return &Shape{Kind: "any", Length: -1}
	}
	if s.Kind != "ref" {
		shape := &Shape{Length: -1}
		all.fill(shape, s)
		return shape
	}
	if shape := all.known[s.Name]; shape != nil {
		return shape
	}
	shape := &Shape{Kind: "any", Name: s.Name, Length: -1}
	all.known[s.Name] = shape // before its parts, which may contain it
	if named := all.types[s.Name]; named != nil && named.Kind != "ref" {
		all.fill(shape, named)
	}
	return shape
}

func (all *shapes) fill(shape *Shape, s *wire.Shape) {
	shape.Kind = s.Kind
	if s.Length != nil {
		shape.Length = *s.Length
	}
	switch s.Kind {
	case "map":
		shape.Key, shape.Elem = all.of(s.Key), all.of(s.Elem)
	case "list", "optional":
		shape.Elem = all.of(s.Elem)
	case "struct":
		for _, f := range s.Fields {
			shape.Fields = append(shape.Fields, Field{f.Name, all.of(f.Type)})
		}
	}
}

// text writes what tells a shape from others, each named one once.
func (s *Shape) text(b *strings.Builder, seen *[]*Shape) {
	if s == nil {
		return
	}
	fmt.Fprintf(b, "%s %q %d(", s.Kind, s.Name, s.Length)
	defer b.WriteByte(')')
	if s.Name != "" {
		if slices.Contains(*seen, s) {
			return
		}
		*seen = append(*seen, s)
	}
	s.Key.text(b, seen)
	s.Elem.text(b, seen)
	for _, f := range s.Fields {
		fmt.Fprintf(b, "%q:", f.Name)
		f.Shape.text(b, seen)
	}
}
