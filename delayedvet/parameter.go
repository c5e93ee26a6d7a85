package delayedvet

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
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

// argument is what is known of an argument.
type argument struct {
	expr  ast.Expr
	typ   types.Type // nil for nil
	value constant.Value
	as    parameter
}

func (c *checker) argumentOf(e ast.Expr) argument {
	tv := c.pass.TypesInfo.Types[e]
	if tv.IsNil() || tv.Type == nil {
		return argument{expr: e}
	}
	return argument{expr: e, typ: tv.Type, value: tv.Value, as: c.parameterOf(tv.Type)}
}

// found shows the argument as errors at run time do, with the value of a number.
func (a argument) found() string {
	switch {
	case a.typ == nil:
		return "nil"
	case a.value != nil && (a.value.Kind() == constant.Int || a.value.Kind() == constant.Float):
		return a.as.Type + " " + a.value.String()
	}
	return a.as.Type
}

// refused returns what is wrong with an argument that no function can take, and where it belongs; "" if it is fine.
func (c *checker) refused(a argument) string {
	t := a.typ
	switch {
	case t == nil:
		return ""
	case c.isContext(t):
		return "a context.Context, which is no argument: call DelayContext(ctx, fn, ...)"
	case c.isPointerTo(t, inRoot("Ref")):
		return "a *Ref, which is no argument: pass its ID()"
	case types.Implements(t, c.option):
		name := c.optionName(a.expr)
		return fmt.Sprintf("the option %s, which is no argument: give it to Queue.With, as in "+
			"q.With(delayed.%s(…)).Delay(…)", name, name)
	case types.Implements(t, c.funcOpt):
		name := c.optionName(a.expr)
		return fmt.Sprintf("the option %s, which is no argument: give it to Func with the function, as in "+
			"delayed.Func(fn, delayed.%s(…))", name, name)
	}
	if elem, pointer := pointedBy(t); pointer && isHandle(elem) {
		return fmt.Sprintf("a *%s, which cannot travel: let the worker have its own", nameOf(elem).Name())
	}
	return ""
}

// optionName returns the name of the function that has made an option.
func (c *checker) optionName(e ast.Expr) string {
	if call, ok := c.source(e).(*ast.CallExpr); ok {
		if name := lastName(call.Fun); name != nil {
			return name.Name
		}
	}
	return "In" // any will do as an example
}

// isHandle reports whether a type is a struct of package delayed that only its process can use.
func isHandle(t types.Type) bool {
	s, ok := t.Underlying().(*types.Struct)
	if name := nameOf(t); !ok || name == nil || name.Pkg().Path() != root {
		return false
	}
	for f := range s.Fields() {
		if f.Exported() {
			return false
		}
	}
	return true
}

// fits reports whether an argument may be accepted for a parameter: one of its type, an integer that it can hold
// exactly, nil where there is a nil, or a type with the same underlying type. It does also if that depends on a value
// that the source does not show.
func (p parameter) fits(a argument) bool {
	switch {
	case p.Opaque || a.as.Opaque:
		return true
	case a.typ == nil:
		return p.Kind == reflect.Pointer || p.Kind == reflect.Slice || p.Kind == reflect.Map || p.Kind == kindAny
	case a.as.Full == p.Full, p.Kind == kindAny, a.as.Kind == kindAny:
		return true
	case a.as.isInteger() && (p.isInteger() || p.Kind == kindFloat):
		return a.value == nil || representable(a.value, p)
	case p.isInteger():
		return false
	case p.Kind == kindFloat && a.as.Kind == kindFloat:
		return p.Bits == a.as.Bits
	case p.Kind == reflect.Pointer && a.as.Kind == reflect.Pointer:
		return p.Under == a.as.Under || p.Elem != "" && p.Elem == a.as.Elem
	case p.Kind == reflect.Bool || p.Kind == reflect.String:
		return p.Kind == a.as.Kind
	}
	return p.Kind == a.as.Kind && p.Under == a.as.Under
}

// representable reports whether a number type holds an integer exactly.
func representable(v constant.Value, p parameter) bool {
	v = constant.ToInt(v)
	if v.Kind() != constant.Int {
		return false
	}
	switch p.Kind {
	case kindInt:
		if constant.Sign(v) < 0 {
			v = constant.UnaryOp(token.XOR, v, 0) // as many bits, without the sign
		}
		return constant.BitLen(v) < p.Bits
	case kindUint:
		return constant.Sign(v) >= 0 && constant.BitLen(v) <= p.Bits
	default:
		if p.Bits == 32 {
			_, exact := constant.Float32Val(v)
			return exact
		}
		_, exact := constant.Float64Val(v)
		return exact
	}
}
