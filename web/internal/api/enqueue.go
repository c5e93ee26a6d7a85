package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/site"
)

// taskBody is a call to enqueue.
type taskBody struct {
	// Queue may be absent if the workers of one queue alone know the function.
	Queue string `json:"queue,omitempty"`
	// Function is the path of a function that workers have published, or the end of it, such as mail.Welcome or
	// module:function of Python. A Python function that nobody has published is taken as it is, and needs a queue.
	Function string `json:"function"`
	// Args are the arguments. Bytes are in base64, times such as 2026-01-31T15:04:05Z.
	Args []json.RawMessage `json:"args,omitempty"`
	// Kwargs are the keyword arguments of a Python function.
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
	// Unchecked takes the path and the arguments as they are given, whatever workers have published.
	Unchecked bool        `json:"unchecked,omitempty"`
	Options   callOptions `json:"options,omitzero"`
}

// texts returns JSON values as they are written.
func texts(raw []json.RawMessage) []string {
	list := make([]string, len(raw))
	for i := range raw {
		list[i] = string(raw[i])
	}
	return list
}

func apiEnqueue(c *apiCall, n *taskBody) (v document.Enqueued, err error) {
	options, err := n.Options.list()
	if err != nil {
		return v, err
	}
	if n.Queue != "" {
		if err := c.site.CheckName(n.Queue); err != nil {
			return v, err
		}
	}
	queue, task, err := c.callOf(n)
	if err != nil {
		return v, err
	}
	ref, err := c.Ins.Enqueue(c.Ctx, queue, task, options...)
	return c.enqueued(queue, ref, err)
}

// enqueued returns where a task is that was enqueued. With a task, err is about the audit log: whoever has enqueued it
// must not do it again.
func (c *apiCall) enqueued(queue string, ref *delayed.Ref, err error) (document.Enqueued, error) {
	if ref == nil {
		return document.Enqueued{}, err
	}
	if err != nil {
		c.site.Failed(c.http, err)
	}
	if id := ref.ID(); id != "" { // legacy queues know none
		c.location = c.up() + "tasks/" + url.PathEscape(id) + "?" + url.Values{"queue": {queue}}.Encode()
	}
	return document.Enqueued{ID: ref.ID(), Queue: queue}, nil
}

// callOf returns the queue and the call of a new task.
func (c *apiCall) callOf(n *taskBody) (queue string, task *delayed.Task, err error) {
	r := call.Request{
		Queue: n.Queue, Function: n.Function, Args: texts(n.Args), Kwargs: string(n.Kwargs), Unchecked: n.Unchecked,
	}
	var functions []inspect.Function
	if n.Function != "" && !n.Unchecked {
		var queues []string
		if n.Queue != "" {
			queues = []string{n.Queue}
		}
		if functions, err = c.Ins.Functions(c.Ctx, queues...); err != nil {
			return "", nil, err
		}
	}
	queue, task, err = r.Task(functions)
	switch {
	case errors.Is(err, inspect.ErrNotFound):
		err = site.Missing(err.Error() + "; api/v1/functions lists them; or give the whole path, a queue, and " +
			`"unchecked": true`)
	case errors.Is(err, call.ErrAmbiguous):
		err = site.Fail(http.StatusConflict, err.Error())
	default:
		err = misused(err)
	}
	return queue, task, err
}

// misused makes an error about arguments one of the request.
func misused(err error) error {
	if err == nil {
		return nil
	}
	return site.Bad(err.Error())
}

// argumentsBody is the arguments that a task gets in place of its own.
type argumentsBody struct {
	Args []json.RawMessage `json:"args"`
	// Kwargs are the keyword arguments of a Python function. Those that it has stay if they are absent.
	Kwargs json.RawMessage `json:"kwargs,omitempty"`
	// Unchecked takes the arguments as they are given, whatever workers have published.
	Unchecked bool `json:"unchecked,omitempty"`
}

func apiEdit(c *apiCall, n *argumentsBody) (v document.Acted, err error) {
	if n.Args == nil {
		return v, site.Bad("args: expected an array, found none")
	}
	t, err := c.findOne()
	if err != nil {
		return v, err
	}
	task, err := c.edited(t, n)
	if err != nil {
		return v, err
	}
	return c.doOne("edit", inspect.Edit(task), t)
}

// edited returns the call of a task with other arguments.
func (c *apiCall) edited(t *inspect.Task, n *argumentsBody) (*delayed.Task, error) {
	var fn *inspect.Function
	switch {
	case t.Function == "":
		return nil, site.Fail(http.StatusConflict, "its function is unknown, so it cannot be edited: "+t.Problem)
	case t.Python && n.Kwargs != nil:
		task, err := call.Python(t.Function, texts(n.Args), string(n.Kwargs))
		return task, misused(err)
	case n.Kwargs != nil:
		return nil, site.Bad("kwargs: expected them only of Python functions, and this is one of Go")
	case !t.Python && !n.Unchecked:
		functions, err := c.Ins.Functions(c.Ctx, t.Queue)
		if err != nil {
			return nil, err
		}
		if fn, err = call.Published(functions, t); err != nil {
			return nil, site.Fail(http.StatusConflict, err.Error()+"; or give \"unchecked\": true")
		}
	}
	text, err := json.Marshal(n.Args)
	if err != nil {
		return nil, errors.Join(site.Bad("args: expected an array of JSON values"), err)
	}
	task, err := call.Edited(t, fn, string(text))
	return task, misused(err)
}

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
