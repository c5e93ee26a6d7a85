package delayedvet

import (
	"fmt"
	"go/types"
	"reflect"
	"strings"
)

// parameter describes the type of a parameter by texts, so that facts can carry it.
type parameter struct {
	Type   string // as errors show it
	Full   string // with the import paths of packages; equal for identical types only
	Under  string // the same of its underlying type, without tags of fields
	Elem   string // of a pointer without a name: the same of what it points to
	Kind   reflect.Kind
	Bits   int  // of a number
	Named  bool // declared, as opposed to a type literal
	Grows  bool // a slice other than []byte, which a Group can fill
	Opaque bool // depends on a type parameter, so that nothing can be said
}

// The kinds of all sizes of a number are one, and an interface is any.
const (
	kindInt, kindUint, kindFloat = reflect.Int, reflect.Uint, reflect.Float64
	kindAny                      = reflect.Interface
)

func (p parameter) isInteger() bool { return p.Kind == kindInt || p.Kind == kindUint }

func (c *checker) parameterOf(t types.Type) parameter {
	p := parameter{
		Type: c.text(t), Full: fullText(t), Under: fullText(t.Underlying()), Kind: kindOf(t), Opaque: hasTypeParam(t),
	}
	if b, ok := t.Underlying().(*types.Basic); ok && c.pass.TypesSizes != nil && b.Info()&types.IsNumeric != 0 {
		p.Bits = int(c.pass.TypesSizes.Sizeof(b)) * 8
	}
	if s, ok := t.Underlying().(*types.Slice); ok {
		b, basic := types.Unalias(s.Elem()).(*types.Basic)
		p.Grows = !basic || b.Kind() != types.Uint8
	}
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		p.Elem = fullText(t.Elem().Underlying())
	case *types.Named, *types.Basic:
		p.Named = true
	}
	return p
}

func kindOf(t types.Type) reflect.Kind {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch info := u.Info(); {
		case info&types.IsBoolean != 0:
			return reflect.Bool
		case info&types.IsString != 0:
			return reflect.String
		case info&types.IsFloat != 0:
			return kindFloat
		case u.Kind() == types.Uintptr:
			return reflect.Invalid
		case info&types.IsUnsigned != 0:
			return kindUint
		case info&types.IsInteger != 0:
			return kindInt
		}
	case *types.Pointer:
		return reflect.Pointer
	case *types.Slice:
		return reflect.Slice
	case *types.Array:
		return reflect.Array
	case *types.Map:
		return reflect.Map
	case *types.Struct:
		return reflect.Struct
	case *types.Interface:
		return kindAny
	}
	return reflect.Invalid
}

// fullText writes a type with import paths and without the tags of fields.
func fullText(t types.Type) string {
	switch t := types.Unalias(t).(type) {
	case *types.Pointer:
		return "*" + fullText(t.Elem())
	case *types.Slice:
		return "[]" + fullText(t.Elem())
	case *types.Array:
		return fmt.Sprintf("[%d]%s", t.Len(), fullText(t.Elem()))
	case *types.Map:
		return "map[" + fullText(t.Key()) + "]" + fullText(t.Elem())
	case *types.Struct:
		var b strings.Builder
		b.WriteString("struct{")
		for f := range t.Fields() {
			if f.Anonymous() {
				b.WriteString("embedded ")
			}
			if !f.Exported() && f.Pkg() != nil {
				b.WriteString(f.Pkg().Path() + ".")
			}
			b.WriteString(f.Name() + " " + fullText(f.Type()) + "; ")
		}
		return b.String() + "}"
	case *types.Interface:
		if t.Empty() {
			return "any"
		}
	}
	return types.TypeString(t, nil)
}
