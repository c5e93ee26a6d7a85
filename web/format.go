package web

import (
	"fmt"
	"html/template"
	"math"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// funcs are the functions of templates. Texts from outside go through text, short or code, which escape what does not
// print; the templates escape HTML.
var funcs = template.FuncMap{
	"text":    inspect.Printable,
	"lines":   lines,
	"short":   func(path string) string { return inspect.ShortName(inspect.Printable(path)) },
	"num":     number[int],
	"num64":   number[int64],
	"unum":    number[uint64],
	"dur":     duration,
	"bytes":   size,
	"bytes64": func(n int) string { return size(int64(n)) },
	"pct":     percent,
	"link":    link,
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

// number writes a number with thin spaces between thousands.
func number[N int | int64 | uint64](n N) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// duration writes a duration with two or three significant digits.
func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "−" + duration(-d)
	case d == 0:
		return "0"
	case d < time.Millisecond:
		return significant(float64(d)/1e3) + " µs"
	case d < time.Second:
		return significant(float64(d)/1e6) + " ms"
	case d < time.Minute:
		return significant(d.Seconds()) + " s"
	case d < time.Hour:
		return two(d, time.Minute, "min", time.Second, "s")
	case d < 48*time.Hour:
		return two(d, time.Hour, "h", time.Minute, "min")
	case d > 100*365*day:
		return "for ever"
	}
	return two(d, day, "d", time.Hour, "h")
}

func two(d, unit time.Duration, name string, small time.Duration, smallName string) string {
	n, rest := d/unit, d%unit/small
	if rest == 0 || n >= 20 {
		return fmt.Sprintf("%d %s", n, name)
	}
	return fmt.Sprintf("%d %s %d %s", n, name, rest, smallName)
}

// significant writes a number of up to 1,000 with two digits or all before the point.
func significant(f float64) string {
	if f < 10 {
		return strings.TrimSuffix(strconv.FormatFloat(math.Round(f*10)/10, 'f', 1, 64), ".0")
	}
	return strconv.FormatFloat(math.Round(f), 'f', 0, 64)
}

func size(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f := float64(n)
	for _, unit := range []string{"KiB", "MiB", "GiB"} {
		if f /= 1024; f < 1024 {
			return significant(f) + " " + unit
		}
	}
	return significant(f/1024) + " TiB"
}

// percent writes a share of a whole; nothing of nothing is "–".
func percent(part, whole uint64) string {
	if whole == 0 {
		return "–"
	}
	return significant(100*float64(part)/float64(whole)) + " %"
}

// dict makes a map of names and values, for templates that take several.
func dict(pairs ...any) map[string]any {
	m := map[string]any{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}
