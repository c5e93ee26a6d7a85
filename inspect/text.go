package inspect

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Printable escapes, as Go writes them, all characters of a text that do not print: controls, terminal escapes, line
// ends, marks that turn the direction of writing, bytes that are not UTF-8. The result is one line.
func Printable(s string) string {
	if printable(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}

func printable(s string) bool {
	for i, r := range s {
		if !unicode.IsPrint(r) || r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// ShortName returns what follows the last slash of a Go function's path, and a Python path as it is: "mail.Welcome" of
// "example.com/app/mail.Welcome".
func ShortName(path string) string {
	if strings.Contains(path, ":") {
		return path
	}
	return path[strings.LastIndexByte(path, '/')+1:]
}

// callText writes a call as code, on one line of at most about most bytes.
func callText(path string, args []any, kwargs map[string]any, most int) string {
	w := callWriter{most: most}
	w.text(Printable(ShortName(path)) + "(")
	for i, a := range args {
		if i > 0 {
			w.text(", ")
		}
		w.value(a, 0)
	}
	for i, name := range sortedKeys(kwargs) {
		if i > 0 || len(args) > 0 {
			w.text(", ")
		}
		w.text(Printable(name) + "=")
		w.value(kwargs[name], 0)
	}
	w.full = false
	w.b.WriteString(")")
	return w.b.String()
}

// callWriter writes values as code until it has written enough.
type callWriter struct {
	b    strings.Builder
	most int
	full bool
}

// text writes a text, or an ellipsis in place of the first that does not fit.
func (w *callWriter) text(s string) {
	if w.full {
		return
	}
	if w.b.Len()+len(s) > w.most {
		n := max(w.most-w.b.Len(), 0)
		for n > 0 && !utf8.RuneStart(s[n]) {
			n--
		}
		w.b.WriteString(s[:n] + "…")
		w.full = true
		return
	}
	w.b.WriteString(s)
}

// value writes one decoded value.
func (w *callWriter) value(v any, depth int) {
	if w.full {
		return
	}
	switch v := v.(type) {
	case nil:
		w.text("nil")
	case string:
		w.text(strconv.Quote(v[:min(len(v), w.most)]))
	case []byte:
		w.text("[]byte(" + strconv.Quote(string(v[:min(len(v), w.most)])) + ")")
	case time.Time:
		w.text(v.UTC().Format(time.RFC3339Nano))
	case float64:
		w.text(strconv.FormatFloat(v, 'g', -1, 64))
	case []any:
		w.text("[")
		for i, e := range v {
			if i > 0 {
				w.text(", ")
			}
			w.value(e, depth+1)
		}
		w.text("]")
	case map[string]any:
		w.text("{")
		for i, k := range sortedKeys(v) {
			if i > 0 {
				w.text(", ")
			}
			w.text(Printable(k[:min(len(k), w.most)]) + ": ")
			w.value(v[k], depth+1)
		}
		w.text("}")
	case map[any]any:
		w.anyMap(v, depth)
	default:
		w.text(Printable(fmt.Sprint(v)))
	}
}

// anyMap writes a map with keys of several types, in the order of the keys as text.
func (w *callWriter) anyMap(m map[any]any, depth int) {
	named := make(map[string]any, len(m))
	for k, v := range m {
		name := fmt.Sprint(k)
		if s, ok := k.(string); ok {
			name = strconv.Quote(s)
		}
		named[name+" "+reflect.TypeOf(k).String()] = v
	}
	w.text("{")
	for i, k := range sortedKeys(named) {
		if i > 0 {
			w.text(", ")
		}
		name, _ := cutLast(k, ' ')
		w.text(Printable(name) + ": ")
		w.value(named[k], depth+1)
	}
	w.text("}")
}

// cutLast cuts a text at the last separator.
func cutLast(s string, sep byte) (before, after string) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
