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
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

var (
	statesParam = param{
		Name: "state", Kind: "text", Many: true, Text: "only in these states; may be repeated", Names: stateNames(),
	}
	newestParam = param{Name: "newest_first", Kind: "flag", Text: "begin with the task that came last"}
	scanParam   = param{
		Name: "scan", Kind: "number", Least: 1, Most: maxScan, Usual: "10000", Text: "tasks to look at for a list",
	}
	cursorParam = param{
		Name: "cursor", Kind: "text", Text: "where the page before has ended; with one queue and one state",
	}
)

const (
	maxScan = 100_000
	// maxLists is how many lists one answer may have, and maxScanned how many tasks may be scanned for it.
	maxLists   = 100
	maxScanned = 1_000_000
)

func stateNames() (names []string) {
	for _, s := range inspect.States {
		names = append(names, s.String())
	}
	return names
}

// listParams are the parameters of lists of tasks.
func listParams() []param {
	return append([]param{queuesParam, statesParam, newestParam, limitParam, scanParam, cursorParam}, filterParams()...)
}

func apiTasks(c *apiCall, queues []inspect.Queue, _ []string) (v document.Lists, err error) {
	v.Lists = []document.List{}
	query := inspect.Query{
		NewestFirst: c.flag(newestParam), Limit: c.number(limitParam), ScanLimit: c.number(scanParam),
		Cursor: c.Args.Get(cursorParam.Name),
	}
	if query.Filter, err = site.ParseFilter(c.Args, c.hidden()); err != nil {
		return v, err
	}
	var states []state.Task
	for _, of := range inspect.States {
		if given := c.Args[statesParam.Name]; len(given) == 0 || slices.Contains(given, of.String()) {
			states = append(states, of)
		}
	}
	n := len(queues) * len(states)
	switch {
	case query.Cursor != "" && n != 1:
		return v, site.Bad("parameter cursor: it belongs to one list: expected one queue and one state")
	case n > maxLists:
		return v, site.Bad(fmt.Sprintf("expected at most %d lists, found %d, of %d queues and %d states: name queues "+
			"states", maxLists, n, len(queues), len(states)))
	case n*query.ScanLimit > maxScanned && !query.Filter.IsZero():
		return v, site.Bad(fmt.Sprintf("expected to look at %d tasks at most, found %d lists of %d: name queues and "+
			"states, or a smaller scan", maxScanned, n, query.ScanLimit))
	}
	for i := range queues {
		for _, query.State = range states {
			page, err := c.Ins.Tasks(c.Ctx, queues[i].Name, query)
			if err != nil {
				return v, err
			}
			v.Lists = append(v.Lists, document.ListOf(queues[i].Name, query.State, &page))
		}
	}
	return v, nil
}

func apiTask(c *apiCall) (document.Found, error) {
	tasks, err := c.find()
	return document.FoundOf(tasks), err
}

// find returns the tasks with the id in the path, in the queue that the address names, or in all.
func (c *apiCall) find() ([]inspect.Task, error) {
	queue := c.Args.Get(queueParam.Name)
	if queue == "" {
		return c.Ins.Find(c.Ctx, c.in("id"))
	}
	t, err := c.Ins.Task(c.Ctx, queue, c.in("id"))
	return []inspect.Task{t}, err
}

// findOne is find for a task that must be in one queue.
func (c *apiCall) findOne() (*inspect.Task, error) {
	tasks, err := c.find()
	if err != nil {
		return nil, err
	}
	if len(tasks) > 1 {
		var names []string
		for i := range tasks {
			names = append(names, strconv.Quote(call.Clip(tasks[i].Queue, 60)))
		}
		return nil, site.Fail(http.StatusConflict, "the task is in the queues "+
			call.Clip(strings.Join(names, ", "), 300)+": expected parameter queue")
	}
	return &tasks[0], nil
}

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
