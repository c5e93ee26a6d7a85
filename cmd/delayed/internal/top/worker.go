package top

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// workerScreen is one worker with what it has claimed.
type workerScreen struct {
	list[inspect.Task]

	worker  inspect.Worker
	stopped bool
}

const (
	// mostClaims and mostClaimScan bound the claims that are read of a worker on one queue.
	mostClaims    = 100
	mostClaimScan = 1000
	// mostClaimQueues bounds the queues whose claims are read.
	mostClaimQueues = 8
)

func newWorkerScreen(m *model, w *inspect.Worker) *workerScreen {
	type task = inspect.Task
	s := &workerScreen{worker: *w}
	s.m, s.where = m, []string{theTabs[1], fmt.Sprintf("%s %d", w.Host, w.PID)}
	s.actKeys = append(slices.Clone(workerKeys), binding{key: "c", what: "cancel the task", hint: "cancel"})
	s.open = func(t *task) tea.Cmd { return m.open(newTaskScreen(m, t)) }
	s.id = func(t *task) string { return t.Queue + "/" + t.ID + "/" + t.Claimed.String() }
	s.text = func(t *task) string { return t.Queue + " " + t.ID + " " + t.Call }
	s.empty = "It has claimed nothing."
	// A task has no start if it has run for less than about a second, or waits for an executor.
	ran := func(t *task) time.Duration { return m.since(t.Started) }
	s.columns = []column[task]{
		{term.Num("FOR"), func(t *task) term.Cell { return lapse(ran(t), late(ran(t))) }, largest(ran)},
		texts(term.Column{Name: "QUEUE", Drop: 3}, func(t *task) string { return t.Queue }),
		texts(term.Column{Name: "CALL", Flex: true}, callOf, term.Bold),
		amounts(term.Spare("ATTEMPT", 2), func(t *task) int { return t.Attempt }),
		texts(term.Column{Name: "ID", Flex: true, Drop: 1}, func(t *task) string { return t.ID }, term.Dim),
	}
	return s
}

// callOf is a task as a call, or why it cannot be shown.
func callOf(t *inspect.Task) string {
	if t.Call == "" && t.Problem != "" {
		return "(" + t.Problem + ")"
	}
	return t.Call
}

func (s *workerScreen) fetch() func(context.Context) (func(), error) {
	id := s.worker.ID
	var queues []string
	for _, q := range s.worker.Queues {
		queues = append(queues, q.Name)
	}
	return func(ctx context.Context) (func(), error) {
		workers, err := s.m.src.Workers(ctx, queues...)
		if err != nil {
			return nil, err
		}
		i := slices.IndexFunc(workers, func(w inspect.Worker) bool { return w.ID == id })
		if i < 0 {
			return nil, inspect.ErrNotFound
		}
		w := workers[i]
		tasks, err := claimedBy(ctx, s.m.src, &w)
		return func() {
			s.worker, s.stopped = w, false
			s.set(tasks)
		}, err
	}
}

// claimedBy reads what a worker has claimed, and adds the tasks that it reports to run and that are not among the
// claims that were read. On queues whose claims were all read, such a task has just ended.
func claimedBy(ctx context.Context, src source, w *inspect.Worker) (tasks []inspect.Task, err error) {
	type key struct{ queue, id string }
	known, whole, read := map[key]bool{}, map[string]bool{}, 0
	for _, q := range w.Queues {
		if q.Claims == 0 || read == mostClaimQueues {
			continue
		}
		read++
		page, err := src.Tasks(ctx, q.Name, inspect.Query{
			State: state.Active, Filter: inspect.Filter{Worker: w.ID}, Limit: mostClaims, ScanLimit: mostClaimScan,
		})
		if err != nil {
			return nil, err
		}
		for i := range page.Tasks {
			known[key{q.Name, page.Tasks[i].ID}] = true
		}
		tasks = append(tasks, page.Tasks...)
		whole[q.Name] = page.Cursor == ""
	}
	for _, r := range w.Running {
		if known[key{r.Queue, r.ID}] || whole[r.Queue] {
			continue
		}
		t := inspect.Task{Queue: r.Queue, ID: r.ID, State: state.Active, Worker: w.ID, Started: r.Started}
		t.Function, t.Call = r.Function, inspect.ShortName(r.Function)+"(…)"
		tasks = append(tasks, t)
	}
	return tasks, nil
}

func (s *workerScreen) gone() {
	s.stopped = true
	s.set(nil)
}

func (s *workerScreen) draw(c *canvas, left int) {
	w := &s.worker
	condition := term.Condition(w.Condition())
	if s.stopped {
		condition = term.C("gone: it has stopped", term.Red)
	}
	c.field("worker", term.C(w.ID), term.C("  "), condition)
	c.field("queues", term.C(queuesOf(w)))
	c.field("program", term.C(w.Program))
	memory := term.C("unknown", term.Dim)
	if w.Memory > 0 {
		memory = term.C(term.Bytes(w.Memory))
	}
	c.field("claims", claims(w), term.C("  memory ", term.Dim), memory, term.C("  up ", term.Dim),
		lapse(s.m.since(w.Started)), term.C("  delayed ", term.Dim), term.C(w.Version))
	if n := len(w.Running) + w.MoreRunning; n > 0 {
		cells := []term.Cell{term.C(term.Count(n, "task"), term.Green), term.C(" for more than a second", term.Dim)}
		if w.MoreRunning > 0 {
			cells = append(cells,
				term.C("; it does not say which "+term.Number(w.MoreRunning)+" of them are", term.Yellow))
		}
		c.field("running", cells...)
	}
	s.drawRows(c, left)
}

func (s *workerScreen) key(key string) (tea.Cmd, bool) {
	if s.m.orderWorker(key, &s.worker) {
		return nil, true
	}
	if t := s.current(); t != nil && key == "c" {
		return s.m.act(key, func() (selection, error) { return selectionOf(t) })
	}
	return s.list.key(key)
}

// errNoID is the error of actions on a task without an id.
var errNoID = errors.New("its message carries no id, as those of legacy queues do not")

// selectionOf is the selection of one task.
func selectionOf(t *inspect.Task) (selection, error) {
	s := selection{queue: t.Queue, state: t.State, ids: []string{t.ID}, call: callOf(t), task: t}
	if t.ID == "" {
		return s, errNoID
	}
	return s, nil
}
