package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/web/internal/site"
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

// list returns the options that are given.
func (o *callOptions) list() ([]delayed.Option, error) {
	headers, others := o.Headers, *o
	others.Headers = nil
	fields, err := textsOf(&others)
	if err != nil {
		return nil, err
	}
	given := map[string][]string{}
	for name, texts := range fields {
		given[strings.ReplaceAll(name, "_", "-")] = texts
	}
	options, err := call.ReadOptions(given, nil)
	if wrong := new(call.OptionError); errors.As(err, &wrong) {
		return nil, site.Bad("options." + strings.ReplaceAll(wrong.Name, "-", "_") + ": " + wrong.Err.Error())
	}
	for key, value := range headers {
		options = append(options, delayed.Header(key, value))
	}
	return options, err
}

// textsOf returns the fields of a struct as texts, by their names in JSON: lists have several.
func textsOf(v any) (url.Values, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var fields map[string]any
	if err := d.Decode(&fields); err != nil {
		return nil, err
	}
	values := url.Values{}
	for name, v := range fields {
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, v := range list {
			values.Add(name, fmt.Sprint(v))
		}
	}
	return values, nil
}
