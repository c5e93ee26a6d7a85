package wire

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// op defines how values of a type are read and written.
type op uint8

const (
	opBool op = iota + 1
	opInt
	opUint
	opFloat
	opString
	opBytes     // []byte
	opByteArray // [n]byte
	opTime
	opAny
	opPtr
	opSlice
	opArray
	opMap
	opStruct
)

// node describes how to read and write the values of one type. It never changes once CodecFor has returned it. The
// nodes of recursive types refer to one another in a cycle.
type node struct {
	op     op
	typ    reflect.Type
	bits   int            // numbers: 8 to 64
	size   int            // size of a value in bytes, without what it points to
	elem   *node          // pointer, slice, array and map: node of what they hold
	key    *node          // map: node of the keys
	len    int            // arrays: number of elements
	fields []field        // struct, in the order in which ByPosition writes them
	byKey  map[string]int // struct: index in fields
	empty  reflect.Value  // slice: an empty one that is not nil
	inLib  bool           // slice and map: the library decodes long ones faster
}

// field is one field of a struct that messages contain.
type field struct {
	name  string // name in Go
	key   string // key in maps
	wire  []byte // key, encoded
	index int    // index in the Go type
	omit  bool   // whether its tag has omitempty, which Go ignores: see encodeStruct
	node  *node
}

var (
	typeByte = reflect.TypeFor[byte]()
	typeTime = reflect.TypeFor[time.Time]()
)

// fromArray reports whether a value of the type can be decoded from an array.
func (n *node) fromArray() bool {
	for n.op == opPtr {
		n = n.elem
	}
	switch n.op {
	case opSlice, opArray, opStruct, opAny:
		return true
	default:
		return false
	}
}

// depth is Codec.Depth. known holds the depths of the nodes that it has visited, and inProgress for those that contain
// n.
func (n *node) depth(known map[*node]int) (most int, bounded bool) {
	const inProgress = -1
	if d, ok := known[n]; ok {
		return d, d != inProgress
	}
	if n.op == opAny {
		return 0, false
	}
	known[n] = inProgress
	parts := make([]*node, 0, len(n.fields)+2)
	for i := range n.fields {
		parts = append(parts, n.fields[i].node)
	}
	for _, part := range append(parts, n.key, n.elem) {
		if part == nil {
			continue
		}
		d, ok := part.depth(known)
		if !ok {
			return 0, false
		}
		most = max(most, d)
	}
	switch n.op {
	case opSlice, opArray, opMap, opStruct:
		most++
	default:
	}
	known[n] = most
	return most, true
}

// fieldAt returns the index of the field whose key is the string at b[i:], or −1 if there is none, and the position of
// its value, which is negative if b[i:] is not a string. Callers that read a map pass the index of the field after the
// last one as guess, because Go writes the fields in order.
func (n *node) fieldAt(b []byte, i, guess int) (k, value int) {
	if guess < len(n.fields) {
		if key := n.fields[guess].wire; len(key) <= len(b)-i && string(b[i:i+len(key)]) == string(key) {
			return guess, i + len(key)
		}
	}
	start, end := strAt(b, i)
	if end >= 0 {
		if k, ok := n.byKey[string(b[start:end])]; ok {
			return k, end
		}
	}
	return -1, end
}

// want names the type for errors, with its MessagePack form where the type does not show it.
func (n *node) want() string {
	switch n.op {
	case opBytes:
		return n.typ.String() + " (binary)"
	case opByteArray:
		return fmt.Sprintf("%s (binary of %s)", n.typ, count(n.len, "byte"))
	case opTime:
		return n.typ.String() + " (timestamp)"
	case opSlice:
		return n.typ.String() + " (array)"
	case opArray:
		return fmt.Sprintf("%s (array of %s)", n.typ, count(n.len, "value"))
	case opMap:
		return n.typ.String() + " (map)"
	case opStruct:
		return fmt.Sprintf("%s (map, or array of %s)", n.typ, count(len(n.fields), "value"))
	case opPtr:
		if n.elem.op != opPtr {
			return n.elem.want() + " or nil"
		}
		return n.typ.String()
	default:
		return n.typ.String()
	}
}

// compiler makes the nodes of one type and of the types that it contains.
type compiler struct {
	root reflect.Type
	done map[reflect.Type]*node
}

func (c *compiler) refuse(t reflect.Type, where, hint string) error {
	return &UnsupportedError{Type: c.root, Where: where, Part: t, Hint: hint}
}

const (
	hintCode   = `send what is needed to make it anew; keep a field at home with the tag msgpack:"-"`
	hintNumber = "another process cannot use an address; for a number use uint64"
	hintIface  = "only an empty interface (any) or a concrete type can be filled from a message"
	hintEmpty  = "it has no exported field, so nothing of it would arrive; send its text or number instead, or wrap " +
		"it in a type of your own"
	hintLoop = "it points to itself without end; put a struct in between"
)

// node makes the node for t. pointers holds the pointer types passed since the last array, map or struct.
func (c *compiler) node(t reflect.Type, where string, pointers []reflect.Type) (*node, error) {
	if slices.Contains(pointers, t) {
		return nil, c.refuse(t, where, hintLoop)
	}
	if n := c.done[t]; n != nil {
		return n, nil
	}
	n := &node{typ: t, size: int(t.Size())}
	c.done[t] = n
	if t == typeTime {
		n.op = opTime
		return n, nil
	}
	var err error
	switch t.Kind() {
	case reflect.Bool:
		n.op = opBool
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n.op, n.bits = opInt, t.Bits()
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n.op, n.bits = opUint, t.Bits()
	case reflect.Float32, reflect.Float64:
		n.op, n.bits = opFloat, t.Bits()
	case reflect.String:
		n.op = opString
	case reflect.Slice:
		if t.Elem() == typeByte {
			n.op = opBytes
			break
		}
		n.op, n.empty = opSlice, reflect.MakeSlice(t, 0, 0)
		n.elem, err = c.node(t.Elem(), where+"[]", nil)
	case reflect.Array:
		n.len = t.Len()
		if t.Elem() == typeByte {
			n.op = opByteArray
			break
		}
		n.op = opArray
		n.elem, err = c.node(t.Elem(), where+"[]", nil)
	case reflect.Pointer:
		n.op = opPtr
		n.elem, err = c.node(t.Elem(), where, append(pointers, t))
	case reflect.Map:
		err = c.mapNode(n, where)
	case reflect.Struct:
		err = c.structNode(n, where)
	case reflect.Interface:
		n.op = opAny
		if t.NumMethod() > 0 {
			err = c.refuse(t, where, hintOf(t))
		}
	default:
		err = c.refuse(t, where, hintOf(t))
	}
	if err != nil {
		return nil, err
	}
	n.inLib = (n.op == opSlice || n.op == opMap) && inLibrary(n)
	return n, nil
}

// hintOf returns what to use instead of t, which no message can hold.
func hintOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Complex64, reflect.Complex128:
		return "send its two parts as floats"
	case reflect.Uintptr, reflect.UnsafePointer:
		return hintNumber
	case reflect.Interface:
		switch t.String() {
		case "error":
			return "send its text"
		case "context.Context":
			return "a handler may take one as its first parameter only, and it is not sent"
		}
		return hintIface
	default: // functions and channels
		return hintCode
	}
}

// mapNode fills in n for a map.
func (c *compiler) mapNode(n *node, where string) (err error) {
	n.op = opMap
	if n.key, err = c.node(n.typ.Key(), where+"[key]", nil); err != nil {
		return err
	}
	switch n.key.op {
	case opString, opInt, opUint, opBool, opAny:
	default:
		return c.refuse(n.typ, where,
			"keys of a map can be strings, integers or booleans; write the key as a string, or send a slice of structs")
	}
	n.elem, err = c.node(n.typ.Elem(), where+"[]", nil)
	return err
}

// structNode fills in n for a struct.
func (c *compiler) structNode(n *node, where string) error {
	n.op, n.byKey = opStruct, map[string]int{}
	t := n.typ
	for i := range t.NumField() {
		f := t.Field(i)
		key, options, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		if key == "-" {
			continue
		}
		if !f.IsExported() {
			if f.Anonymous && promotes(f.Type) {
				return c.refuse(f.Type, where+"."+f.Name,
					"the fields of an embedded struct that is not exported would be lost; "+
						`export it, or say so with the tag msgpack:"-"`)
			}
			continue
		}
		if key == "" {
			key = f.Name
		}
		if _, taken := n.byKey[key]; taken {
			return c.refuse(t, where, fmt.Sprintf("two of its fields have the key %q", key))
		}
		fn, err := c.node(f.Type, where+"."+f.Name, nil)
		if err != nil {
			return err
		}
		if !utf8.ValidString(key) {
			return c.refuse(t, where, fmt.Sprintf("its field %s has a key that is not UTF-8; change the tag", f.Name))
		}
		n.byKey[key] = len(n.fields)
		n.fields = append(n.fields, field{
			name: f.Name, key: key, wire: AppendString(nil, key), index: i, omit: hasOption(options, "omitempty"),
			node: fn,
		})
	}
	if len(n.fields) == 0 && t.NumField() > 0 {
		return c.refuse(t, where, hintEmpty)
	}
	return nil
}

// promotes reports whether embedding t gives a struct exported fields.
func promotes(t reflect.Type) bool {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.IsExported() || f.Anonymous && f.Type.Kind() == reflect.Struct && promotes(f.Type) {
			return true
		}
	}
	return false
}

// hasOption reports whether the comma-separated options of a struct tag contain option.
func hasOption(options, option string) bool {
	for o := range strings.SplitSeq(options, ",") {
		if o == option {
			return true
		}
	}
	return false
}
