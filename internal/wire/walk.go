package wire

import (
	"fmt"
	"strconv"
)

// walker checks one value against a type before a builder makes anything: kinds, ranges, lengths, struct fields, UTF-8,
// depth, and the memory that the value will take. A builder need not check again what a walker has accepted.
type walker struct {
	b    []byte
	mem  int   // bytes that building will allocate, rounded up
	ends []int // ends of the values that the library will decode, in the order in which the values begin
}

// add counts n bytes of memory. It compares the sum with the limit for the whole input, which keeps the sum far from
// overflowing; fits compares it with the limit for the value alone.
func (w *walker) add(n int) *ValueError {
	if n > memLimit(len(w.b))-w.mem {
		return tooLarge(len(w.b))
	}
	w.mem += n
	return nil
}

// fits fails if the walked value, which took n bytes of the input, will take more memory than those n bytes allow.
func (w *walker) fits(n int) *ValueError {
	if w.mem > memLimit(n) {
		return tooLarge(n)
	}
	return nil
}

func tooLarge(n int) *ValueError {
	return &ValueError{Want: fmt.Sprintf("a value that takes at most %d bytes of memory for %d bytes of message",
		memLimit(n), n), Got: "a larger one"}
}

// walk checks the value at b[i:] against n; depth is the number of arrays and maps around it. It returns the position
// after the value.
func (w *walker) walk(n *node, i, depth int) (next int, err *ValueError) {
	b := w.b
	switch n.op {
	case opBool:
		next, err = leafBool(n, b, i)
	case opInt:
		next, err = leafInt(n, b, i)
	case opUint:
		next, err = leafUint(n, b, i)
	case opFloat:
		_, next, err = leafFloat(n, b, i)
	case opString:
		var start int
		if start, next, err = leafString(n, b, i); err == nil {
			err = w.add(memSize(next - start))
		}
	case opBytes:
		if isNil(b, i) {
			return i + 1, nil
		}
		var start int
		if start, next, err = leafBytes(n, b, i); err == nil {
			err = w.add(memSize(next - start))
		}
	case opByteArray:
		_, next, err = leafBytes(n, b, i)
	case opTime:
		next, err = leafTime(n, b, i)
	case opAny:
		return w.walkAny(i, depth)
	case opPtr:
		if isNil(b, i) {
			return i + 1, nil
		}
		if err = w.add(memSize(n.elem.size)); err == nil {
			next, err = w.walk(n.elem, i, depth)
		}
	case opSlice, opArray:
		return w.walkArray(n, i, depth)
	case opMap:
		return w.walkMap(n, i, depth)
	case opStruct:
		return w.walkStruct(n, i, depth)
	}
	return next, err
}

func step(i int) string { return "[" + strconv.Itoa(i) + "]" }

// pair names the kth pair of a map, counted from 0. It does not name the key, which may be secret.
func pair(k int) string { return "[pair " + strconv.Itoa(k) + "]" }

func (w *walker) walkArray(n *node, i, depth int) (next int, err *ValueError) {
	if n.op == opSlice && isNil(w.b, i) {
		return i + 1, nil
	}
	cnt, next := arrayAt(w.b, i)
	if next < 0 || n.op == opArray && cnt != n.len {
		return 0, mismatch(n, w.b, i, "")
	}
	if err = enter(depth); err != nil {
		return 0, err
	}
	if n.op == opSlice {
		if err = w.add(memArray(cnt, n.elem.size)); err != nil {
			return 0, err
		}
	}
	for k := range cnt {
		if n.elem.op == opInt { // saves a third of the time of long arrays
			next, err = leafInt(n.elem, w.b, next)
		} else {
			next, err = w.walk(n.elem, next, depth+1)
		}
		if err != nil {
			return 0, err.in(step(k))
		}
	}
	if n.inLib && cnt >= libSlice {
		err = w.handOver(next)
	}
	return next, err
}

// handOver notes the end of a value that the library will decode. No such value contains another.
func (w *walker) handOver(end int) *ValueError {
	w.ends = append(w.ends, end)
	return w.add(memSlice + memLibrary)
}

func (w *walker) walkMap(n *node, i, depth int) (next int, err *ValueError) {
	if isNil(w.b, i) {
		return i + 1, nil
	}
	cnt, next := mapAt(w.b, i)
	if next < 0 {
		return 0, mismatch(n, w.b, i, "")
	}
	if err = enter(depth); err != nil {
		return 0, err
	}
	// The builder makes one key and one element outside the map and copies each pair from them.
	mem := memMap(cnt, n.key.size, n.elem.size) + memSize(n.key.size) + memSize(n.elem.size)
	if n.key.op == opAny {
		mem += memArray(cnt, memString)
	}
	if err = w.add(mem); err != nil {
		return 0, err
	}
	for k := range cnt {
		if n.key.op == opAny {
			next, err = w.walkAnyKey(next)
		} else {
			next, err = w.walk(n.key, next, depth+1)
		}
		if err != nil {
			return 0, err.in(pair(k) + ".key")
		}
		if next, err = w.walk(n.elem, next, depth+1); err != nil {
			return 0, err.in(pair(k))
		}
	}
	if n.inLib && cnt >= libMap {
		err = w.handOver(next)
	}
	return next, err
}

func (w *walker) walkStruct(n *node, i, depth int) (next int, err *ValueError) {
	cnt, next := arrayAt(w.b, i)
	if next < 0 {
		return w.walkStructMap(n, i, depth)
	}
	if cnt != len(n.fields) {
		return 0, mismatch(n, w.b, i, "")
	}
	if err = enter(depth); err != nil {
		return 0, err
	}
	for k := range n.fields {
		f := &n.fields[k]
		if next, err = w.walk(f.node, next, depth+1); err != nil {
			return 0, err.in("." + f.name)
		}
	}
	return next, nil
}

// walkStructMap checks a struct that the message holds as a map: each key must be a field of the type and appear only
// once. Fields that the map lacks stay zero.
func (w *walker) walkStructMap(n *node, i, depth int) (next int, err *ValueError) {
	cnt, next := mapAt(w.b, i)
	if next < 0 {
		return 0, mismatch(n, w.b, i, "")
	}
	if err = enter(depth); err != nil {
		return 0, err
	}
	var small [4]uint64
	seen := small[:]
	if len(n.fields) > 64*len(small) {
		seen = make([]uint64, len(n.fields)/64+1)
	}
	k := -1
	for range cnt {
		var end int
		if k, end = n.fieldAt(w.b, next, k+1); end < 0 {
			return 0, &ValueError{Want: "a string as key for " + n.typ.String(), Got: found(w.b, next)}
		}
		if k < 0 {
			start, _ := strAt(w.b, next)
			return 0, &ValueError{Want: "a key of " + n.typ.String(), Got: "the key " + quoted(w.b[start:end])}
		}
		if seen[k/64]&(1<<(k%64)) != 0 {
			return 0, &ValueError{Want: "each key once", Got: fmt.Sprintf("the key %q again", n.fields[k].key)}
		}
		seen[k/64] |= 1 << (k % 64)
		if next, err = w.walk(n.fields[k].node, end, depth+1); err != nil {
			return 0, err.in("." + n.fields[k].name)
		}
	}
	return next, nil
}

// quoted returns a shortened form of a key that the struct does not have.
func quoted(key []byte) string {
	const most = 40
	if len(key) > most {
		return fmt.Sprintf("%q and %s more", key[:most], count(len(key)-most, "byte"))
	}
	return fmt.Sprintf("%q", key)
}
