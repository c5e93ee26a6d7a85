package page

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/format"
	"github.com/godelayed/delayed/web/internal/site"
)

const (
	// findTime bounds looking for one task, for which whole lists may have to be read.
	findTime = 5 * time.Second
	// livelyList is how many pending tasks a page may look through and still be made anew all the time.
	livelyList = 5000
	nearEnd    = 500 // tasks at each end of a long queue
)

// fact is a name and a value.
type fact struct {
	Name, Value string
	At          time.Time // in place of Value
}

// taskPage is one task.
type taskPage struct {
	rights
	taskRow

	Signed    *inspect.Function // as workers have published it; nil if they have not
	Params    []node
	Named     []node // keyword arguments
	HeaderSet []fact
	Settings  []fact // options in words
	Events    []Happening
	Outcome   *node  // the result
	Entry     string // the periodic entry whose lock it has
	Reasons   string // its reason in words
	Verbs     []site.Verb
	Queues    []string
	Editable  bool
	Back      string
}

func showTask(s *shared, q *site.Request) (*page, error) {
	queue, id := q.Args.Get("queue"), q.Args.Get("id")
	queues, err := s.Queues(q)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(queues, func(q inspect.Queue) bool { return q.Name == queue })
	if at < 0 || id == "" {
		return goneTask(s, q, at >= 0, false), nil
	}
	ctx, stop := context.WithTimeout(q.Ctx, findTime)
	defer stop()
	t, near, err := findTask(ctx, q, &queues[at], id)
	// Deadlines of connections end up to a moment before the context.
	late := q.Ctx.Err() == nil && (ctx.Err() != nil || errors.Is(err, context.DeadlineExceeded))
	if errors.Is(err, inspect.ErrNotFound) || late && err != nil {
		return goneTask(s, q, true, late), nil
	}
	if err != nil {
		return nil, err
	}
	p := &taskPage{
		rights: s.rights(q), Back: string(link("task", "queue", queue, "id", id)), Verbs: site.VerbsFor(t.State),
		Reasons: reasonOf(t.Reason), Queues: names(queues),
	}
	p.taskRow = taskRow{t, packID(t.ID), p.Hidden}
	if p.Signed, _, err = s.published(q, &t); err != nil {
		return nil, err
	}
	p.unfold()
	p.Events = Timeline(&t, queues[at].At)
	p.Settings = settings(&t.Options)
	if name, ok := strings.CutPrefix(t.Options.Lock, "p:"); ok {
		p.Entry = name
	}
	p.Editable = p.Admin && canEdit(&t)
	title := cmp.Or(inspect.ShortName(inspect.Printable(t.Function)), "Task")
	scans := t.State == state.Pending || t.State == state.Active || t.State == state.Aggregating
	return &page{
		Title: title, Template: "task", Data: p, Still: scans && !near && queues[at].Pending > livelyList,
	}, nil
}

// findTask finds a task. In a long queue it looks at both ends first, where the tasks are that people look at; near
// reports that the task was there.
func findTask(
	ctx context.Context, q *site.Request, queue *inspect.Queue, id string,
) (t inspect.Task, near bool, err error) {
	if queue.Pending > livelyList {
		for _, newest := range []bool{false, true} {
			end, err := q.Ins.Tasks(ctx, queue.Name, inspect.Query{
				State: state.Pending, Filter: inspect.Filter{ID: id}, NewestFirst: newest, ScanLimit: nearEnd,
			})
			if err != nil {
				return t, false, err
			}
			if i := slices.IndexFunc(end.Tasks, func(t inspect.Task) bool { return t.ID == id }); i >= 0 {
				return end.Tasks[i], true, nil
			}
		}
	}
	t, err = q.Ins.Task(ctx, queue.Name, id)
	return t, false, err
}

// ListState is the state whose list has the task.
func (p *taskPage) ListState() string {
	if p.State == state.Dropped || p.State == state.Canceled {
		return state.Completed.String()
	}
	return p.State.String()
}

// canEdit reports whether the arguments of a task can be changed.
func canEdit(t *inspect.Task) bool {
	switch t.State {
	case state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived:
		return t.Problem == "" && t.Function != "" && t.ID != "" && t.Size > 0
	default:
		return false
	}
}

// published returns the function of a task as workers of its queue have published it, or why it is unknown: they
// have not, or know several versions of it.
func (s *shared) published(q *site.Request, t *inspect.Task) (fn *inspect.Function, unknown, err error) {
	all, err := s.functions(q)
	if err != nil {
		return nil, nil, err
	}
	var own []inspect.Function
	for i := range all {
		if all[i].Queue == t.Queue && carries(&all[i], t.Function) {
			own = append(own, all[i])
		}
	}
	if fn, unknown = call.Published(own, t); unknown != nil {
		fn = nil
	}
	return fn, unknown, nil
}

// unfold fills in arguments, headers and the result.
func (p *taskPage) unfold() {
	if p.Hidden {
		return
	}
	w := &treeWriter{maxNodes}
	var params []inspect.Parameter
	if p.Signed != nil {
		params = p.Signed.Parameters
	}
	for i, v := range p.Args {
		key, typ, shape := strconv.Itoa(i), "", (*inspect.Shape)(nil)
		if i < len(params) {
			key, typ, shape = cmp.Or(params[i].Name, key), params[i].Type, params[i].Shape
		}
		p.Params = append(p.Params, w.tree(key, v, shape, typ, 0))
	}
	for _, k := range slices.Sorted(maps.Keys(p.Kwargs)) {
		typ, shape := "", (*inspect.Shape)(nil)
		if i := slices.IndexFunc(params, func(a inspect.Parameter) bool { return a.Name == k }); i >= 0 {
			typ, shape = params[i].Type, params[i].Shape
		}
		p.Named = append(p.Named, w.tree(k, p.Kwargs[k], shape, typ, 0))
	}
	for _, k := range slices.Sorted(maps.Keys(p.Headers)) {
		p.HeaderSet = append(p.HeaderSet, fact{Name: k, Value: p.Headers[k]})
	}
	if p.Result != nil {
		n := w.tree("result", p.Result, nil, "", 0)
		p.Outcome = &n
	}
}

// settings writes options in words.
func settings(o *inspect.Options) (facts []fact) {
	add := func(name, value string) { facts = append(facts, fact{Name: name, Value: value}) }
	span := func(name string, d time.Duration) {
		if d > 0 {
			add(name, format.Duration(d))
		}
	}
	if o.MaxRetry != nil {
		add("Retries, at most", format.Number(*o.MaxRetry))
	}
	span("Timeout of a run", o.Timeout)
	for _, at := range []fact{
		{Name: "Deadline", At: o.Deadline},
		{Name: "Too late to start from", At: o.Expiry},
		{Name: "Tried again until", At: o.RetryUntil},
	} {
		if !at.At.IsZero() {
			facts = append(facts, at)
		}
	}
	if len(o.RetryDelays) > 0 {
		var delays []string
		for _, d := range o.RetryDelays {
			delays = append(delays, format.Duration(d))
		}
		add("Waits before retries", strings.Join(delays, ", "))
	}
	span("Longest wait before a retry", o.RetryCap)
	span("Kept after its end", o.Retention)
	span("Result kept for", o.KeepResult)
	switch kind, _, _ := strings.Cut(o.Lock, ":"); kind {
	case "u":
		add("Lock", "unique by its arguments")
	case "k":
		add("Lock", "unique by the key "+o.Lock[2:])
	case "p", "":
	default:
		add("Lock", "its id is taken until it ends")
	}
	return facts
}

// gonePage is for a task that is not found.
type gonePage struct {
	rights

	Queue, ID string
	Known     bool // there is such a queue
	Late      bool // not all lists were searched
}

func goneTask(s *shared, q *site.Request, known, late bool) *page {
	data := gonePage{rights: s.rights(q), Queue: q.Args.Get("queue"), ID: q.Args.Get("id"), Known: known, Late: late}
	return &page{Title: "No such task", Template: "task-gone", Data: data, Status: http.StatusNotFound}
}

// doTask does a verb to one task.
func doTask(s *shared, q *site.Request) (outcome, error) {
	queue := q.Args.Get("queue")
	ids, err := unpackIDs(q.Args["id"])
	if err != nil {
		return outcome{}, err
	}
	if len(ids) != 1 || queue == "" {
		return outcome{}, site.Bad("the form does not say which task of which queue it is about")
	}
	v := verbNamed(q.Args, "")
	out, err := s.doVerb(q, queue, v, ids)
	switch {
	case err != nil || out.Bad:
	case v.Name == "delete", v.Name == "cancel" && q.Args.Get("state") != state.Active.String():
		out.To = string(link("tasks", "queue", queue, "state", q.Args.Get("state")))
	case v.Name == "move":
		out.To = string(link("task", "queue", strings.TrimSpace(q.Args.Get("to")), "id", ids[0]))
	}
	return out, err
}
