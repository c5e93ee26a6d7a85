package api

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/site"
)

// how is what some actions on tasks need besides.
type how struct {
	// When is the time that reschedule sets, such as 2026-01-31T15:04:05Z, or how far it is from now, such as 15m.
	When string `json:"when,omitempty"`
	// To is the queue that move moves to.
	To string `json:"to,omitempty"`
}

// actBody is an action on tasks of a queue.
type actBody struct {
	Action string   `json:"action"` // run, archive, cancel, delete, reschedule or move
	Queue  string   `json:"queue"`
	IDs    []string `json:"ids"` // up to 1000
	how
}

// verbs are the actions on tasks. Programs need no retry: run does the same.
func verbs() []*site.Verb {
	var all []*site.Verb
	for i := range site.Verbs {
		if v := &site.Verbs[i]; v.Help != "" {
			all = append(all, v)
		}
	}
	return all
}

// verbNamed returns the action on tasks of a name.
func verbNamed(name string) (*site.Verb, error) {
	var names []string
	for _, v := range verbs() {
		if v.Name == name {
			return v, nil
		}
		names = append(names, v.Name)
	}
	return nil, site.Bad(fmt.Sprintf("action: expected one of %s, found %s", strings.Join(names, ", "),
		strconv.Quote(call.Clip(name, 60))))
}

// action returns what a verb does to tasks of a queue.
func (h *how) action(c *apiCall, v *site.Verb, queue string) (inspect.Action, error) {
	switch {
	case h.When != "" && v.Ask != "when":
		return inspect.Action{}, site.Bad("when: expected it only of reschedule, found it of " + v.Name)
	case h.To != "" && v.Ask != "to":
		return inspect.Action{}, site.Bad("to: expected it only of move, found it of " + v.Name)
	}
	return v.Action(c.site, url.Values{"when": {h.When}, "to": {h.To}, "queue": {queue}})
}

// apiAct applies an action to single tasks of a queue.
func apiAct(c *apiCall, act *actBody) (v document.Acted, err error) {
	if len(act.IDs) == 0 || len(act.IDs) > site.MaxSelected || slices.Contains(act.IDs, "") {
		return v, site.Bad(fmt.Sprintf("ids: expected 1 to %d ids of tasks, found %d: jobs act on all tasks that match",
			site.MaxSelected, len(act.IDs)))
	}
	if err := c.site.CheckName(act.Queue); err != nil {
		return v, err
	}
	verb, err := verbNamed(act.Action)
	if err != nil {
		return v, err
	}
	a, err := act.action(c, verb, act.Queue)
	if err != nil {
		return v, err
	}
	if _, err := c.Ins.Queue(c.Ctx, act.Queue); err != nil {
		return v, err
	}
	r, err := c.Ins.Do(c.Ctx, act.Queue, a, act.IDs...)
	return acted(act.Action, act.Queue, &r), err
}

func acted(action, queue string, r *inspect.Report) document.Acted {
	return document.Acted{Action: action, Reports: []document.Report{document.ReportOf(queue, "", r)}}
}

// doOne applies an action to a task, and makes its failure an error.
func (c *apiCall) doOne(name string, a inspect.Action, t *inspect.Task) (document.Acted, error) {
	r, err := c.Ins.Do(c.Ctx, t.Queue, a, t.ID)
	if err == nil && len(r.Failed) > 0 {
		if err = r.Failed[0].Err; !errors.Is(err, inspect.ErrNotFound) {
			err = site.Fail(http.StatusConflict, err.Error())
		}
	}
	return acted(name, t.Queue, &r), err
}

// apiActOn makes an action of a verb on the task that the path names.
func apiActOn(verb *site.Verb) action {
	do := func(c *apiCall, h *how) (v document.Acted, err error) {
		t, err := c.findOne()
		if err != nil {
			return v, err
		}
		a, err := h.action(c, verb, t.Queue)
		if err != nil {
			return v, err
		}
		return c.doOne(verb.Name, a, t)
	}
	if verb.Ask != "" {
		return takes(do)
	}
	return answers(func(c *apiCall) (document.Acted, error) { return do(c, &how{}) })
}
