package api

import (
	"encoding/json"
	"errors"
	"net/http"

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

func apiEnqueue(s *shared, c *apiCall, n *taskBody) (v document.Enqueued, err error) {
	options, err := n.Options.list()
	if err != nil {
		return v, err
	}
	if n.Queue != "" {
		if err := s.CheckName(n.Queue); err != nil {
			return v, err
		}
	}
	queue, task, err := c.callOf(n)
	if err != nil {
		return v, err
	}
	ref, err := c.Ins.Enqueue(c.Ctx, queue, task, options...)
	if ref == nil {
		return v, err
	}
	c.enqueued(s, queue, ref.ID(), err)
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

func apiEdit(s *shared, c *apiCall, n *argumentsBody) (v document.Acted, err error) {
	if n.Args == nil {
		return v, site.Bad("args: expected an array, found none")
	}
	t, err := c.findOne(s)
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
