package call

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
)

// Condition is one field of an inspect.Filter that people write as text.
type Condition struct {
	Name    string // in addresses and in the API
	Flag    string // of the command
	Word    string // of delayed top; "" if it has none
	Kind    string // text, duration or number
	Label   string // in forms
	Words   string // before its value in a sentence
	Example string
	Help    string
	Secret  bool // it looks at arguments, headers or errors, which not everybody may see
	// Set puts a text that is not empty into a filter; headers add up.
	Set func(*inspect.Filter, string) error
	// Get returns the texts that Set would take; none if the field is not set.
	Get func(*inspect.Filter) []string
}

// Conditions are all fields of an inspect.Filter, sorted as they are shown.
var Conditions = []Condition{
	textCondition(Condition{
		Name: "function", Flag: "func", Word: "func", Label: "Function", Words: "function", Example: "mail.Welcome",
		Help: "function: Welcome, mail.Welcome or its whole path",
	}, func(f *inspect.Filter) *string { return &f.Function }),
	textCondition(Condition{
		Name: "prefix", Flag: "id", Word: "id", Label: "Id begins with", Words: "id", Example: "01J9ZQ",
		Help: "beginning of the id",
	}, func(f *inspect.Filter) *string { return &f.ID }),
	textCondition(Condition{
		Name: "text", Flag: "text", Label: "Call contains", Words: "text", Example: `"en"`, Secret: true,
		Help: `part of the call as it is shown, such as 42, "en"`,
	}, func(f *inspect.Filter) *string { return &f.Text }),
	textCondition(Condition{
		Name: "arg", Flag: "arg", Word: "arg", Label: "Argument", Words: "argument",
		Example: "0=42 or 1.user.name=Ann", Secret: true,
		Help: "argument: 0=42, 1.user.name=Ann, to=ann@example.com, or a path without a value",
	}, func(f *inspect.Filter) *string { return &f.Arg }),
	textCondition(Condition{
		Name: "error", Flag: "error", Word: "error", Label: "Error contains", Words: "error",
		Example: "mailbox full", Secret: true,
		Help: "part of the text of the last error",
	}, func(f *inspect.Filter) *string { return &f.Error }),
	textCondition(Condition{
		Name: "reason", Flag: "reason", Word: "reason", Label: "Reason", Words: "reason", Example: "failed",
		Help: `why the task is where it is, such as "arguments"`,
	}, func(f *inspect.Filter) *string { return &f.Reason }),
	{
		Name: "header", Flag: "header", Word: "header", Kind: "text", Label: "Header", Words: "header",
		Example: "tenant=acme",
		Help:    "header: KEY=VALUE, or KEY for any value; may be repeated", Secret: true,
		Set: func(f *inspect.Filter, s string) error {
			key, value, _ := strings.Cut(s, "=")
			if key == "" {
				return fmt.Errorf("expected a header as key=value, or its key, found %s", quote(s))
			}
			if f.Headers == nil {
				f.Headers = map[string]string{}
			}
			f.Headers[key] = value
			return nil
		},
		Get: func(f *inspect.Filter) (texts []string) {
			for _, key := range slices.Sorted(maps.Keys(f.Headers)) {
				texts = append(texts, strings.TrimSuffix(key+"="+f.Headers[key], "="))
			}
			return texts
		},
	},
	textCondition(Condition{
		Name: "worker", Flag: "worker", Word: "worker", Label: "Worker", Words: "worker", Example: "its id",
		Help: "id of the worker that has the task, or had it last",
	}, func(f *inspect.Filter) *string { return &f.Worker }),
	textCondition(Condition{
		Name: "group", Flag: "group", Word: "group", Label: "Group", Words: "group", Example: "its key",
		Help: "key of the group that the call waits in or is to join",
	}, func(f *inspect.Filter) *string { return &f.Group }),
	ageCondition(Condition{
		Name: "older", Flag: "older-than", Word: "older", Label: "Older than", Words: "older than", Example: "2h",
		Help: "enqueued at least so long ago, such as 15m or 7d",
	}, func(f *inspect.Filter) *time.Duration { return &f.OlderThan }),
	ageCondition(Condition{
		Name: "younger", Flag: "newer-than", Word: "newer", Label: "Younger than", Words: "newer than", Example: "7d",
		Help: "enqueued at most so long ago",
	}, func(f *inspect.Filter) *time.Duration { return &f.YoungerThan }),
	countCondition(Condition{
		Name: "min", Flag: "min-attempt", Word: "attempt", Label: "Attempts, at least", Words: "attempt from",
		Example: "3",
		Help:    "attempt that the task is at, at least",
	}, func(f *inspect.Filter) *int { return &f.MinAttempt }),
	countCondition(Condition{
		Name: "max", Flag: "max-attempt", Label: "Attempts, at most", Words: "attempt up to", Example: "10",
		Help: "attempt that the task is at, at most",
	}, func(f *inspect.Filter) *int { return &f.MaxAttempt }),
	countCondition(Condition{
		Name: "deaths", Flag: "min-deaths", Word: "deaths", Label: "Deaths, at least", Words: "deaths from",
		Example: "1",
		Help:    "workers that have died with the task, at least",
	}, func(f *inspect.Filter) *int { return &f.MinDeaths }),
}

func textCondition(c Condition, of func(*inspect.Filter) *string) Condition {
	return condition(c, "text", of, func(s string) (string, error) { return s, nil },
		func(s string) string { return s })
}

func ageCondition(c Condition, of func(*inspect.Filter) *time.Duration) Condition {
	return condition(c, "duration", of, func(s string) (time.Duration, error) {
		d, err := ParseSpan(s)
		if err == nil && d == 0 {
			err = fmt.Errorf("expected a positive duration, found %s", quote(s))
		}
		return d, err
	}, exactDuration)
}

func countCondition(c Condition, of func(*inspect.Filter) *int) Condition {
	return condition(c, "number", of, func(s string) (int, error) {
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return 0, fmt.Errorf("expected a number from 1 on, found %s", quote(s))
		}
		return n, nil
	}, strconv.Itoa)
}

func condition[V comparable](
	c Condition, kind string, of func(*inspect.Filter) *V, parse func(string) (V, error), write func(V) string,
) Condition {
	c.Kind = kind
	c.Set = func(f *inspect.Filter, s string) (err error) {
		*of(f), err = parse(s)
		return err
	}
	c.Get = func(f *inspect.Filter) []string {
		if zero := *new(V); *of(f) == zero {
			return nil
		}
		return []string{write(*of(f))}
	}
	return c
}

// exactDuration writes a duration as ParseDuration reads it.
func exactDuration(d time.Duration) string {
	const day = 24 * time.Hour
	text := ""
	if days := d / day; days > 0 {
		text, d = strconv.Itoa(int(days))+"d", d%day
	}
	if d == 0 && text != "" {
		return text
	}
	text += d.String()
	if strings.HasSuffix(text, "m0s") {
		text = text[:len(text)-2]
	}
	if strings.HasSuffix(text, "h0m") {
		text = text[:len(text)-2]
	}
	return text
}

// FilterText describes a filter in words, "function Welcome, error timeout"; "" for one that matches all tasks.
func FilterText(f *inspect.Filter) string {
	var parts []string
	for i := range Conditions {
		for _, s := range Conditions[i].Get(f) {
			parts = append(parts, Conditions[i].Words+" "+Clip(s, 60))
		}
	}
	return strings.Join(parts, ", ")
}
