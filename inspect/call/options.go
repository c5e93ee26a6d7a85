package call

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed"
)

// Option is an option of a call that people write as text.
type Option struct {
	Name    string // as flags have it, such as max-retry; the fields of the API have an underscore in place of the -
	Kind    string // duration, time, number, text or flag; a flag is true or false
	Many    bool   // it can be given several times
	Choices []string
	Help    string
	Label   string // in forms; "" for options that they do not have
	Example string
	make    func(*reader, string) (delayed.Option, error)
}

// Options are all options that a call can have, sorted as they are shown.
var Options = []Option{
	{Name: "in", Kind: "duration", Help: "start it in so long", Label: "In", Example: "15m", make: span(delayed.In)},
	{
		Name: "at", Kind: "time", Help: "start it at a time", Label: "At", Example: "2026-01-31 15:04",
		make: moment(delayed.At),
	},
	{
		Name: "max-retry", Kind: "number", Help: "how often it is tried again", Label: "Retries", Example: "5",
		make: func(_ *reader, s string) (delayed.Option, error) {
			n, err := strconv.Atoi(s)
			if err != nil || n < 0 {
				return nil, fmt.Errorf("expected a whole number, 0 or more, found %s", quote(s))
			}
			return delayed.MaxRetry(n), nil
		},
	},
	{
		Name: "backoff", Kind: "duration", Many: true, Help: "waits before it is tried again, such as 1m,5m,1h",
		make: func(_ *reader, list string) (delayed.Option, error) {
			var waits []time.Duration
			for s := range strings.SplitSeq(list, ",") {
				d, err := ParseSpan(s)
				if err != nil {
					return nil, err
				}
				waits = append(waits, d)
			}
			return delayed.Backoff(waits...), nil
		},
	},
	{
		Name: "max-backoff", Kind: "duration", Help: "longest wait before it is tried again",
		make: span(delayed.MaxBackoff),
	},
	{
		Name: "retry-until", Kind: "time", Help: "try it again until then, instead of a number of times",
		make: moment(delayed.RetryUntil),
	},
	{
		Name: "timeout", Kind: "duration", Help: "how long one run may take; 0: for as long as it likes",
		Label: "Timeout", Example: "30s", make: span(delayed.Timeout),
	},
	{Name: "deadline", Kind: "time", Help: "when it must be over", make: moment(delayed.Deadline)},
	{
		Name: "ttl", Kind: "duration", Help: "how long it is of use before it has started", Label: "Time to live",
		Example: "1h", make: span(delayed.TTL),
	},
	{
		Name: "unique", Kind: "duration", Help: "refuse another task with the same call for so long at most",
		Label: "Unique for", Example: "10m", make: func(r *reader, s string) (delayed.Option, error) {
			d, err := ParseSpan(s)
			if key := r.one("unique-key"); key != "" {
				return delayed.UniqueKey(key, d), err
			}
			return delayed.Unique(d), err
		},
	},
	{
		Name: "unique-key", Kind: "text", Help: "what unique is about, in place of the call",
		make: func(r *reader, key string) (delayed.Option, error) {
			switch {
			case r.one("unique") != "":
				return nil, nil //nolint:nilnil // unique has it
			case r.one("debounce") == "":
				return nil, errors.New("expected unique too, with how long the key is held at most")
			}
			return delayed.UniqueKey(key, uniqueFor), nil
		},
	},
	{
		Name: "until-start", Kind: "flag", Help: "end unique when the task starts",
		make: flag(delayed.UntilStart),
	},
	{
		Name: "on-conflict", Kind: "text", Choices: []string{"fail", "skip", "replace"},
		Help: "when the id or the lock is taken: fail, skip or replace",
		make: func(_ *reader, s string) (delayed.Option, error) {
			return delayed.OnConflict(map[string]delayed.Conflict{
				"fail": delayed.ConflictFail, "skip": delayed.ConflictSkip, "replace": delayed.ConflictReplace,
			}[s]), nil
		},
	},
	{
		Name: "debounce", Kind: "duration", Help: "run a burst of such calls once, when there was none for so long",
		make: span(delayed.Debounce),
	},
	{
		Name: "id", Kind: "text", Help: "id of the task, in place of a random one", Label: "Task id",
		Example: "invoice-42", make: text(delayed.TaskID),
	},
	{
		Name: "retention", Kind: "duration", Help: "keep the task for so long after it has succeeded",
		Label: "Retention", Example: "1d", make: span(delayed.Retention),
	},
	{
		Name: "keep-result", Kind: "duration", Help: "keep its result for so long", Label: "Keep result", Example: "1h",
		make: span(delayed.KeepResult),
	},
	{
		Name: "group", Kind: "text", Help: "key of the group of calls that it is put together with", Label: "Group",
		Example: "shop-7", make: text(delayed.Group),
	},
	{
		Name: "header", Kind: "text", Many: true, Help: "header KEY=VALUE", Label: "Headers", Example: "tenant=acme",
		make: func(_ *reader, s string) (delayed.Option, error) {
			key, value, ok := strings.Cut(s, "=")
			if !ok || key == "" {
				return nil, fmt.Errorf("expected KEY=VALUE, found %s", quote(s))
			}
			return delayed.Header(key, value), nil
		},
	},
	{
		Name: "front", Kind: "flag", Help: "put it at the front of its queue",
		make: flag(delayed.Front),
	},
}

// uniqueFor is how long the key of a debounced call is held at most if nothing else is said.
const uniqueFor = 7 * 24 * time.Hour

// OptionError is an error about one option.
type OptionError struct {
	Name string
	Err  error
}

func (e *OptionError) Error() string { return e.Name + ": " + e.Err.Error() }

func (e *OptionError) Unwrap() error { return e.Err }

// ReadOptions reads the options of a call, texts by the names of Options. Times without a zone are of the given one; if
// that is nil, they must have one. An error is an *OptionError.
func ReadOptions(given map[string][]string, zone *time.Location) (list []delayed.Option, err error) {
	r := &reader{given, zone}
	for i := range Options {
		o := &Options[i]
		texts := given[o.Name]
		if len(texts) > 1 && o.Kind == "duration" { // it is one list
			texts = []string{strings.Join(texts, ",")}
		}
		for _, s := range texts {
			option, err := o.read(r, s)
			if err != nil {
				return nil, &OptionError{o.Name, err}
			}
			if option != nil {
				list = append(list, option)
			}
		}
	}
	return list, nil
}

// reader is what the options of one call are made of.
type reader struct {
	given map[string][]string
	zone  *time.Location
}

// one returns the text of an option that is given once at most.
func (r *reader) one(name string) string { return strings.Join(r.given[name], "") }

func (o *Option) read(r *reader, s string) (delayed.Option, error) {
	if o.Choices != nil && !slices.Contains(o.Choices, s) {
		last := len(o.Choices) - 1
		return nil, fmt.Errorf("expected %s or %s, found %s", strings.Join(o.Choices[:last], ", "), o.Choices[last],
			quote(s))
	}
	return o.make(r, s)
}

func span[O delayed.Option](option func(time.Duration) O) func(*reader, string) (delayed.Option, error) {
	return func(_ *reader, s string) (delayed.Option, error) {
		d, err := ParseSpan(s)
		return option(d), err
	}
}

func moment(option func(time.Time) delayed.Option) func(*reader, string) (delayed.Option, error) {
	return func(r *reader, s string) (delayed.Option, error) {
		at, err := ParseTime(s, r.zone)
		return option(at), err
	}
}

func flag[O delayed.Option](option func() O) func(*reader, string) (delayed.Option, error) {
	return func(_ *reader, s string) (delayed.Option, error) {
		switch s {
		case "true":
			return option(), nil
		case "false":
			return nil, nil //nolint:nilnil // that is no option
		}
		return nil, fmt.Errorf("expected true or false, found %s", quote(s))
	}
}

func text(option func(string) delayed.Option) func(*reader, string) (delayed.Option, error) {
	return func(_ *reader, s string) (delayed.Option, error) { return option(s), nil }
}
