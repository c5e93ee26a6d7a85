package page

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/inspect"
)

// mostDifferences bounds the differences that are listed of two signatures.
const mostDifferences = 20

// differences lists what has changed from one version of a function to another, a line for each change.
func differences(old, current *inspect.Function) []string {
	d := diff{seen: map[[2]*inspect.Shape]bool{}}
	for i := range max(len(old.Parameters), len(current.Parameters)) {
		switch {
		case i >= len(old.Parameters):
			p := &current.Parameters[i]
			d.addf("%s is new: %s", parameterName(i, p), p.Type)
		case i >= len(current.Parameters):
			p := &old.Parameters[i]
			d.addf("%s is gone: %s", parameterName(i, p), p.Type)
		default:
			d.parameter(i, &old.Parameters[i], &current.Parameters[i])
		}
	}
	switch {
	case current.Variadic && !old.Variadic:
		d.addf("the last parameter is variadic now")
	case old.Variadic && !current.Variadic:
		d.addf("the last parameter is no longer variadic")
	}
	if old.Optional != current.Optional {
		d.addf("tasks may lack the last %d parameters: %d before", current.Optional, old.Optional)
	}
	if old.Result != current.Result {
		d.addf("result: %s → %s", orNone(old.Result), orNone(current.Result))
	}
	aliases := func(f *inspect.Function) string { return strings.Join(slices.Sorted(slices.Values(f.Aliases)), ", ") }
	if a, b := aliases(old), aliases(current); a != b {
		d.addf("aliases: %s → %s", orNone(a), orNone(b))
	}
	if len(d.lines) == 0 {
		d.addf("only what the workers say of their types differs")
	}
	return d.lines
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

// parameterName names a parameter in a sentence.
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

func (d *diff) addf(format string, args ...any) {
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
		d.addf("%s was called %s", name, orNone(old.Name))
	}
	if old.Type != current.Type {
		d.addf("%s: %s → %s", name, old.Type, current.Type)
	}
	if old.Shape != nil && current.Shape != nil {
		d.shape(name, old.Shape, current.Shape, old.Type != current.Type)
	}
}

// shape compares shapes. listed says that a line has already listed that they differ.
func (d *diff) shape(name string, old, current *inspect.Shape, listed bool) {
	if d.seen[[2]*inspect.Shape{old, current}] {
		return
	}
	d.seen[[2]*inspect.Shape{old, current}] = true
	if old.Kind != current.Kind || old.Length != current.Length {
		if !listed {
			d.addf("%s: %s → %s", name, kindName(old), kindName(current))
		}
		return
	}
	for _, f := range old.Fields {
		at := slices.IndexFunc(current.Fields, func(o inspect.Field) bool { return o.Name == f.Name })
		if at < 0 {
			d.addf("%s: field %s is gone", name, f.Name)
		} else if f.Shape != nil && current.Fields[at].Shape != nil {
			d.shape(name+"."+f.Name, f.Shape, current.Fields[at].Shape, false)
		}
	}
	for _, f := range current.Fields {
		if !slices.ContainsFunc(old.Fields, func(o inspect.Field) bool { return o.Name == f.Name }) {
			d.addf("%s: field %s is new: %s", name, f.Name, kindName(f.Shape))
		}
	}
	if old.Key != nil && current.Key != nil {
		d.shape("keys of "+name, old.Key, current.Key, false)
	}
	if old.Elem != nil && current.Elem != nil {
		if old.Kind != "optional" {
			name += "[]"
		}
		d.shape(name, old.Elem, current.Elem, listed)
	}
}
