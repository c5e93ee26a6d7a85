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
	number := p.Kind == kindInt || p.Kind == kindUint || p.Kind == kindFloat
	switch {
	case a.as.Full == duration && p.Full != duration && number:
		c.reportf(call, a.expr, "%s: expected %s, found time.Duration%s, which arrives without its unit, as a number "+
			"of nanoseconds; let the function take a time.Duration, or convert it to the unit that it counts", subject,
			p.Type, inBrackets(durationText(a.value)))
	case p.Full == duration && a.as.Full != duration && isShort(a.value):
		c.reportf(call, a.expr, "%s: expected time.Duration, found %s, which counts nanoseconds; put a unit such as "+
			"time.Second behind the number", subject, a.found())
	}
}

func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

func durationText(v constant.Value) string {
	if v == nil {
		return ""
	}
	n, ok := constant.Int64Val(constant.ToInt(v))
	if !ok {
		return ""
	}
	return time.Duration(n).String()
}

// isShort reports whether a constant duration is more than nothing and less than a millisecond, and so was probably
// meant in another unit.
func isShort(v constant.Value) bool {
	if v == nil {
		return false
	}
	v = constant.ToInt(v)
	if v.Kind() != constant.Int {
		return false
	}
	n, ok := constant.Int64Val(v)
	return ok && n > 0 && n < int64(time.Millisecond)
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
		if v == nil {
			continue
		}
		if n, exact := constant.Int64Val(constant.ToInt(v)); exact && n < as.least {
			c.reportf(call, e, "%s: expected %s, found %s", name, as.want, time.Duration(n))
		} else if isShort(v) {
			c.reportf(call, e, "%s: expected at least 1ms, or a unit such as time.Second behind the number, found %s",
				name, durationText(v))
		}
	}
}
