package wire

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// A path such as .Items[].Sku names a field that a message has and the Go type lacks. A step of the path is a dot and a
// key, quoted unless it is a plain word, or [], which stands for any element of an array or map.

// maxFieldPath is the longest such path, in bytes. Unknown shortens a longer one and adds an ellipsis, so its last
// field is no longer known.
const maxFieldPath = 128

// Unknown returns the paths of fields that the value at the front of b has and the type lacks, each path once and at
// most that many. When another part of the value does not fit the type, Unknown skips it and goes on as far as it can.
// It returns nothing for bytes that Decode accepts; no input can do harm.
func (c *Codec) Unknown(b []byte, most int) []string {
	u := unknowns{b: b, most: most}
	u.value(c.node, 0, 0)
	return u.found
}

// Lacks reports whether path leads to a field that the type lacks. It returns false if the path does not fit the type
// at an earlier step.
func (c *Codec) Lacks(path string) bool {
	n := c.node
	for path != "" {
		for n.op == opPtr {
			n = n.elem
		}
		if rest, ok := strings.CutPrefix(path, "[]"); ok {
			if n.op != opSlice && n.op != opArray && n.op != opMap {
				return false
			}
			n, path = n.elem, rest
			continue
		}
		key, rest, ok := CutField(path)
		if !ok || n.op != opStruct {
			return false
		}
		k, ok := n.byKey[key]
		if !ok {
			return true
		}
		n, path = n.fields[k].node, rest
	}
	return false
}

// fieldStep returns the step of a path to the field with that key.
func fieldStep(key string) string {
	if key != "" && strings.IndexFunc(key, func(r rune) bool { return !wordRune(r) }) < 0 {
		return "." + key
	}
	return "." + strconv.QuoteToASCII(key)
}

func wordRune(r rune) bool {
	return r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// CutField cuts the step of a field from the front of path, and returns its key and the rest.
func CutField(path string) (key, rest string, ok bool) {
	if path, ok = strings.CutPrefix(path, "."); !ok {
		return "", "", false
	}
	if quoted, err := strconv.QuotedPrefix(path); err == nil {
		key, err = strconv.Unquote(quoted)
		return key, path[len(quoted):], err == nil
	}
	end := strings.IndexFunc(path, func(r rune) bool { return !wordRune(r) })
	if end < 0 {
		end = len(path)
	}
	// Only the next step or the end may follow: the last step of a shortened path names no field.
	rest = path[end:]
	return path[:end], rest, end > 0 && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// unknowns looks for fields that a type lacks. It never fails: it stops where the bytes are not a value.
type unknowns struct {
	b     []byte
	most  int
	steps []string // path to the current value
	found []string
}

// skip returns the position after the value at b[i:], or a negative number if there is no value.
func (u *unknowns) skip(i int) int {
	next, _, err := skim(u.b, i, math.MaxInt32, depthCap, strict)
	if err != nil {
		return -1
	}
	return next
}

// value searches the value at b[i:] and returns the position after it, or a negative number to end the search.
func (u *unknowns) value(n *node, i, depth int) (next int) {
	for n.op == opPtr {
		n = n.elem
	}
	if depth == maxDepth {
		return u.skip(i)
	}
	switch n.op {
	case opSlice, opArray:
		cnt, next := arrayAt(u.b, i)
		if next < 0 {
			return u.skip(i)
		}
		return u.elems(n.elem, cnt, next, depth, false)
	case opMap:
		cnt, next := mapAt(u.b, i)
		if next < 0 {
			return u.skip(i)
		}
		return u.elems(n.elem, cnt, next, depth, true)
	case opStruct:
		return u.fields(n, i, depth)
	default:
		return u.skip(i)
	}
}

func (u *unknowns) elems(n *node, cnt, next, depth int, keys bool) int {
	u.steps = append(u.steps, "[]")
	for range cnt {
		if keys && next >= 0 {
			next = u.skip(next)
		}
		if next < 0 {
			return -1
		}
		next = u.value(n, next, depth+1)
	}
	u.steps = u.steps[:len(u.steps)-1]
	return next
}

func (u *unknowns) fields(n *node, i, depth int) (next int) {
	cnt, next := mapAt(u.b, i)
	if next < 0 {
		// An array has a value for every field of the type, or the value does not fit the type.
		cnt, next = arrayAt(u.b, i)
		if next < 0 || cnt != len(n.fields) {
			return u.skip(i)
		}
		for k := 0; k < cnt && next >= 0; k++ {
			next = u.in(n.fields[k].key, n.fields[k].node, next, depth)
		}
		return next
	}
	k := -1
	for range cnt {
		var value int
		k, value = n.fieldAt(u.b, next, k+1)
		switch {
		case value < 0: // the key is not a string, so this is not a struct
			if next = u.skip(next); next >= 0 {
				next = u.skip(next)
			}
		case k >= 0:
			next = u.in(n.fields[k].key, n.fields[k].node, value, depth)
		default:
			start, _ := strAt(u.b, next)
			if !u.note(string(u.b[start:value])) {
				return -1
			}
			next = u.skip(value)
		}
		if next < 0 {
			return -1
		}
	}
	return next
}

func (u *unknowns) in(key string, n *node, i, depth int) (next int) {
	u.steps = append(u.steps, fieldStep(key))
	next = u.value(n, i, depth+1)
	u.steps = u.steps[:len(u.steps)-1]
	return next
}

// note adds the path of an unknown field to found, and reports whether found may still grow.
func (u *unknowns) note(key string) bool {
	if len(key) > maxFieldPath {
		key = key[:maxFieldPath]
	}
	path := strings.Join(u.steps, "") + fieldStep(key)
	if len(path) > maxFieldPath {
		path = strings.ToValidUTF8(path[:maxFieldPath], "") + "…"
	}
	if slices.Contains(u.found, path) {
		return true
	}
	u.found = append(u.found, path)
	return len(u.found) < u.most
}
