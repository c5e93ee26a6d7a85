package wire

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"
)

// encoder appends one value and keeps it within the limits of the protocol.
type encoder struct {
	dst   []byte
	start int // where the value begins in dst
	elems int // values written so far
	hops  int // pointers and interfaces followed since the last array, map or struct

	form    Form
	structs bool // whether it has written a struct
}

// Form defines how structs are written.
type Form uint8

const (
	// ByName writes a map with the keys of the fields, so that a program may add, remove and reorder fields while tasks
	// wait.
	ByName Form = iota
	// ByPosition writes an array of all fields in their order, as go-delayed reads them.
	ByPosition
)

// maxHops bounds how many pointers and interfaces encode follows one after another: it treats more as a cycle.
const maxHops = 64

// encode appends v, whose type is that of n; depth is the number of arrays and maps around v.
func (e *encoder) encode(n *node, v reflect.Value, depth int) *ValueError {
	if n.op == opPtr || n.op == opAny {
		return e.encodeInside(n, v, depth)
	}
	e.hops = 0
	if err := e.more(); err != nil {
		return err
	}
	switch n.op {
	case opBool:
		e.dst = AppendBool(e.dst, v.Bool())
	case opInt:
		e.dst = AppendInt(e.dst, v.Int())
	case opUint:
		e.dst = AppendUint(e.dst, v.Uint())
	case opFloat:
		if n.bits == 32 {
			e.dst = AppendFloat32(e.dst, float32(v.Float()))
		} else {
			e.dst = AppendFloat64(e.dst, v.Float())
		}
	case opString:
		return e.encodeString(n, v.String())
	case opBytes:
		return e.encodeBytes(v)
	case opByteArray:
		return e.encodeByteArray(n, v)
	case opTime:
		return e.encodeTime(v)
	case opSlice, opArray:
		return e.encodeArray(n, v, depth)
	case opMap:
		return e.encodeMap(n, v, depth)
	default:
		return e.encodeStruct(n, v, depth)
	}
	return nil
}

// more counts one more written value, and fails when there are too many.
func (e *encoder) more() *ValueError {
	if e.elems++; e.elems > maxElems {
		return &ValueError{Want: fmt.Sprintf("at most %d values", maxElems), Got: "more"}
	}
	return nil
}

// encodeInside appends the value that a pointer points to or an interface holds, or nil.
func (e *encoder) encodeInside(n *node, v reflect.Value, depth int) *ValueError {
	if v.IsNil() {
		e.dst = AppendNil(e.dst)
		return e.more()
	}
	if e.hops++; e.hops > maxHops {
		return &ValueError{Want: "a value that ends", Got: "pointers in a ring"}
	}
	v = v.Elem()
	if n.op == opPtr {
		return e.encode(n.elem, v, depth)
	}
	c, err := CodecFor(v.Type())
	if err != nil {
		return &ValueError{Want: "a value that can travel", Got: "another: " + err.Error()}
	}
	return e.encode(c.node, v, depth)
}

// checkSize fails if n more bytes would make the value longer than the limit.
func (e *encoder) checkSize(n int) *ValueError {
	if n > maxBytes-(len(e.dst)-e.start) {
		return &ValueError{Want: fmt.Sprintf("at most %d bytes", maxBytes), Got: "more"}
	}
	return nil
}

func (e *encoder) encodeString(n *node, s string) *ValueError {
	if err := e.checkSize(len(s)); err != nil {
		return err
	}
	if !utf8.ValidString(s) {
		return &ValueError{
			Want: n.want() + " in UTF-8",
			Got:  fmt.Sprintf("string of %s%s; send it as []byte", count(len(s), "byte"), notUTF8),
		}
	}
	e.dst = AppendString(e.dst, s)
	return nil
}

func (e *encoder) encodeBytes(v reflect.Value) *ValueError {
	if v.IsNil() {
		e.dst = AppendNil(e.dst)
		return nil
	}
	if err := e.checkSize(v.Len()); err != nil {
		return err
	}
	e.dst = AppendBin(e.dst, v.Bytes())
	return nil
}

func (e *encoder) encodeByteArray(n *node, v reflect.Value) *ValueError {
	if err := e.checkSize(n.len); err != nil {
		return err
	}
	if v.CanAddr() {
		e.dst = AppendBin(e.dst, v.Bytes())
		return nil
	}
	e.dst = appendLength(e.dst, codeBin8, n.len)
	at := len(e.dst)
	e.dst = slices.Grow(e.dst, n.len)[:at+n.len]
	reflect.Copy(reflect.ValueOf(e.dst[at:]), v)
	return nil
}

func (e *encoder) encodeTime(v reflect.Value) *ValueError {
	var t time.Time
	if v.CanAddr() {
		t = *v.Addr().Interface().(*time.Time) //nolint:errcheck // the type is that of the node
	} else {
		t = v.Interface().(time.Time) //nolint:errcheck // as above
	}
	if t.Unix() > maxUnix {
		return &ValueError{Want: v.Type().String() + " (timestamp)", Got: "a time that no timestamp holds"}
	}
	e.dst = AppendTime(e.dst, t)
	return nil
}

// enter fails if an array or map inside depth others would be nested too deep.
func enter(depth int) *ValueError {
	if depth == maxDepth {
		return &ValueError{
			Want: fmt.Sprintf(nesting, maxDepth),
			Got:  "one more, or a value that contains itself",
		}
	}
	return nil
}

func (e *encoder) encodeArray(n *node, v reflect.Value, depth int) *ValueError {
	if n.op == opSlice && v.IsNil() {
		e.dst = AppendNil(e.dst)
		return nil
	}
	if err := enter(depth); err != nil {
		return err
	}
	cnt := v.Len()
	e.dst = AppendArrayHeader(e.dst, cnt)
	for i := range cnt {
		if err := e.encode(n.elem, v.Index(i), depth+1); err != nil {
			return err.in(step(i))
		}
	}
	return nil
}

func (e *encoder) encodeStruct(n *node, v reflect.Value, depth int) *ValueError {
	if err := enter(depth); err != nil {
		return err
	}
	e.structs = true
	if e.form == ByPosition {
		e.dst = AppendArrayHeader(e.dst, len(n.fields))
	} else {
		// Write all fields, even those with omitempty: a value that takes much memory must not be small in the message.
		e.elems += len(n.fields) // the keys; encoding the values checks the limit
		e.dst = AppendMapHeader(e.dst, len(n.fields))
	}
	for i := range n.fields {
		f := &n.fields[i]
		if e.form == ByName {
			e.dst = append(e.dst, f.wire...)
		}
		if err := e.encode(f.node, v.Field(f.index), depth+1); err != nil {
			return err.in("." + f.name)
		}
	}
	return nil
}

// encodeMap appends the pairs in the order of their encoded keys, so that equal maps are equal bytes.
func (e *encoder) encodeMap(n *node, v reflect.Value, depth int) *ValueError {
	if v.IsNil() {
		e.dst = AppendNil(e.dst)
		return nil
	}
	if err := enter(depth); err != nil {
		return err
	}
	cnt := v.Len()
	e.dst = AppendMapHeader(e.dst, cnt)
	if cnt == 0 {
		return nil
	}
	type span struct{ key, elem, end int }
	spans := make([]span, 0, cnt)
	first := len(e.dst)
	key, elem := reflect.New(n.key.typ).Elem(), reflect.New(n.elem.typ).Elem()
	for iter := v.MapRange(); iter.Next(); {
		s := span{key: len(e.dst)}
		key.SetIterKey(iter)
		elem.SetIterValue(iter)
		if err := e.encodeKey(n.key, key, depth+1); err != nil {
			return err.in(pair(len(spans)) + ".key")
		}
		s.elem = len(e.dst)
		if err := e.encode(n.elem, elem, depth+1); err != nil {
			return err.in(pair(len(spans)))
		}
		s.end = len(e.dst)
		spans = append(spans, s)
	}
	if cnt == 1 {
		return nil
	}
	old := slices.Clone(e.dst[first:])
	keyOf := func(s span) []byte { return old[s.key-first : s.elem-first] }
	slices.SortFunc(spans, func(a, b span) int { return bytes.Compare(keyOf(a), keyOf(b)) })
	e.dst = e.dst[:first]
	for i, s := range spans {
		if i > 0 && bytes.Equal(keyOf(spans[i-1]), keyOf(s)) {
			return &ValueError{
				Want: "keys that differ",
				Got:  "two keys of " + n.typ.String() + " that are the same in a message",
			}
		}
		e.dst = append(e.dst, old[s.key-first:s.end-first]...)
	}
	return nil
}

// encodeKey appends a key of a map. The value of an interface must be of one of the kinds that keys can have.
func (e *encoder) encodeKey(n *node, v reflect.Value, depth int) *ValueError {
	if n.op == opAny {
		inside := v
		for inside.Kind() == reflect.Interface {
			inside = inside.Elem()
		}
		switch kind := inside.Kind(); {
		case kind == reflect.String, kind == reflect.Bool, kind >= reflect.Int && kind <= reflect.Uint64:
		default:
			got := "nil"
			if inside.IsValid() {
				got = inside.Type().String()
			}
			return &ValueError{Want: "a string, integer or boolean as map key", Got: got}
		}
	}
	return e.encode(n, v, depth)
}
