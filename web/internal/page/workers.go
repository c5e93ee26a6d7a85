package page

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/site"
)

// workersPage lists workers.
type workersPage struct {
	rights
	choice

	Rows                         []workerRow
	Pager                        pager
	Alive, Dead, Executors, Busy int
}

// workerRow is a worker with what follows from what it reports.
type workerRow struct {
	*inspect.Worker

	Shown  string // its state
	Claims int
	Ahead  int // claims beyond its executors: at least so many tasks are claimed ahead
	Dead   []deadQueue
	Orders []inspect.Order // that make sense
}

// deadQueue is a queue on which a worker is dead, but which still knows it.
type deadQueue struct {
	Name   string
	Claims int
	Alone  bool // no other worker is alive there
}

// workerRows is how many workers a page lists.
const workerRows = 200

func showWorkers(s *shared, q *site.Request) (*page, error) {
	c, err := s.choose(q)
	if err != nil {
		return nil, err
	}
	workers, err := s.workers(q)
	if err != nil {
		return nil, err
	}
	p := workersPage{rights: s.rights(q), choice: c}
	for i := range workers {
		if c.Queue != "" && !knows(&workers[i], c.Queue) {
			continue
		}
		row := newWorkerRow(&workers[i], workers)
		if workers[i].Alive() {
			p.Alive++
			p.Executors += workers[i].Concurrency
			p.Busy += min(row.Claims, max(workers[i].Concurrency, 1))
		} else {
			p.Dead++
		}
		p.Rows = append(p.Rows, row)
	}
	p.Rows, p.Pager = cut(q, p.Rows, workerRows)
	return &page{Title: "Workers", Template: "workers", Data: &p}, nil
}

func newWorkerRow(w *inspect.Worker, all []inspect.Worker) workerRow {
	r := workerRow{Worker: w, Shown: w.Condition(), Claims: w.Claims()}
	for _, q := range w.Queues {
		if q.Alive > 0 {
			continue
		}
		d := deadQueue{Name: q.Name, Claims: q.Claims, Alone: true}
		for i := range all {
			d.Alone = d.Alone && !all[i].Serves(q.Name)
		}
		r.Dead = append(r.Dead, d)
	}
	if w.Concurrency > 0 {
		r.Ahead = max(r.Claims-w.Concurrency, 0)
	}
	switch {
	case !w.Alive():
	case w.State == state.Paused:
		r.Orders = []inspect.Order{inspect.OrderResume, inspect.OrderQuiet, inspect.OrderStop}
	case w.State == state.Quiet:
		r.Orders = []inspect.Order{inspect.OrderStop}
	case w.State < state.Stopping:
		r.Orders = []inspect.Order{inspect.OrderPause, inspect.OrderQuiet, inspect.OrderStop}
	}
	return r
}

// Name is what people call the worker: its host and process.
func (r *workerRow) Name() string {
	if r.Host == "" {
		return r.ID
	}
	return fmt.Sprintf("%s:%d", r.Host, r.PID)
}

// Self is the worker, for templates that show a part of it.
func (r *workerRow) Self() *workerRow { return r }

// Others is how many others have run for more than a second.
func (r *workerRow) Others() int { return len(r.Running) - 1 + r.MoreRunning }

// Library names the package that the worker runs, and its version.
func (r *workerRow) Library() string {
	if r.Version == "" || strings.HasPrefix(r.Version, "godelayed") {
		return r.Version // Python's has the name of its package before it
	}
	return "delayed " + r.Version
}

// workerPage is one worker.
type workerPage struct {
	rights
	workerRow

	Weights   map[string]int // of its queues, that somebody has set for all workers
	Tasks     []inspect.Task // that it has
	MoreTasks bool           // there are others, or may be
	Functions []inspect.Function
}

// The bounds of what is read of the tasks that a worker has, on each of its queues.
const (
	heldShown   = 100
	heldScanned = 2000
)

func showWorker(s *shared, q *site.Request) (*page, error) {
	id := q.Args.Get("id")
	workers, err := s.workers(q)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(workers, func(w inspect.Worker) bool { return w.ID == id })
	if at < 0 {
		return nil, site.Missing("there is no worker with the id " + id + ": it has stopped, or died long ago")
	}
	p := workerPage{
		rights: s.rights(q), workerRow: newWorkerRow(&workers[at], workers), Weights: map[string]int{},
	}
	queues, err := s.Queues(q)
	if err != nil {
		return nil, err
	}
	for i := range queues {
		if queues[i].Weight > 0 && knows(p.Worker, queues[i].Name) {
			p.Weights[queues[i].Name] = queues[i].Weight
		}
	}
	if err := p.readTasks(q); err != nil {
		return nil, err
	}
	functions, err := s.functions(q)
	if err != nil {
		return nil, err
	}
	for i := range functions {
		if slices.Contains(functions[i].Workers, id) {
			p.Functions = append(p.Functions, functions[i])
		}
	}
	return &page{Title: "Worker " + p.Name(), Template: "worker", Data: &p}, nil
}

// readTasks reads the tasks that the worker has claimed. It reports itself which have run for more than a second.
func (p *workerPage) readTasks(q *site.Request) error {
	seen := map[string]bool{}
	for _, wq := range p.Queues {
		if wq.Claims == 0 {
			continue
		}
		list, err := q.Ins.Tasks(q.Ctx, wq.Name, inspect.Query{
			State: state.Active, Filter: inspect.Filter{Worker: p.ID}, Limit: heldShown, ScanLimit: heldScanned,
		})
		if err != nil {
			return err
		}
		p.MoreTasks = p.MoreTasks || list.Cursor != ""
		for i := range list.Tasks {
			seen[wq.Name+" "+list.Tasks[i].ID] = true
		}
		p.Tasks = append(p.Tasks, list.Tasks...)
	}
	for _, r := range p.Running { // those that were not among the tasks that were scanned
		if r.ID != "" && !seen[r.Queue+" "+r.ID] && p.MoreTasks {
			t := inspect.Task{Queue: r.Queue, ID: r.ID, Started: r.Started}
			t.Function = r.Function
			p.Tasks = append(p.Tasks, t)
		}
	}
	notYet := func(t *inspect.Task) int { // one that has not run for a second comes last
		if t.Started.IsZero() {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(p.Tasks, func(a, b inspect.Task) int {
		return cmp.Or(notYet(&a)-notYet(&b), a.Started.Compare(b.Started), strings.Compare(a.ID, b.ID))
	})
	return nil
}
