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
	maxNodes = 2000
	maxKids  = 200 // of one value
	openKids = 8   // values with more are folded at first
	maxText  = 200 // bytes of a text before it is clipped
	maxFull  = 64 << 10
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
	kids, noun := kidsOf(v, shape)
	if noun == "" {
		n.plain(v, typ)
		return n
	}
	for i, k := range kids {
		if w.left <= 0 || i == maxKids {
			n.Rest = len(kids) - i
			break
		}
		n.Kids = append(n.Kids, w.tree(k.key, k.value, k.shape, "", depth+1))
	}
	n.Text = counted(len(kids), noun)
	n.Open = n.Open && len(kids) <= openKids
	return n
}

// kid is a value within another one.
type kid struct {
	key   string
	value any
	shape *inspect.Shape // nil: any
}

// kidsOf returns the values within a value of a shape, and what they are called; "" for a value that has none.
func kidsOf(v any, shape *inspect.Shape) (kids []kid, noun string) {
	var elem *inspect.Shape
	var fields []inspect.Field
	noun = "entry"
	if shape != nil {
		elem, fields = shape.Elem, shape.Fields
		if shape.Kind == "struct" {
			elem, noun = nil, "field"
		}
	}
	var named map[string]any
	switch v := v.(type) {
	case []any: // of a struct by position, as on legacy queues
		for i, e := range v {
			k := kid{strconv.Itoa(i), e, elem}
			if i < len(fields) {
				k.key, k.shape = fields[i].Name, fields[i].Shape
			}
			kids = append(kids, k)
		}
		if noun == "entry" {
			noun = "element"
		}
		return kids, noun
	case map[string]any:
		named = v
	case map[any]any:
		named = make(map[string]any, len(v))
		for k, e := range v {
			named[fmt.Sprint(k)] = e
		}
	default:
		return nil, ""
	}
	for _, f := range fields {
		if e, ok := named[f.Name]; ok {
			kids = append(kids, kid{f.Name, e, f.Shape})
		}
	}
	for _, k := range slices.Sorted(maps.Keys(named)) {
		if !slices.ContainsFunc(fields, func(f inspect.Field) bool { return f.Name == k }) {
			kids = append(kids, kid{k, named[k], elem})
		}
	}
	return kids, noun
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
