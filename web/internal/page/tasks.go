package page

import (
	"cmp"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

const (
	tasksPerPage = 50
	// A page that has scanned so many tasks is not made anew all the time.
	livelyScan = 1000
	// A filtered page scans tasks in steps, until it is full, or has scanned for long enough, or enough of them.
	scanStep = 1000
	scanMost = 10_000
	scanTime = 30 * time.Millisecond
)

// tasksPage is a list of tasks.
type tasksPage struct {
	rights
	taskList

	Queues  []string
	Here    inspect.Queue // the queue
	Tabs    []stateTab
	Tasks   []taskRow
	Scanned int
	Total   int
	Whole   bool   // the page has all tasks that match
	Newest  bool   // first
	Order   string // "" if it is the usual one of the state
	Turn    template.URL
	First   template.URL // "" on the first page
	Next    template.URL // "" on the last page
	GoOn    bool         // the page is not full: it has scanned as many tasks as one page may
	Chips   []chip
	Clear   template.URL // without filters
	Search  *filterInput // the filter that is always shown
	Fields  []filterInput
	Verbs   []site.Verb
	List    string // the list in forms
	Back    string
	Running int // jobs
}

type stateTab struct {
	State state.Task
	Count int
	Href  template.URL
	Here  bool
}

// chip is a condition that the list has, with the address of the list without it.
type chip struct {
	site.FilterWord

	Without template.URL
}

// filterInput is a field of the form for filters.
type filterInput struct {
	*call.Condition

	ID, Value string
}

// taskRow is a task in a list.
type taskRow struct {
	inspect.Task

	Packed string // its id for forms
	Secret bool   // its arguments are hidden
}

// Code is its call as code; "" if its function is unknown. What is unknown or hidden of the arguments is an ellipsis.
func (t *taskRow) Code() string {
	switch {
	case t.Function == "":
		return ""
	case t.Call == "" || t.Secret || t.Size == 0:
		return inspect.ShortName(inspect.Printable(t.Function)) + "(…)"
	}
	return t.Call
}

// Wrong is what went wrong with the task, on one line; "" if nothing did.
func (t *taskRow) Wrong() string {
	switch {
	case t.Error != "" && t.Reason != "" && t.Reason != state.ReasonFailed:
		return string(t.Reason) + ": " + t.Error
	case t.Reason == state.ReasonCompleted:
		return ""
	}
	return cmp.Or(t.Error, string(t.Reason))
}

// Took is how long the run of a completed task took; 0 if that is unknown.
func (t *taskRow) Took() time.Duration {
	if t.Began.IsZero() {
		return 0
	}
	return t.At.Sub(t.Began)
}

func showTasks(s *shared, q *site.Request) (*page, error) {
	queues, err := s.Queues(q)
	if err != nil {
		return nil, err
	}
	p := &tasksPage{rights: s.rights(q), Queues: names(queues), Running: s.Jobs.Running()}
	if len(queues) == 0 && q.Args.Get("queue") == "" {
		return &page{Title: "Tasks", Template: "tasks-none", Data: p}, nil
	}
	if err := p.choose(q.Args, queues); err != nil {
		return nil, err
	}
	if p.Filter, err = site.ParseFilter(q.Args, p.Hidden); err != nil {
		return nil, err
	}
	// What was chosen stays chosen while the page is open.
	q.Args.Set("queue", p.Queue)
	q.Args.Set("state", p.State.String())
	query := inspect.Query{
		State: p.State, Filter: p.Filter, NewestFirst: p.Newest, Cursor: q.Args.Get("cursor"), Limit: tasksPerPage,
	}
	list, err := findTasks(q, p.Queue, query)
	if errors.Is(err, inspect.ErrCursor) {
		return nil, site.Bad("the address names no page of this list: begin with its first page")
	}
	if err != nil {
		return nil, err
	}
	for i := range list.Tasks {
		p.Tasks = append(p.Tasks, taskRow{list.Tasks[i], packID(list.Tasks[i].ID), p.Hidden})
	}
	p.Scanned, p.Total = list.Scanned, list.Total
	p.GoOn = len(list.Tasks) < tasksPerPage
	p.Whole = query.Cursor == "" && list.Cursor == ""
	p.Verbs = site.VerbsFor(p.State)
	p.address(q.Args, list.Cursor)
	p.filters()
	title := "Tasks of " + inspect.Printable(p.Queue)
	return &page{Title: title, Template: "tasks", Data: p, Still: p.Scanned >= livelyScan}, nil
}

// findTasks returns a page of a list. A filtered one may end before it is full, with a cursor to go on from.
func findTasks(q *site.Request, queue string, query inspect.Query) (found inspect.Page, err error) {
	if query.Filter.IsZero() {
		return q.Ins.Tasks(q.Ctx, queue, query)
	}
	for began := time.Now(); ; {
		query.Limit, query.ScanLimit = tasksPerPage-len(found.Tasks), scanStep
		part, err := q.Ins.Tasks(q.Ctx, queue, query)
		if err != nil {
			return found, err
		}
		found.Tasks = append(found.Tasks, part.Tasks...)
		found.Cursor, found.Total, found.Scanned = part.Cursor, part.Total, found.Scanned+part.Scanned
		if part.Cursor == "" || len(found.Tasks) == tasksPerPage || found.Scanned >= scanMost ||
			time.Since(began) >= scanTime {
			return found, nil
		}
		query.Cursor = part.Cursor
	}
}

// choose finds out which list is meant. Without a queue it is the first one that has tasks in the state, without a
// state the first state in which there are any.
func (p *tasksPage) choose(args url.Values, queues []inspect.Queue) error {
	name, in := args.Get("queue"), args.Get("state")
	states := inspect.States
	if in != "" {
		st, ok := site.StateNamed(in)
		if !ok {
			return site.Bad("the state is not one that tasks are listed by: choose one of the tabs")
		}
		states = []state.Task{st}
	}
	if name != "" {
		if queues = only(queues, name); queues == nil {
			return site.Missing("There is no queue " + inspect.Printable(name) + ". A queue is there as soon as a " +
				"producer has enqueued a task or a worker serves it.")
		}
	}
	p.Here, p.State = queues[0], states[0]
	for _, one := range states {
		if i := slices.IndexFunc(queues, func(q inspect.Queue) bool { return q.Size(one) > 0 }); i >= 0 {
			p.Here, p.State = queues[i], one
			break
		}
	}
	p.Queue = p.Here.Name
	switch args.Get("order") {
	case "newest":
		p.Newest = true
	case "oldest":
	case "":
		p.Newest = newestFirst(p.State)
	default:
		return site.Bad("order: expected newest or oldest")
	}
	return nil
}

// newestFirst reports whether the latest tasks in a state matter most.
func newestFirst(s state.Task) bool {
	return s == state.Archived || s == state.Completed || s == state.Parked
}

// address fills in addresses of other lists and pages.
func (p *tasksPage) address(args url.Values, cursor string) {
	if p.Newest != newestFirst(p.State) {
		p.Order = orderName(p.Newest)
	}
	to := func(change func(url.Values)) template.URL {
		args := p.taskList.address()
		if p.Order != "" {
			args.Set("order", p.Order)
		}
		change(args)
		return template.URL("tasks?" + args.Encode()) //nolint:gosec // encoded
	}
	if args.Get("cursor") != "" {
		p.First = to(func(url.Values) {})
	}
	if cursor != "" {
		p.Next = to(func(a url.Values) { a.Set("cursor", cursor) })
	}
	p.Turn = to(func(a url.Values) {
		a.Del("order")
		if p.Order == "" {
			a.Set("order", orderName(!p.Newest))
		}
	})
	p.Clear = template.URL("tasks?" + url.Values{ //nolint:gosec // encoded
		"queue": {p.Queue}, "state": {p.State.String()},
	}.Encode())
	for _, s := range inspect.States {
		p.Tabs = append(p.Tabs, stateTab{s, p.Here.Size(s), to(func(a url.Values) {
			a.Del("order")
			a.Set("state", s.String())
		}), s == p.State})
	}
	for _, word := range site.FilterWords(&p.Filter, false) { // the user has given them
		p.Chips = append(p.Chips, chip{word, to(func(a url.Values) {
			a[word.Name] = slices.DeleteFunc(slices.Clone(a[word.Name]), func(v string) bool { return v == word.Value })
		})})
	}
	p.List = p.taskList.address().Encode()
	p.Back = string(to(func(a url.Values) {
		if c := args.Get("cursor"); c != "" {
			a.Set("cursor", c)
		}
	}))
}

func orderName(newest bool) string {
	if newest {
		return "newest"
	}
	return "oldest"
}

// filters fills in the form for filters, without those that the user may not have.
func (p *tasksPage) filters() {
	for i := range call.Conditions {
		field := &call.Conditions[i]
		if field.Secret && p.Hidden {
			continue
		}
		texts := field.Get(&p.Filter)
		if len(texts) == 0 {
			texts = []string{""}
		} else if field.Name == "header" {
			texts = append(texts, "") // for another
		}
		for i, text := range texts {
			input := filterInput{field, fmt.Sprintf("f-%s-%d", field.Name, i), text}
			if p.Search == nil && (field.Name == "text" || p.Hidden && field.Name == "function") {
				p.Search = &input
			} else {
				p.Fields = append(p.Fields, input)
			}
		}
	}
}
