package api

import (
	"fmt"
	"net/http"
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
