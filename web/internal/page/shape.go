package page

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/godelayed/delayed/inspect"
)

// The bounds of what is written of shapes: types may contain themselves, and arrays be long.
const (
	deepest      = 3
	mostFields   = 12
	mostElements = 16 // of an example
	mostBytes    = 64 // likewise
)

// isText reports whether the values of a shape are texts.
func isText(s *inspect.Shape) bool {
	for s != nil && s.Kind == "optional" {
		s = s.Elem
	}
	return s != nil && s.Kind == "string"
}

// typeName names a shape as Go does.
func typeName(s *inspect.Shape, depth int) string {
	switch {
	case s == nil:
		return "any"
	case s.Name != "":
		return inspect.ShortName(inspect.Printable(s.Name))
	case depth > deepest:
		return "…"
	case s.Kind == "list":
		return "[]" + typeName(s.Elem, depth+1)
	case s.Kind == "map":
		return "map[" + typeName(s.Key, depth+1) + "]" + typeName(s.Elem, depth+1)
	case s.Kind == "optional":
		return "*" + typeName(s.Elem, depth+1)
	}
	return s.Kind
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

// shapeText writes what a shape holds in words: the fields of structs, the elements of lists.
func shapeText(s *inspect.Shape) string { return inspect.Printable(shapeAt(s, 0)) }

func shapeAt(s *inspect.Shape, depth int) string {
	switch {
	case s == nil:
		return "any"
	case s.Kind == "optional":
		return shapeAt(s.Elem, depth) + " or null"
	case depth >= deepest:
		return kindName(s)
	case s.Kind == "list":
		return "list of " + shapeAt(s.Elem, depth+1)
	case s.Kind == "map":
		return "map of " + shapeAt(s.Key, depth+1) + " to " + shapeAt(s.Elem, depth+1)
	case s.Kind != "struct":
		return s.Kind
	}
	var fields []string
	for _, f := range s.Fields[:min(len(s.Fields), mostFields)] {
		fields = append(fields, f.Name+" "+shapeAt(f.Shape, depth+1))
	}
	if len(s.Fields) > mostFields {
		fields = append(fields, "…")
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// exampleOf returns a value of a parameter as people write it in the form for calls.
func exampleOf(p *inspect.Parameter) string {
	switch {
	case p.Type == "time.Duration":
		return `"90s"`
	case isText(p.Shape):
		return "text"
	}
	return exampleAt(p.Shape, 0)
}

// exampleAt returns a value of a shape as JSON.
func exampleAt(s *inspect.Shape, depth int) string {
	if s == nil {
		return "null"
	}
	deep := depth >= deepest
	switch s.Kind {
	case "bool":
		return "true"
	case "bytes":
		n := s.Length
		if n < 0 {
			n = 3
		}
		return quoteJSON(make([]byte, min(n, mostBytes)))
	case "time":
		return `"2026-01-31T15:04:05Z"`
	case "float32", "float64":
		return "1.5"
	case "optional":
		if deep {
			return "null"
		}
		return exampleAt(s.Elem, depth)
	case "list":
		if deep && s.Length < 0 {
			return "[]"
		}
		elem := []string{exampleAt(s.Elem, depth+1)}
		return "[" + strings.Join(slices.Repeat(elem, min(max(s.Length, 1), mostElements)), ", ") + "]"
	case "map":
		key := "key"
		switch {
		case deep:
			return "{}"
		case s.Key != nil && strings.Contains(s.Key.Kind, "int"):
			key = "1"
		}
		return "{" + quoteJSON(key) + ": " + exampleAt(s.Elem, depth+1) + "}"
	case "struct":
		var fields []string // the first ones; those that are missing are zero
		for i := 0; i < min(len(s.Fields), mostFields) && !deep; i++ {
			fields = append(fields, quoteJSON(s.Fields[i].Name)+": "+exampleAt(s.Fields[i].Shape, depth+1))
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	if strings.Contains(s.Kind, "int") {
		return "42"
	}
	return `"text"`
}

// quoteJSON writes a text or bytes as JSON.
func quoteJSON[T string | []byte](v T) string {
	text, _ := json.Marshal(v) //nolint:errchkjson // it cannot fail for these
	return string(text)
}
