package web

import (
	"fmt"
	"strconv"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect/call"
)

// callOptions are the options of a call: see the options of package delayed. Durations are such as 90s, 15m or 7d, and
// times such as 2026-01-31T15:04:05Z.
type callOptions struct {
	In         string            `json:"in,omitempty"`          // start it in so long
	At         string            `json:"at,omitempty"`          // start it at a time
	ID         string            `json:"id,omitempty"`          // in place of a random one
	Unique     string            `json:"unique,omitempty"`      // refuse another such task for so long at most
	UniqueKey  string            `json:"unique_key,omitempty"`  // what unique is about, in place of the call
	UntilStart bool              `json:"until_start,omitempty"` // end unique when the task starts
	OnConflict string            `json:"on_conflict,omitempty"` // fail, skip or replace
	Debounce   string            `json:"debounce,omitempty"`    // run a burst once, after a rest of so long
	MaxRetry   *int              `json:"max_retry,omitempty"`
	Backoff    []string          `json:"backoff,omitempty"` // waits before it is tried again
	MaxBackoff string            `json:"max_backoff,omitempty"`
	RetryUntil string            `json:"retry_until,omitempty"` // a time
	Timeout    string            `json:"timeout,omitempty"`     // of one run
	Deadline   string            `json:"deadline,omitempty"`    // a time
	TTL        string            `json:"ttl,omitempty"`         // how long it is of use before it has started
	Retention  string            `json:"retention,omitempty"`   // keep the task for so long after it has succeeded
	KeepResult string            `json:"keep_result,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	Group      string            `json:"group,omitempty"` // key of the group that it is put together with
	Front      bool              `json:"front,omitempty"` // at the front of its queue
}

// uniqueFor is how long a key is held at most that Options.Debounce is about.
const uniqueFor = 7 * day

// optionReader makes options of texts, and keeps the first error.
type optionReader struct {
	list []delayed.Option
	err  error
}

func (r *optionReader) span(name, text string, option func(time.Duration) delayed.Option) {
	if text == "" || r.err != nil {
		return
	}
	var d time.Duration
	if d, r.err = spanOfText("options."+name, text); r.err == nil {
		r.list = append(r.list, option(d))
	}
}

func (r *optionReader) time(name, text string, option func(time.Time) delayed.Option) {
	if text == "" || r.err != nil {
		return
	}
	var at time.Time
	if at, r.err = timeOfText("options."+name, text); r.err == nil {
		r.list = append(r.list, option(at))
	}
}

// list returns the options that are given.
func (o *callOptions) list() ([]delayed.Option, error) {
	r := &optionReader{}
	r.span("in", o.In, delayed.In)
	r.time("at", o.At, delayed.At)
	r.span("debounce", o.Debounce, delayed.Debounce)
	r.span("max_backoff", o.MaxBackoff, func(d time.Duration) delayed.Option { return delayed.MaxBackoff(d) })
	r.time("retry_until", o.RetryUntil, delayed.RetryUntil)
	r.span("timeout", o.Timeout, func(d time.Duration) delayed.Option { return delayed.Timeout(d) })
	r.time("deadline", o.Deadline, delayed.Deadline)
	r.span("ttl", o.TTL, func(d time.Duration) delayed.Option { return delayed.TTL(d) })
	r.span("retention", o.Retention, func(d time.Duration) delayed.Option { return delayed.Retention(d) })
	r.span("keep_result", o.KeepResult, func(d time.Duration) delayed.Option { return delayed.KeepResult(d) })
	r.span("unique", o.Unique, func(d time.Duration) delayed.Option {
		if o.UniqueKey != "" {
			return delayed.UniqueKey(o.UniqueKey, d)
		}
		return delayed.Unique(d)
	})
	if r.err != nil {
		return nil, r.err
	}
	return o.others(r.list)
}

// others adds the options that are neither durations nor times.
func (o *callOptions) others(list []delayed.Option) ([]delayed.Option, error) {
	if o.UniqueKey != "" && o.Unique == "" {
		if o.Debounce == "" {
			return nil, bad("options.unique_key: expected options.unique too, with how long the key is held at most")
		}
		list = append(list, delayed.UniqueKey(o.UniqueKey, uniqueFor))
	}
	if len(o.Backoff) > 0 {
		var waits []time.Duration
		for _, text := range o.Backoff {
			d, err := spanOfText("options.backoff", text)
			if err != nil {
				return nil, err
			}
			waits = append(waits, d)
		}
		list = append(list, delayed.Backoff(waits...))
	}
	if o.MaxRetry != nil {
		if *o.MaxRetry < 0 {
			return nil, bad(fmt.Sprintf("options.max_retry: expected 0 or more, found %d", *o.MaxRetry))
		}
		list = append(list, delayed.MaxRetry(*o.MaxRetry))
	}
	for key, value := range o.Headers {
		list = append(list, delayed.Header(key, value))
	}
	switch o.OnConflict {
	case "":
	case "fail":
		list = append(list, delayed.OnConflict(delayed.Fail))
	case "skip":
		list = append(list, delayed.OnConflict(delayed.Skip))
	case "replace":
		list = append(list, delayed.OnConflict(delayed.Replace))
	default:
		return nil, bad("options.on_conflict: expected fail, skip or replace, found " +
			strconv.Quote(call.Clip(o.OnConflict, 60)))
	}
	if o.ID != "" {
		list = append(list, delayed.TaskID(o.ID))
	}
	if o.Group != "" {
		list = append(list, delayed.Group(o.Group))
	}
	if o.UntilStart {
		list = append(list, delayed.UntilStart())
	}
	if o.Front {
		list = append(list, delayed.Front())
	}
	return list, nil
}
