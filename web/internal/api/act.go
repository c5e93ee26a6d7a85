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

// actions are the names of actions on tasks.
var actions = []string{"run", "archive", "cancel", "delete", "reschedule", "move"}

// verbOf returns an action on tasks, and what to call it.
func (h *how) verbOf(s *shared, name, queue string) (*site.Verb, inspect.Action, error) {
	if !slices.Contains(actions, name) {
		return nil, inspect.Action{}, site.Bad(fmt.Sprintf("action: expected one of %s, found %s", strings.Join(actions,
			", "),
			strconv.Quote(call.Clip(name, 60))))
	}
	v := &site.Verbs[slices.IndexFunc(site.Verbs, func(v site.Verb) bool { return v.Name == name })]
	switch {
	case h.When != "" && v.Ask != "when":
		return nil, inspect.Action{}, site.Bad("when: expected it only of reschedule, found it of " + name)
	case h.To != "" && v.Ask != "to":
		return nil, inspect.Action{}, site.Bad("to: expected it only of move, found it of " + name)
	}
	a, err := v.Action(s.Site, url.Values{"when": {h.When}, "to": {h.To}, "queue": {queue}})
	return v, a, err
}

// apiAct does an action to single tasks of a queue.
func apiAct(s *shared, c *apiCall, act *actBody) (v document.Acted, err error) {
	if len(act.IDs) == 0 || len(act.IDs) > site.MaxSelected || slices.Contains(act.IDs, "") {
		return v, site.Bad(fmt.Sprintf("ids: expected 1 to %d ids of tasks, found %d: jobs act on all tasks that match",
			site.MaxSelected, len(act.IDs)))
	}
	if err := s.CheckName(act.Queue); err != nil {
		return v, err
	}
	_, action, err := act.verbOf(s, act.Action, act.Queue)
	if err != nil {
		return v, err
	}
	if _, err := c.Ins.Queue(c.Ctx, act.Queue); err != nil {
		return v, err
	}
	return c.do(act.Action, action, act.Queue, act.IDs...)
}

// do does an action to tasks.
func (c *apiCall) do(name string, a inspect.Action, queue string, ids ...string) (v document.Acted, err error) {
	r, err := c.Ins.Do(c.Ctx, queue, a, ids...)
	return document.Acted{Action: name, Reports: []document.Report{document.ReportOf(queue, "", &r)}}, err
}

// doOne does an action to a task, and makes its failure an error.
func (c *apiCall) doOne(name string, a inspect.Action, t *inspect.Task) (v document.Acted, err error) {
	r, err := c.Ins.Do(c.Ctx, t.Queue, a, t.ID)
	if err == nil && len(r.Failed) > 0 {
		if err = r.Failed[0].Err; !errors.Is(err, inspect.ErrNotFound) {
			err = site.Fail(http.StatusConflict, err.Error())
		}
	}
	return document.Acted{Action: name, Reports: []document.Report{document.ReportOf(t.Queue, "", &r)}}, err
}

// apiActOn makes an action of one on a single task that needs nothing besides.
func apiActOn(name string) action {
	return answers(func(s *shared, c *apiCall) (document.Acted, error) { return actOnOne(s, c, name, &how{}) })
}

// apiActOnHow makes an action of one on a single task that needs to know how.
func apiActOnHow(name string) action {
	return takes(func(s *shared, c *apiCall, h *how) (document.Acted, error) { return actOnOne(s, c, name, h) })
}

func actOnOne(s *shared, c *apiCall, name string, h *how) (v document.Acted, err error) {
	t, err := c.findOne(s)
	if err != nil {
		return v, err
	}
	_, a, err := h.verbOf(s, name, t.Queue)
	if err != nil {
		return v, err
	}
	return c.doOne(name, a, t)
}
