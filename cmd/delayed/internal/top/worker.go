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

	m      *model
	worker inspect.Worker
	gone   bool
}

// workerData is what a workerScreen reads.
type workerData struct {
	worker *inspect.Worker
	tasks  []inspect.Task
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
	s := &workerScreen{m: m, worker: *w}
	s.id = func(t *task) string { return t.Queue + "/" + t.ID + "/" + t.Claimed.String() }
	s.text = func(t *task) string { return t.Queue + " " + t.ID + " " + t.Call }
	s.empty = "It has claimed nothing."
	s.columns = []column[task]{
		{number("FOR"), func(t *task) term.Cell { return lapse(s.ran(t), late(s.ran(t))) }, largest(s.ran)},
		{
			term.Column{Name: "QUEUE", Drop: 3},
			func(t *task) term.Cell { return term.C(t.Queue) },
			smallest(func(t *task) string { return t.Queue }),
		},
		{
			term.Column{Name: "CALL", Flex: true},
			func(t *task) term.Cell { return term.C(callOf(t), term.Bold) },
			smallest(func(t *task) string { return t.Call }),
		},
		{
			spare("ATTEMPT", 2), func(t *task) term.Cell { return amount(t.Attempt) },
			largest(func(t *task) int { return t.Attempt }),
		},
		{
			term.Column{Name: "ID", Flex: true, Drop: 1},
			func(t *task) term.Cell { return term.C(t.ID, term.Dim) },
			smallest(func(t *task) string { return t.ID }),
		},
	}
	return s
}

// ran is how long a task runs; 0 if that is less than about a second, or it waits for an executor.
func (s *workerScreen) ran(t *inspect.Task) time.Duration {
	if t.Started.IsZero() {
		return 0
	}
	return max(s.m.current().at.Sub(t.Started), 0)
}

// callOf is a task as a call, or why it cannot be shown.
func callOf(t *inspect.Task) string {
	if t.Call == "" && t.Problem != "" {
		return "(" + t.Problem + ")"
	}
	return t.Call
}

func (s *workerScreen) path() []string {
	return []string{theTabs[1], fmt.Sprintf("%s %d", s.worker.Host, s.worker.PID)}
}

func (s *workerScreen) filter() string { return s.list.filter }

func (s *workerScreen) setFilter(text string) (tea.Cmd, error) {
	s.list.filter = text
	s.arrange()
	return nil, nil
}

func (s *workerScreen) fetch(src source) func(context.Context) (any, error) {
	id := s.worker.ID
	var queues []string
	for _, q := range s.worker.Queues {
		queues = append(queues, q.Name)
	}
	return func(ctx context.Context) (any, error) {
		workers, err := src.Workers(ctx, queues...)
		if err != nil {
			return nil, err
		}
		d := workerData{}
		for i := range workers {
			if workers[i].ID == id {
				d.worker = &workers[i]
			}
		}
		if d.worker == nil {
			return d, nil
		}
		read, whole := 0, map[string]bool{}
		for _, q := range d.worker.Queues {
			if q.Claims == 0 || read == mostClaimQueues {
				continue
			}
			read++
			page, err := src.Tasks(ctx, q.Name, inspect.Query{
				State: state.Active, Filter: inspect.Filter{Worker: id}, Limit: mostClaims, ScanLimit: mostClaimScan,
			})
			if err != nil {
				return nil, err
			}
			d.tasks = append(d.tasks, page.Tasks...)
			whole[q.Name] = page.Cursor == ""
		}
		d.addRunning(whole)
		return d, nil
	}
}

// addRunning adds the tasks that the worker says it runs and that are not among the claims that were read. On queues of
// which all claims were read, the whole ones, such a task has just ended.
func (d *workerData) addRunning(whole map[string]bool) {
	type key struct{ queue, id string }
	known := map[key]bool{}
	for i := range d.tasks {
		known[key{d.tasks[i].Queue, d.tasks[i].ID}] = true
	}
	for _, r := range d.worker.Running {
		if known[key{r.Queue, r.ID}] || whole[r.Queue] {
			continue
		}
		t := inspect.Task{Queue: r.Queue, ID: r.ID, State: state.Active, Worker: d.worker.ID, Started: r.Started}
		t.Function, t.Call = r.Function, inspect.ShortName(r.Function)+"(…)"
		d.tasks = append(d.tasks, t)
	}
}

func (s *workerScreen) take(data any) {
	d, _ := data.(workerData)
	if s.gone = d.worker == nil; !s.gone {
		s.worker = *d.worker
	}
	s.set(d.tasks)
}

func (s *workerScreen) draw(c *canvas, left int) {
	w := &s.worker
	field := func(name string, cells ...term.Cell) {
		if cells[0].Text != "" {
			c.say(append([]term.Cell{term.C(" "+padded(name, 10), term.Dim)}, cells...)...)
		}
	}
	stateCell := workerState(w)
	if s.gone {
		stateCell = term.C("gone: it has stopped", term.Red)
	}
	field("worker", term.C(w.ID), term.C("  "), stateCell)
	field("queues", term.C(queuesOf(w)))
	field("program", term.C(w.Program))
	up := s.m.current().at.Sub(w.Started)
	if w.Started.IsZero() {
		up = 0
	}
	memory := term.C("unknown", term.Dim)
	if w.Memory > 0 {
		memory = term.C(term.Bytes(w.Memory))
	}
	field("claims", claims(w), term.C("  memory ", term.Dim), memory, term.C("  up ", term.Dim), lapse(up),
		term.C("  delayed ", term.Dim), term.C(w.Version))
	if n := len(w.Running) + w.MoreRunning; n > 0 {
		cells := []term.Cell{term.C(count(n, "task"), term.Green), term.C(" for more than a second", term.Dim)}
		if w.MoreRunning > 0 {
			cells = append(cells,
				term.C("; it does not say which "+term.Number(w.MoreRunning)+" of them are", term.Yellow))
		}
		field("running", cells...)
	}
	s.list.draw(c, left, s.enter)
}

func (s *workerScreen) enter() tea.Cmd {
	if t := s.current(); t != nil {
		return s.m.open(newTaskScreen(s.m, t))
	}
	return nil
}

func (s *workerScreen) key(key string) (tea.Cmd, bool) {
	if s.moveKey(key) || s.sortKey(key) {
		return nil, true
	}
	if s.m.orderWorker(key, &s.worker) {
		return nil, true
	}
	t := s.current()
	if t == nil {
		return nil, false
	}
	switch key {
	case "enter":
		return s.enter(), true
	case "c":
		return s.m.act(key, func() (selection, error) { return selectionOf(t) })
	}
	return nil, false
}

// errNoID says that nothing can be done to a task.
var errNoID = errors.New("its message carries no id, as those of legacy queues do not")

// selectionOf is the selection of one task.
func selectionOf(t *inspect.Task) (selection, error) {
	s := selection{queue: t.Queue, state: t.State, ids: []string{t.ID}, call: callOf(t), task: t}
	if t.ID == "" {
		return s, errNoID
	}
	return s, nil
}

func (s *workerScreen) keys() []binding {
	return slices.Concat(entering, workerKeys(), []binding{
		{key: "c", what: "cancel the task", hint: "cancel"},
	}, sorting)
}
