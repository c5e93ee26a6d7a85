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
	names := sortedKeys(kwargs)
	w.list(len(args)+len(names), func(i int) {
		if i < len(args) {
			w.value(args[i])
			return
		}
		name := names[i-len(args)]
		w.text(Printable(name) + "=")
		w.value(kwargs[name])
	})
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

// list writes n parts with commas between.
func (w *callWriter) list(n int, part func(i int)) {
	for i := 0; i < n && !w.full; i++ {
		if i > 0 {
			w.text(", ")
		}
		part(i)
	}
}

// value writes one decoded value.
func (w *callWriter) value(v any) {
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
		w.list(len(v), func(i int) { w.value(v[i]) })
		w.text("]")
	case map[string]any:
		w.object(v, func(key string) string { return key })
	case map[any]any: // in the order of the keys as text, apart by their types
		named := make(map[string]any, len(v))
		for k, value := range v {
			name := fmt.Sprint(k)
			if s, ok := k.(string); ok {
				name = strconv.Quote(s)
			}
			named[name+" "+reflect.TypeOf(k).String()] = value
		}
		w.object(named, func(key string) string {
			name, _ := cutLast(key, ' ')
			return name
		})
	default:
		w.text(Printable(fmt.Sprint(v)))
	}
}

// object writes a map, sorted, with names for its keys.
func (w *callWriter) object(m map[string]any, name func(key string) string) {
	keys := sortedKeys(m)
	w.text("{")
	w.list(len(keys), func(i int) {
		key := name(keys[i])
		w.text(Printable(key[:min(len(key), w.most)]) + ": ")
		w.value(m[keys[i]])
	})
	w.text("}")
}

// cutLast cuts a text at the last separator; after is "" if there is none.
func cutLast(s string, sep byte) (before, after string) {
	i := strings.LastIndexByte(s, sep)
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i+1:]
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
