package page

import (
	"encoding/json"
	"strings"

	"github.com/godelayed/delayed/inspect"
)

// exampleOf returns a value of a parameter as people write it in the form for calls.
func exampleOf(p *inspect.Parameter) string {
	if p.Type == "time.Duration" {
		return `"90s"`
	}
	if isText(p.Shape) {
		return "text"
	}
	var b strings.Builder
	writeExample(&b, p.Shape, 0)
	return b.String()
}

// isText reports whether the values of a shape are texts.
func isText(s *inspect.Shape) bool {
	for s != nil && s.Kind == "optional" {
		s = s.Elem
	}
	return s != nil && s.Kind == "string"
}

// The bounds of examples: types may contain themselves, and arrays be long.
const (
	deepestExample = 3
	mostElements   = 16
	mostBytes      = 64
)

// writeExample writes a value of a shape as JSON.
func writeExample(b *strings.Builder, s *inspect.Shape, depth int) {
	if s == nil {
		b.WriteString("null")
		return
	}
	deep := depth >= deepestExample
	switch s.Kind {
	case "bool":
		b.WriteString("true")
	case "bytes":
		n := s.Length
		if n < 0 {
			n = 3
		}
		text, _ := json.Marshal(make([]byte, min(n, mostBytes))) //nolint:errchkjson // bytes
		b.Write(text)
	case "time":
		b.WriteString(`"2026-01-31T15:04:05Z"`)
	case "float32", "float64":
		b.WriteString("1.5")
	case "optional":
		if deep {
			b.WriteString("null")
		} else {
			writeExample(b, s.Elem, depth)
		}
	case "list":
		b.WriteString("[")
		for i := range min(max(s.Length, 1), mostElements) {
			if deep && s.Length < 0 {
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			writeExample(b, s.Elem, depth+1)
		}
		b.WriteString("]")
	case "map":
		if deep {
			b.WriteString("{}")
			return
		}
		key := `{"key": `
		if s.Key != nil && strings.Contains(s.Key.Kind, "int") {
			key = `{"1": `
		}
		b.WriteString(key)
		writeExample(b, s.Elem, depth+1)
		b.WriteString("}")
	case "struct":
		writeStruct(b, s, depth)
	default:
		if strings.Contains(s.Kind, "int") {
			b.WriteString("42")
		} else {
			b.WriteString(`"text"`)
		}
	}
}

// writeStruct writes a struct with its first fields; those that are missing are zero.
func writeStruct(b *strings.Builder, s *inspect.Shape, depth int) {
	b.WriteString("{")
	for i := range min(len(s.Fields), mostFields) {
		if depth >= deepestExample {
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		name, _ := json.Marshal(s.Fields[i].Name) //nolint:errchkjson // a text
		b.Write(name)
		b.WriteString(": ")
		writeExample(b, s.Fields[i].Shape, depth+1)
	}
	b.WriteString("}")
}
