package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/inspect"
)

// mostDifferences bounds the differences that are told of two signatures.
const mostDifferences = 20

// differences tells what has changed from one version of a function to another, a line for each change.
func differences(old, current *inspect.Function) []string {
	d := diff{seen: map[[2]*inspect.Shape]bool{}}
	for i := range max(len(old.Parameters), len(current.Parameters)) {
		switch {
		case i >= len(old.Parameters):
			p := &current.Parameters[i]
			d.say("%s is new: %s", parameterName(i, p), p.Type)
		case i >= len(current.Parameters):
			p := &old.Parameters[i]
			d.say("%s is gone: %s", parameterName(i, p), p.Type)
		default:
			d.parameter(i, &old.Parameters[i], &current.Parameters[i])
		}
	}
	switch {
	case current.Variadic && !old.Variadic:
		d.say("the last parameter is variadic now")
	case old.Variadic && !current.Variadic:
		d.say("the last parameter is no longer variadic")
	}
	if old.Optional != current.Optional {
		d.say("tasks may lack the last %d parameters: %d before", current.Optional, old.Optional)
	}
	if old.Result != current.Result {
		d.say("result: %s → %s", orNone(old.Result), orNone(current.Result))
	}
	if a, b := aliases(old), aliases(current); a != b {
		d.say("aliases: %s → %s", orNone(a), orNone(b))
	}
	if len(d.lines) == 0 {
		d.say("only what the workers say of their types differs")
	}
	return d.lines
}

// aliases are the other paths of a function, sorted.
func aliases(f *inspect.Function) string {
	return strings.Join(slices.Sorted(slices.Values(f.Aliases)), ", ")
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// mayLack reports whether tasks may lack a parameter. Python's functions do not count a variadic one among the optional
// ones.
func mayLack(f *inspect.Function, i int) bool {
	first := len(f.Parameters) - f.Optional
	if f.Variadic && strings.Contains(f.Path, ":") {
		first--
	}
	return i >= first || f.Variadic && i == len(f.Parameters)-1
}

// parameterName says which parameter it is.
func parameterName(i int, p *inspect.Parameter) string {
	if p.Name != "" {
		return "parameter " + p.Name
	}
	return "parameter " + strconv.Itoa(i+1)
}

// diff collects differences.
type diff struct {
	lines []string
	seen  map[[2]*inspect.Shape]bool // types that contain themselves are circles
}

func (d *diff) say(format string, args ...any) {
	switch len(d.lines) {
	case mostDifferences:
	case mostDifferences - 1:
		d.lines = append(d.lines, "…")
	default:
		d.lines = append(d.lines, inspect.Printable(fmt.Sprintf(format, args...)))
	}
}

func (d *diff) parameter(i int, old, current *inspect.Parameter) {
	name := parameterName(i, current)
	if old.Name != current.Name {
		d.say("%s was called %s", name, orNone(old.Name))
	}
	if old.Type != current.Type {
		d.say("%s: %s → %s", name, old.Type, current.Type)
	}
	if old.Shape != nil && current.Shape != nil {
		d.shape(name, old.Shape, current.Shape, old.Type != current.Type)
	}
}

// shape compares shapes. told says that a line has told already that they differ.
func (d *diff) shape(name string, old, current *inspect.Shape, told bool) {
	if d.seen[[2]*inspect.Shape{old, current}] {
		return
	}
	d.seen[[2]*inspect.Shape{old, current}] = true
	if old.Kind != current.Kind || old.Length != current.Length {
		if !told {
			d.say("%s: %s → %s", name, kindName(old), kindName(current))
		}
		return
	}
	for _, f := range old.Fields {
		at := slices.IndexFunc(current.Fields, func(o inspect.Field) bool { return o.Name == f.Name })
		if at < 0 {
			d.say("%s: field %s is gone", name, f.Name)
		} else if f.Shape != nil && current.Fields[at].Shape != nil {
			d.shape(name+"."+f.Name, f.Shape, current.Fields[at].Shape, false)
		}
	}
	for _, f := range current.Fields {
		if !slices.ContainsFunc(old.Fields, func(o inspect.Field) bool { return o.Name == f.Name }) {
			d.say("%s: field %s is new: %s", name, f.Name, kindName(f.Shape))
		}
	}
	if old.Key != nil && current.Key != nil {
		d.shape("keys of "+name, old.Key, current.Key, false)
	}
	if old.Elem != nil && current.Elem != nil {
		if old.Kind != "optional" {
			name += "[]"
		}
		d.shape(name, old.Elem, current.Elem, told)
	}
}

// kindName names a shape in a word or two.
func kindName(s *inspect.Shape) string {
	switch {
	case s == nil:
		return "any"
	case s.Kind == "struct" && s.Name != "":
		return inspect.ShortName(s.Name)
	case s.Kind == "optional":
		return "optional " + kindName(s.Elem)
	case s.Kind == "list" && s.Length >= 0:
		return fmt.Sprintf("list of %d", s.Length)
	}
	return s.Kind
}

// shapeText writes what a shape holds: the fields of structs, the elements of lists.
func shapeText(s *inspect.Shape) string {
	var b strings.Builder
	writeShape(&b, s, 0)
	return inspect.Printable(b.String())
}

// The bounds of shapeText.
const (
	deepestShape = 3
	mostFields   = 12
)

func writeShape(b *strings.Builder, s *inspect.Shape, depth int) {
	switch {
	case s == nil:
		b.WriteString("any")
	case s.Kind == "optional":
		writeShape(b, s.Elem, depth)
		b.WriteString(" or null")
	case depth >= deepestShape:
		b.WriteString(kindName(s))
	case s.Kind == "list":
		b.WriteString("list of ")
		writeShape(b, s.Elem, depth+1)
	case s.Kind == "map":
		b.WriteString("map of ")
		writeShape(b, s.Key, depth+1)
		b.WriteString(" to ")
		writeShape(b, s.Elem, depth+1)
	case s.Kind == "struct":
		b.WriteString("{")
		for i, f := range s.Fields[:min(len(s.Fields), mostFields)] {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(f.Name + " ")
			writeShape(b, f.Shape, depth+1)
		}
		if len(s.Fields) > mostFields {
			b.WriteString(", …")
		}
		b.WriteString("}")
	default:
		b.WriteString(s.Kind)
	}
}
