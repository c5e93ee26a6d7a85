package call

import (
	"fmt"
	"maps"
	"reflect"
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
	// field returns a pointer to the field.
	field func(*inspect.Filter) any
}

// Conditions are all fields of an inspect.Filter, sorted as they are shown.
var Conditions = []Condition{
	{
		Name: "function", Flag: "func", Word: "func", Kind: "text", Label: "Function", Words: "function",
		Example: "mail.Welcome", Help: "function: Welcome, mail.Welcome or its whole path",
		field: func(f *inspect.Filter) any { return &f.Function },
	},
	{
		Name: "prefix", Flag: "id", Word: "id", Kind: "text", Label: "Id begins with", Words: "id", Example: "01J9ZQ",
		Help:  "beginning of the id",
		field: func(f *inspect.Filter) any { return &f.ID },
	},
	{
		Name: "text", Flag: "text", Kind: "text", Label: "Call contains", Words: "text", Example: `"en"`, Secret: true,
		Help:  `part of the call as it is shown, such as 42, "en"`,
		field: func(f *inspect.Filter) any { return &f.Text },
	},
	{
		Name: "arg", Flag: "arg", Word: "arg", Kind: "text", Label: "Argument", Words: "argument",
		Example: "0=42 or 1.user.name=Ann", Secret: true,
		Help:  "argument: 0=42, 1.user.name=Ann, to=ann@example.com, or a path without a value",
		field: func(f *inspect.Filter) any { return &f.Arg },
	},
	{
		Name: "error", Flag: "error", Word: "error", Kind: "text", Label: "Error contains", Words: "error",
		Example: "mailbox full", Secret: true, Help: "part of the text of the last error",
		field: func(f *inspect.Filter) any { return &f.Error },
	},
	{
		Name: "reason", Flag: "reason", Word: "reason", Kind: "text", Label: "Reason", Words: "reason",
		Example: "failed", Help: `why the task is where it is, such as "arguments"`,
		field: func(f *inspect.Filter) any { return &f.Reason },
	},
	{
		Name: "header", Flag: "header", Word: "header", Kind: "text", Label: "Header", Words: "header",
		Example: "tenant=acme", Secret: true, Help: "header: KEY=VALUE, or KEY for any value; may be repeated",
		field: func(f *inspect.Filter) any { return &f.Headers },
	},
	{
		Name: "worker", Flag: "worker", Word: "worker", Kind: "text", Label: "Worker", Words: "worker",
		Example: "its id", Help: "id of the worker that has the task, or had it last",
		field: func(f *inspect.Filter) any { return &f.Worker },
	},
	{
		Name: "group", Flag: "group", Word: "group", Kind: "text", Label: "Group", Words: "group", Example: "its key",
		Help:  "key of the group that the call waits in or is to join",
		field: func(f *inspect.Filter) any { return &f.Group },
	},
	{
		Name: "older", Flag: "older-than", Word: "older", Kind: "duration", Label: "Older than", Words: "older than",
		Example: "2h", Help: "enqueued at least so long ago, such as 15m or 7d",
		field: func(f *inspect.Filter) any { return &f.OlderThan },
	},
	{
		Name: "younger", Flag: "newer-than", Word: "newer", Kind: "duration", Label: "Younger than",
		Words: "newer than", Example: "7d", Help: "enqueued at most so long ago",
		field: func(f *inspect.Filter) any { return &f.YoungerThan },
	},
	{
		Name: "min", Flag: "min-attempt", Word: "attempt", Kind: "number", Label: "Attempts, at least",
		Words: "attempt from", Example: "3", Help: "attempt that the task is at, at least",
		field: func(f *inspect.Filter) any { return &f.MinAttempt },
	},
	{
		Name: "max", Flag: "max-attempt", Kind: "number", Label: "Attempts, at most", Words: "attempt up to",
		Example: "10", Help: "attempt that the task is at, at most",
		field: func(f *inspect.Filter) any { return &f.MaxAttempt },
	},
	{
		Name: "deaths", Flag: "min-deaths", Word: "deaths", Kind: "number", Label: "Deaths, at least",
		Words: "deaths from", Example: "1", Help: "workers that have died with the task, at least",
		field: func(f *inspect.Filter) any { return &f.MinDeaths },
	},
}

// Set puts a text that is not empty into a filter; headers add up.
func (c *Condition) Set(f *inspect.Filter, s string) (err error) {
	switch field := c.field(f).(type) {
	case *string:
		*field = s
	case *time.Duration:
		if *field, err = ParseSpan(s); err == nil && *field == 0 {
			err = fmt.Errorf("expected a positive duration, found %s", quote(s))
		}
	case *int:
		n, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil || n < 1 {
			return fmt.Errorf("expected a number from 1 on, found %s", quote(s))
		}
		*field = n
	case *map[string]string:
		key, value, _ := strings.Cut(s, "=")
		if key == "" {
			return fmt.Errorf("expected a header as key=value, or its key, found %s", quote(s))
		}
		if *field == nil {
			*field = map[string]string{}
		}
		(*field)[key] = value
	}
	return err
}

// Get returns the texts that Set would take; none if the field is not set.
func (c *Condition) Get(f *inspect.Filter) (texts []string) {
	if reflect.ValueOf(c.field(f)).Elem().IsZero() {
		return nil
	}
	switch field := c.field(f).(type) {
	case *string:
		texts = []string{*field}
	case *time.Duration:
		texts = []string{exactDuration(*field)}
	case *int:
		texts = []string{strconv.Itoa(*field)}
	case *map[string]string:
		for _, key := range slices.Sorted(maps.Keys(*field)) {
			texts = append(texts, strings.TrimSuffix(key+"="+(*field)[key], "="))
		}
	}
	return texts
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
