package page

import (
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/format"
)

// node is a value of a task, unfolded.
type node struct {
	Key  string
	Type string
	Text string // as code, clipped; of a value with Kids, how many there are
	Full string // what Text has clipped
	Kids []node
	Rest int  // further kids, that are not shown
	Open bool // unfolded at first
}

// The bounds of a tree.
const (
	maxNodes    = 2000
	maxKids     = 200 // of one value
	openKids    = 8   // values with more are folded at first
	maxText     = 200 // bytes of a text before it is clipped
	maxFull     = 64 << 10
	maxTypeDeep = 3
)

// treeWriter unfolds values until there are enough.
type treeWriter struct{ left int }

// tree unfolds a value of a type; a shape of nil is any.
func (w *treeWriter) tree(key string, v any, shape *inspect.Shape, typ string, depth int) node {
	w.left--
	n := node{Key: key, Type: typ, Open: depth < 2}
	for shape != nil && shape.Kind == "optional" {
		shape = shape.Elem
	}
	if n.Type == "" {
		n.Type = typeOf(v, shape)
	}
	switch v := v.(type) {
	case []any:
		fields := shape != nil && shape.Kind == "struct" // by position, as on legacy queues
		for i, e := range v {
			if w.full(&n, len(v)) {
				break
			}
			key, kid := strconv.Itoa(i), elemOf(shape)
			if fields {
				if kid = nil; i < len(shape.Fields) {
					key, kid = shape.Fields[i].Name, shape.Fields[i].Shape
				}
			}
			n.Kids = append(n.Kids, w.tree(key, e, kid, "", depth+1))
		}
		n.Text = counted(len(v), "element")
		if fields {
			n.Text = counted(len(v), "field")
		}
	case map[string]any:
		noun := "entry"
		if shape != nil && shape.Kind == "struct" {
			noun = "field"
		}
		for _, k := range keysOf(v, shape) {
			if w.full(&n, len(v)) {
				break
			}
			n.Kids = append(n.Kids, w.tree(k, v[k], valueOf(shape, k), "", depth+1))
		}
		n.Text = counted(len(v), noun)
	case map[any]any:
		named := make(map[string]any, len(v))
		for k, e := range v {
			named[fmt.Sprint(k)] = e
		}
		for _, k := range slices.Sorted(maps.Keys(named)) {
			if w.full(&n, len(named)) {
				break
			}
			n.Kids = append(n.Kids, w.tree(k, named[k], elemOf(shape), "", depth+1))
		}
		n.Text = counted(len(named), "entry")
	default:
		n.plain(v, typ)
	}
	n.Open = n.Open && len(n.Kids)+n.Rest <= openKids
	return n
}

// full reports whether a node takes no more of its kids, and notes how many are missing.
func (w *treeWriter) full(n *node, all int) bool {
	if w.left > 0 && len(n.Kids) < maxKids {
		return false
	}
	n.Rest = all - len(n.Kids)
	return true
}

// plain writes a value without kids.
func (n *node) plain(v any, typ string) {
	switch v := v.(type) {
	case nil:
		n.Text = "nil"
	case string:
		n.Text = strconv.Quote(v)
		if len(v) > maxText || strings.Contains(v, "\n") {
			n.Text, n.Full = strconv.Quote(clip(v, maxText))+"…", clip(v, maxFull)
		}
	case []byte:
		n.Text = fmt.Sprintf("%s, %s", format.Size(int64(len(v))), strconv.Quote(string(v[:min(len(v), maxText/4)])))
		if len(v) > maxText/4 {
			n.Text, n.Full = n.Text+"…", hex.Dump(v[:min(len(v), maxFull/4)])
		}
	case time.Time:
		n.Text = v.UTC().Format(time.RFC3339Nano)
	case int64:
		n.Text = strconv.FormatInt(v, 10)
		if typ == "time.Duration" || typ == "Duration" {
			n.Text += " (" + format.Duration(time.Duration(v)) + ")"
		}
	case float64:
		n.Text = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		n.Text = fmt.Sprint(v)
	}
}

// clip cuts a text after a number of bytes, but not within a character.
func clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}

func counted(n int, noun string) string {
	switch {
	case n == 1:
		return "1 " + noun
	case noun == "entry":
		return format.Number(n) + " entries"
	}
	return format.Number(n) + " " + noun + "s"
}

// keysOf returns the keys of a map, those of a struct in the order of its fields.
func keysOf(m map[string]any, shape *inspect.Shape) (keys []string) {
	if shape != nil && shape.Kind == "struct" {
		for _, f := range shape.Fields {
			if _, ok := m[f.Name]; ok {
				keys = append(keys, f.Name)
			}
		}
	}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}

// elemOf returns the shape of the values in a list or map; nil is any.
func elemOf(shape *inspect.Shape) *inspect.Shape {
	if shape == nil {
		return nil
	}
	return shape.Elem
}

// valueOf returns the shape of what a map or struct has at a key.
func valueOf(shape *inspect.Shape, key string) *inspect.Shape {
	if shape != nil && shape.Kind == "struct" {
		for _, f := range shape.Fields {
			if f.Name == key {
				return f.Shape
			}
		}
		return nil
	}
	return elemOf(shape)
}

// typeOf names the type of a value, by its shape if that is known.
func typeOf(v any, shape *inspect.Shape) string {
	if shape != nil && shape.Kind != "any" {
		return typeName(shape, 0)
	}
	switch v := v.(type) {
	case nil:
		return ""
	case []any:
		return "list"
	case map[string]any, map[any]any:
		return "map"
	case []byte:
		return "bytes"
	case time.Time:
		return "time"
	case int64, uint64:
		return "int"
	case float64:
		return "float"
	default:
		return fmt.Sprintf("%T", v)
	}
}

// typeName writes a shape in a word or two.
func typeName(s *inspect.Shape, depth int) string {
	switch {
	case s == nil:
		return "any"
	case s.Name != "":
		return inspect.ShortName(inspect.Printable(s.Name))
	case depth > maxTypeDeep:
		return "…"
	}
	switch s.Kind {
	case "list":
		return "[]" + typeName(s.Elem, depth+1)
	case "map":
		return "map[" + typeName(s.Key, depth+1) + "]" + typeName(s.Elem, depth+1)
	case "optional":
		return "*" + typeName(s.Elem, depth+1)
	}
	return s.Kind
}
