package inspect

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Filter selects tasks: those that match every field that is set. The zero value matches all.
type Filter struct {
	// Function is the path of a function, or the end of one behind a slash, dot or colon: "Welcome", "mail.Welcome" and
	// "example.com/app/mail.Welcome" mean the same function.
	Function string
	ID       string // the beginning of its id
	Error    string // part of the text of its last error, in any case of letters
	Reason   string // why it is where it is, such as "arguments"
	Worker   string // id of the worker that has it, or had it last
	Group    string // the key of delayed.Group: of calls that wait in a group or are to join one
	// Headers are the headers that it has; a value "" stands for any.
	Headers map[string]string
	// Text is a part of its call as code, Task.Call, such as `"en"` or `42,`.
	Text string
	// Arg is an argument that it has: a path from 0, and behind "=" the value as Task.Call shows it, without quotes.
	// "0=42" is the first argument, "1.user.name=Ann" a field of the second, "to=ann@example.com" a keyword argument. A
	// path without "=" means that there is such a value.
	Arg string
	// OlderThan and YoungerThan are bounds of the time since it was enqueued; 0 is none. Tasks without the time when
	// they were enqueued are neither.
	OlderThan, YoungerThan time.Duration
	// MinAttempt and MaxAttempt are bounds of Task.Attempt; 0 is none.
	MinAttempt, MaxAttempt int
	// MinDeaths selects tasks with which at least so many workers have died, see Task.Deaths; 0 is any number.
	MinDeaths int
}

// IsZero reports whether f matches all tasks.
func (f *Filter) IsZero() bool {
	return f.Function == "" && f.ID == "" && f.Error == "" && f.Reason == "" && f.Worker == "" && f.Group == "" &&
		len(f.Headers) == 0 && f.Text == "" && f.Arg == "" && f.OlderThan == 0 && f.YoungerThan == 0 &&
		f.MinAttempt == 0 && f.MaxAttempt == 0 && f.MinDeaths == 0
}

// Match reports whether f matches a task at a time.
func (f *Filter) Match(t *Task, now time.Time) bool {
	switch {
	case f.Function != "" && !isNamed(t.Function, f.Function),
		!strings.HasPrefix(t.ID, f.ID),
		f.Error != "" && !strings.Contains(strings.ToLower(t.Error), strings.ToLower(f.Error)),
		f.Reason != "" && string(t.Reason) != f.Reason,
		f.Worker != "" && t.Worker != f.Worker,
		f.Group != "" && t.Options.Group != f.Group,
		f.Text != "" && !strings.Contains(t.Call, f.Text),
		f.MinAttempt > 0 && t.Attempt < f.MinAttempt,
		f.MaxAttempt > 0 && t.Attempt > f.MaxAttempt,
		f.MinDeaths > 0 && t.Deaths < f.MinDeaths:
		return false
	}
	if f.OlderThan > 0 || f.YoungerThan > 0 {
		age := now.Sub(t.EnqueuedAt)
		if t.EnqueuedAt.IsZero() || age < f.OlderThan || f.YoungerThan > 0 && age > f.YoungerThan {
			return false
		}
	}
	for key, want := range f.Headers {
		if value, ok := t.Headers[key]; !ok || want != "" && value != want {
			return false
		}
	}
	return f.Arg == "" || f.matchArg(t)
}

// isNamed reports whether a name is a path, or the end of one behind a separator.
func isNamed(path, name string) bool {
	rest, ok := strings.CutSuffix(path, name)
	return ok && (rest == "" || strings.ContainsAny(rest[len(rest)-1:], "/.:"))
}

// matchArg reports whether a task has the argument of f.Arg.
func (f *Filter) matchArg(t *Task) bool {
	path, want, valued := strings.Cut(f.Arg, "=")
	first, rest, deeper := strings.Cut(path, ".")
	value, ok := step(t.Args, first)
	if !ok {
		value, ok = step(t.Kwargs, first)
	}
	for ok && deeper {
		first, rest, deeper = strings.Cut(rest, ".")
		value, ok = step(value, first)
	}
	return ok && (!valued || plainText(value) == want)
}

// step returns what a list has at an index, or a map at a key.
func step(v any, name string) (value any, ok bool) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			if strconv.Itoa(i) == name {
				return v[i], true
			}
		}
	case map[string]any:
		value, ok = v[name]
	case map[any]any:
		for k, value := range v {
			if fmt.Sprint(k) == name {
				return value, true
			}
		}
	}
	return value, ok
}

// plainText writes a value as in a call, a string without quotes.
func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	w := callWriter{most: mostCall}
	w.value(v)
	return w.b.String()
}
