package delayedvet

import (
	"go/ast"
	"go/constant"
	"strings"
	"time"
)

// checkUnit reports a duration that arrives as a number, and a number without a unit that arrives as a duration.
func (c *checker) checkUnit(call *ast.CallExpr, subject string, p parameter, a argument) {
	if a.typ == nil {
		return
	}
	const duration = "time.Duration"
	switch {
	case a.as.Full == duration && p.Full != duration && (p.isInteger() || p.Kind == kindFloat):
		found := duration
		if n, known := integer(a.value); known {
			found += " (" + time.Duration(n).String() + ")"
		}
		c.reportf(call, a.expr, "%s: expected %s, found %s, which arrives without its unit, as a number of "+
			"nanoseconds; let the function take a time.Duration, or convert it to the unit that it counts", subject,
			p.Type, found)
	case p.Full == duration && a.as.Full != duration && isShort(a.value):
		c.reportf(call, a.expr, "%s: expected time.Duration, found %s, which counts nanoseconds; put a unit such as "+
			"time.Second behind the number", subject, a.found())
	}
}

// integer returns the value of a constant; known is false if it is no integer or nil.
func integer(v constant.Value) (n int64, known bool) {
	if v == nil {
		return 0, false
	}
	if v = constant.ToInt(v); v.Kind() != constant.Int {
		return 0, false
	}
	return constant.Int64Val(v)
}

// isShort reports whether a constant duration is more than nothing and less than a millisecond, and so was probably
// meant in another unit.
func isShort(v constant.Value) bool {
	n, known := integer(v)
	return known && n > 0 && n < int64(time.Millisecond)
}

// durations are the functions that take durations: the index of the first one, and what is refused beside durations
// that are too short.
var durations = map[string]struct {
	first int
	least int64 // ns
	want  string
}{
	"In": {0, minInt64, ""}, "Retention": {0, minInt64, ""}, "KeepResult": {0, minInt64, ""},
	"Snooze": {0, minInt64, ""}, "RetryIn": {0, minInt64, ""},
	"Timeout": {0, 0, "a positive duration, or 0 for no bound"},
	"Backoff": {0, 0, "no negative delay"},
	"TTL":     {0, 1, positive}, "Debounce": {0, 1, positive}, "MaxBackoff": {0, 1, positive},
	"Unique": {0, 1, positive}, "UniqueKey": {1, 1, positive},
}

const (
	minInt64 = -1 << 63
	positive = "a positive duration"
)

// checkDurations checks the durations of options and of errors that say when a task runs again.
func (c *checker) checkDurations(call *ast.CallExpr, name string) {
	name, ours := strings.CutPrefix(name, root+".")
	as, ok := durations[name]
	if !ours || !ok || len(call.Args) <= as.first || call.Ellipsis.IsValid() {
		return
	}
	args := call.Args[as.first:]
	if name == "RetryIn" {
		args = args[:1]
	}
	for _, e := range args {
		v := c.pass.TypesInfo.Types[e].Value
		n, known := integer(v)
		want := "at least 1ms, or a unit such as time.Second behind the number"
		if n < as.least {
			want = as.want
		}
		if known && (n < as.least || isShort(v)) {
			c.reportf(call, e, "%s: expected %s, found %s", name, want, time.Duration(n))
		}
	}
}
