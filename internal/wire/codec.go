package wire

import (
	"fmt"
	"reflect"
	"sync"
)

// Codec encodes and decodes the values of one Go type. It never changes and may be used by any number of goroutines.
type Codec struct {
	node *node
}

// codecs holds the *Codec of each type for which CodecFor was called.
var codecs sync.Map

// CodecFor returns the codec for t, the same one each time. It fails with an *UnsupportedError if values of t cannot be
// sent.
func CodecFor(t reflect.Type) (*Codec, error) {
	if c, ok := codecs.Load(t); ok {
		return c.(*Codec), nil //nolint:errcheck // it holds nothing else
	}
	c := compiler{root: t, done: map[reflect.Type]*node{}}
	n, err := c.node(t, "", nil)
	if err != nil {
		return nil, err
	}
	codec, _ := codecs.LoadOrStore(t, &Codec{node: n})
	return codec.(*Codec), nil //nolint:errcheck // as above
}

// FromArray reports whether the type can be decoded from an array: slices (but not []byte), arrays (but not [n]byte),
// structs, any, and pointers to those.
func (c *Codec) FromArray() bool { return c.node.fromArray() }

// Depth returns the greatest nesting depth of arrays and maps in a value of the type. bounded is false for types that
// contain themselves or an interface.
func (c *Codec) Depth() (most int, bounded bool) { return c.node.depth(map[*node]int{}) }

// Decode reads exactly one value from the front of b into dst, which must be settable and of the codec's type, and
// returns the bytes after it. Decode sets dst to zero first, and leaves it zero after an error; nothing in dst shares
// memory with b. Callers should have called Check on b, but no input can do harm. The error is a *ValueError.
func (c *Codec) Decode(b []byte, dst reflect.Value) (rest []byte, err error) {
	n := c.node
	if !dst.CanSet() || dst.Type() != n.typ {
		got := "nothing"
		if dst.IsValid() {
			got = "one of type " + dst.Type().String() + " or one that cannot be set"
		}
		return nil, &ValueError{Want: "a variable of type " + n.typ.String(), Got: got}
	}
	dst.SetZero()
	next, ve := decode(n, b, dst)
	if ve != nil {
		return nil, ve
	}
	return b[next:], nil
}

func decode(n *node, b []byte, dst reflect.Value) (next int, err *ValueError) {
	defer func() {
		if p := recover(); p != nil {
			err = &ValueError{Want: n.want(), Got: fmt.Sprintf("a value that made the decoder panic (%T)", p)}
		}
		if err != nil {
			dst.SetZero()
		}
	}()
	w := walker{b: b}
	if next, err = w.walk(n, 0, 0); err != nil {
		return 0, err
	}
	if err = w.fits(next); err != nil {
		return 0, err
	}
	d := builder{b: b, ends: w.ends}
	return d.build(n, 0, dst)
}

// Append appends v, a value of the codec's type, with structs by name, and returns the longer slice. What Append writes
// passes Check: it refuses more than 32 arrays and maps inside one another (and so a value that contains itself), more
// than 65,536 values, more than 1 MiB, and strings that are not UTF-8. The error is a *ValueError, and then Append
// returns dst unchanged. Other goroutines must not change v meanwhile.
func (c *Codec) Append(dst []byte, v reflect.Value) ([]byte, error) {
	b, _, err := c.AppendAs(ByName, dst, v)
	return b, err
}

// AppendAs is like Append, but writes structs in the given form. It also reports whether v contains a struct: if not,
// all forms give the same bytes.
func (c *Codec) AppendAs(form Form, dst []byte, v reflect.Value) (b []byte, structs bool, _ error) {
	n := c.node
	if !v.IsValid() {
		if n.op == opAny {
			return AppendNil(dst), false, nil
		}
		return dst, false, &ValueError{Want: n.want(), Got: "nil"}
	}
	if v.Type() != n.typ {
		return dst, false, &ValueError{Want: n.want(), Got: v.Type().String()}
	}
	e := encoder{dst: dst, start: len(dst), form: form}
	err := e.encode(n, v, 0)
	if err == nil {
		err = e.checkSize(0)
	}
	if err != nil {
		return dst, false, err
	}
	return e.dst, e.structs, nil
}
