package delayedvet

import (
	"fmt"
	"go/types"
)

// losesIn returns which data of a type that can be sent does not arrive: fields that are not exported beside others
// that are. It leaves out what is no data, such as locks, and fields whose tag says msgpack:"-".
func (c *checker) losesIn(t types.Type) string {
	done := map[types.Type]bool{}
	var walk func(types.Type, string) string
	walk = func(t types.Type, where string) string {
		t = types.Unalias(t)
		if done[t] || c.typeName(t) == "time.Time" {
			return ""
		}
		done[t] = true
		switch u := t.Underlying().(type) {
		case *types.Pointer:
			return walk(u.Elem(), where)
		case *types.Slice:
			return walk(u.Elem(), where+"[]")
		case *types.Array:
			return walk(u.Elem(), where+"[]")
		case *types.Map:
			return walk(u.Elem(), where+"[]")
		case *types.Struct:
			if obj, _, _ := types.LookupFieldOrMethod(t, true, nil, "ProtoReflect"); obj != nil {
				return "" // what protobuf keeps there is made anew
			}
			for i := range u.NumFields() {
				f := u.Field(i)
				switch {
				case tagOf(u, i) == "-":
				case f.Exported():
					if lost := walk(f.Type(), where+"."+f.Name()); lost != "" {
						return lost
					}
				case f.Name() != "_" && isData(f.Type()):
					return fmt.Sprintf("field %s of %s is not exported, so it arrives as its zero value; export it, "+
						`or say so with the tag msgpack:"-"`, f.Name(), c.text(t))
				}
			}
		}
		return ""
	}
	return walk(t, "")
}

// isData reports whether a field of the type holds something that a program would miss.
func isData(t types.Type) bool {
	t = types.Unalias(t)
	if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != nil {
		switch named.Obj().Pkg().Path() {
		case "sync", "sync/atomic":
			return false
		}
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
