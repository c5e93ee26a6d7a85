//nolint:gosec // conversions: lengths are checked first, and two's complement is what the format means
package wire

import (
	"reflect"
	"time"
)

// builder makes values from bytes that a walker has accepted, so it checks nothing again. It finds only duplicate keys
// of maps, which the walker does not look for.
type builder struct {
	b    []byte
	ends []int // ends of the values that library decodes, as the walker noted them
}

// library sets dst to the value at b[i:], which the walker has noted as one that the msgpack library decodes.
func (d *builder) library(i int, dst reflect.Value) (next int, err *ValueError) {
	next, d.ends = d.ends[0], d.ends[1:]
	return next, libDecode(d.b[i:next], dst)
}

// build sets dst, which must be zero, to the value at b[i:] and returns the position after that value.
func (d *builder) build(n *node, i int, dst reflect.Value) (next int, err *ValueError) {
	switch n.op {
	case opBool:
		dst.SetBool(d.b[i] == codeTrue)
		return i + 1, nil
	case opInt:
		u, _, next := intAt(d.b, i)
		dst.SetInt(int64(u))
		return next, nil
	case opUint:
		u, _, next := intAt(d.b, i)
		dst.SetUint(u)
		return next, nil
	case opFloat:
		f, next, _ := leafFloat(n, d.b, i)
		dst.SetFloat(f)
		return next, nil
	case opString:
		start, end := strAt(d.b, i)
		dst.SetString(string(d.b[start:end]))
		return end, nil
	case opBytes:
		if isNil(d.b, i) {
			return i + 1, nil
		}
		start, end := binAt(d.b, i)
		dst.SetBytes(append(make([]byte, 0, end-start), d.b[start:end]...))
		return end, nil
	case opByteArray:
		start, end := binAt(d.b, i)
		copy(dst.Bytes(), d.b[start:end])
		return end, nil
	case opTime:
		t, next := timeAt(d.b, i)
		*dst.Addr().Interface().(*time.Time) = t //nolint:errcheck // the type is that of the node
		return next, nil
	case opAny:
		v, next, err := buildAny(d.b, i)
		if v != nil {
			dst.Set(reflect.ValueOf(v))
		}
		return next, err
	case opPtr:
		if isNil(d.b, i) {
			return i + 1, nil
		}
		p := reflect.New(n.elem.typ)
		next, err = d.build(n.elem, i, p.Elem())
		dst.Set(p)
		return next, err
	case opSlice, opArray:
		return d.buildArray(n, i, dst)
	case opMap:
		return d.buildMap(n, i, dst)
	default:
		return d.buildStruct(n, i, dst)
	}
}

func (d *builder) buildArray(n *node, i int, dst reflect.Value) (next int, err *ValueError) {
	cnt, next := arrayAt(d.b, i)
	if n.op == opSlice {
		switch {
		case next < 0: // nil
			return i + 1, nil
		case cnt == 0:
			dst.Set(n.empty)
			return next, nil
		case n.inLib && cnt >= libSlice:
			return d.library(i, dst)
		}
		dst.Grow(cnt)
		dst.SetLen(cnt)
	}
	for k := range cnt {
		if next, err = d.build(n.elem, next, dst.Index(k)); err != nil {
			return 0, err.in(step(k))
		}
	}
	return next, nil
}

func (d *builder) buildMap(n *node, i int, dst reflect.Value) (next int, err *ValueError) {
	cnt, next := mapAt(d.b, i)
	if next < 0 { // nil
		return i + 1, nil
	}
	if n.inLib && cnt >= libMap {
		if next, err = d.library(i, dst); err == nil && dst.Len() != cnt {
			err = &ValueError{Want: "each key of a map once", Got: "one of them again"}
		}
		return next, err
	}
	m := reflect.MakeMapWithSize(n.typ, cnt)
	key, elem := reflect.New(n.key.typ).Elem(), reflect.New(n.elem.typ).Elem()
	for k := range cnt {
		key.SetZero()
		elem.SetZero()
		if next, err = d.build(n.key, next, key); err != nil {
			return 0, err
		}
		if next, err = d.build(n.elem, next, elem); err != nil {
			return 0, err.in(pair(k))
		}
		if m.SetMapIndex(key, elem); m.Len() == k {
			return 0, twice(k)
		}
	}
	dst.Set(m)
	return next, nil
}

func (d *builder) buildStruct(n *node, i int, dst reflect.Value) (next int, err *ValueError) {
	cnt, next := arrayAt(d.b, i)
	inOrder := next >= 0
	if !inOrder {
		cnt, next = mapAt(d.b, i)
	}
	k := -1
	for range cnt {
		k++
		if !inOrder {
			k, next = n.fieldAt(d.b, next, k)
		}
		f := &n.fields[k]
		if next, err = d.build(f.node, next, dst.Field(f.index)); err != nil {
			return 0, err.in("." + f.name)
		}
	}
	return next, nil
}
