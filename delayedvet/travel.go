package delayedvet

import (
	"fmt"
	"go/types"
	"reflect"
	"strings"
)

// hintCode is what to do about code and what belongs to one process.
const hintCode = `send what is needed to make it anew; keep a field at home with the tag msgpack:"-"`

// traveller finds out whether messages can hold the values of a type.
type traveller struct {
	c    *checker
	root types.Type
	done map[types.Type]bool
	lost string // see travels
}

// travels returns why values of a type cannot be sent; "" if they can, or if that depends on a type parameter. If they
// can, lost is which of their data does not arrive: fields that are not exported beside others that are. It leaves out
// what is no data, such as locks, and fields whose tag is msgpack:"-".
func (c *checker) travels(t types.Type) (why, lost string) {
	v := traveller{c: c, root: t, done: map[types.Type]bool{}}
	why = v.walk(t, "", nil)
	return why, v.lost
}

func (v *traveller) refuse(t types.Type, where, hint string) string {
	text := v.c.text(t)
	switch {
	case where != "":
		text += fmt.Sprintf(" (in %s at %s)", v.c.text(v.root), where)
	case !types.Identical(t, v.root):
		text += fmt.Sprintf(" (in %s)", v.c.text(v.root))
	}
	return text + " cannot travel in a task: " + hint
}

// walk looks at the type at where. pointers holds the pointers that lead to it without a list, map or struct.
func (v *traveller) walk(t types.Type, where string, pointers []types.Type) string {
	t = types.Unalias(t)
	for _, p := range pointers {
		if types.Identical(p, t) {
			return v.refuse(t, where, "it points to itself without end; put a struct in between")
		}
	}
	if _, ok := t.(*types.TypeParam); ok || v.done[t] || v.c.typeName(t) == "time.Time" {
		return ""
	}
	v.done[t] = true
	switch u := t.Underlying().(type) {
	case *types.Basic:
		switch {
		case u.Info()&types.IsComplex != 0:
			return v.refuse(t, where, "send its two parts as floats")
		case u.Kind() == types.Uintptr || u.Kind() == types.UnsafePointer:
			return v.refuse(t, where, "another process cannot use an address; for a number use uint64")
		}
		return ""
	case *types.Pointer:
		v.done[t] = false // the elements of a ring of pointers are not done
		return v.walk(u.Elem(), where, append(pointers, t))
	case *types.Map:
		return v.mapOf(t, u, where)
	case *types.Chan:
		return v.refuse(t, where, hintCode)
	case interface{ Elem() types.Type }: // slices and arrays
		return v.walk(u.Elem(), where+"[]", nil)
	case *types.Struct:
		return v.structOf(t, u, where)
	case *types.Interface:
		switch {
		case u.Empty():
			return ""
		case types.Identical(t, errorType):
			return v.refuse(t, where, "send its text")
		case v.c.typeName(t) == "context.Context":
			return v.refuse(t, where, "a handler may take one as its first parameter only, and it is not sent")
		}
		return v.refuse(t, where, "only an empty interface (any) or a concrete type can be filled from a message")
	default: // functions
		return v.refuse(t, where, hintCode)
	}
}

func (v *traveller) mapOf(t types.Type, m *types.Map, where string) string {
	if why := v.walk(m.Key(), where+"[key]", nil); why != "" {
		return why
	}
	ok := false
	switch k := m.Key().Underlying().(type) {
	case *types.Basic:
		ok = k.Info()&(types.IsString|types.IsInteger|types.IsBoolean) != 0
	case *types.Interface: // or a type parameter
		ok = true
	}
	if !ok {
		return v.refuse(t, where, "keys of a map can be strings, integers or booleans; write the key as a string, or "+
			"send a slice of structs")
	}
	return v.walk(m.Elem(), where+"[]", nil)
}

func (v *traveller) structOf(t types.Type, s *types.Struct, where string) string {
	if obj, _, _ := types.LookupFieldOrMethod(t, true, nil, "ProtoReflect"); obj != nil {
		defer func(lost string) { v.lost = lost }(v.lost) // what protobuf keeps there is made anew
	}
	keys := map[string]bool{}
	for i := range s.NumFields() {
		f := s.Field(i)
		key := tagOf(s, i)
		if key == "-" {
			continue
		}
		if !f.Exported() {
			if f.Anonymous() && promotes(f.Type()) {
				return v.refuse(f.Type(), where+"."+f.Name(), "the fields of an embedded struct that is not exported "+
					`would be lost; export it, or say so with the tag msgpack:"-"`)
			}
			if v.lost == "" && f.Name() != "_" && isData(f.Type()) {
				v.lost = fmt.Sprintf("field %s of %s is not exported, so it arrives as its zero value; export it, or "+
					`say so with the tag msgpack:"-"`, f.Name(), v.c.text(t))
			}
			continue
		}
		if key == "" {
			key = f.Name()
		}
		if keys[key] {
			return v.refuse(t, where, fmt.Sprintf("two of its fields have the key %q", key))
		}
		keys[key] = true
		if why := v.walk(f.Type(), where+"."+f.Name(), nil); why != "" {
			return why
		}
	}
	if len(keys) == 0 && s.NumFields() > 0 {
		return v.refuse(t, where, "it has no exported field, so nothing of it would arrive; send its text or number "+
			"instead, or wrap it in a type of your own")
	}
	return ""
}

// tagOf returns the key that a field's tag gives it in messages; "" if it gives none.
func tagOf(s *types.Struct, i int) string {
	key, _, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get("msgpack"), ",")
	return key
}

// promotes reports whether embedding t gives a struct exported fields.
func promotes(t types.Type) bool {
	t, _ = pointedBy(t.Underlying())
	s, ok := t.Underlying().(*types.Struct)
	if !ok {
		return false
	}
	for f := range s.Fields() {
		_, inner := f.Type().Underlying().(*types.Struct)
		if f.Exported() || f.Anonymous() && inner && promotes(f.Type()) {
			return true
		}
	}
	return false
}

// isData reports whether a field of the type holds something that a program would miss.
func isData(t types.Type) bool {
	if name := nameOf(t); name != nil && (name.Pkg().Path() == "sync" || name.Pkg().Path() == "sync/atomic") {
		return false
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Kind() != types.UnsafePointer
	case *types.Slice, *types.Map, *types.Array:
		return true
	case *types.Pointer:
		return isPointedData(u.Elem())
	case *types.Struct:
		return u.NumFields() > 0
	default: // functions, channels and interfaces, which cannot travel anyway
		return false
	}
}

// isPointedData is isData for what a pointer points to, one step deep, so that it ends.
func isPointedData(t types.Type) bool {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return true
	case *types.Struct:
		for f := range u.Fields() {
			if f.Exported() {
				return true
			}
		}
	}
	return false
}

// hasTypeParam reports whether a type depends on a type parameter.
func hasTypeParam(t types.Type) bool {
	switch t := types.Unalias(t).(type) {
	case *types.TypeParam:
		return true
	case *types.Map:
		return hasTypeParam(t.Key()) || hasTypeParam(t.Elem())
	case interface{ Elem() types.Type }:
		return hasTypeParam(t.Elem())
	case *types.Named:
		for arg := range t.TypeArgs().Types() {
			if hasTypeParam(arg) {
				return true
			}
		}
	}
	return false
}
