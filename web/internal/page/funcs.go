package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/format"
)

// funcs are the functions of templates. Texts from outside go through text, short or code, which escape what does not
// print; the templates escape HTML.
var funcs = template.FuncMap{
	"text":    inspect.Printable,
	"lines":   lines,
	"short":   func(path string) string { return inspect.ShortName(inspect.Printable(path)) },
	"num":     format.Number[int],
	"num64":   format.Number[int64],
	"unum":    format.Number[uint64],
	"dur":     format.Duration,
	"bytes":   format.Size,
	"bytes64": func(n int) string { return format.Size(int64(n)) },
	"pct":     format.Percent,
	"link":    link,
	"shape":   shapeText,
	"iso":     func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
	"utc":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
	"dict":    dict,
	"inc":     func(n int) int { return n + 1 },
}

// link returns the address of a page, with names and values of its query. Values that are empty are left out.
func link(path string, pairs ...any) template.URL {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if v := fmt.Sprint(pairs[i+1]); v != "" {
			query.Set(fmt.Sprint(pairs[i]), v)
		}
	}
	if len(query) == 0 {
		return template.URL(path) //nolint:gosec // templates name it
	}
	return template.URL(path + "?" + query.Encode()) //nolint:gosec // it begins with a name that templates give
}

// lines escapes what does not print in each line of a text.
func lines(s string) string {
	parts := strings.Split(s, "\n")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(inspect.Printable(strings.ReplaceAll(p, "\t", "    ")), "\u2028", " ")
	}
	return strings.Join(parts, "\n")
}

// dict makes a map of names and values, for templates that take several.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}
