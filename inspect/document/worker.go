package document

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// Workers is a list of workers.
type Workers struct {
	Workers []Worker `json:"workers"`
}

// Worker is a worker with what it has claimed.
type Worker struct {
	ID    string `json:"id"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Alive bool   `json:"alive"`
	// Condition is dead, else the state, and alive if the worker has published none yet.
	Condition string `json:"condition"`
	Claims    int    `json:"claims"` // on all its queues
	// MemoryBytes is how much of its process is in main memory; 0 if it has not published that.
	MemoryBytes int64         `json:"memory_bytes,omitempty"`
	Queues      []WorkerQueue `json:"queues"`
	Tasks       []Task        `json:"tasks"` // that it has claimed: a page of each queue at most

	// A worker publishes the following a moment after its start.
	State       string     `json:"state,omitempty"`       // running, paused, quiet or stopping
	Version     string     `json:"version,omitempty"`     // of the delayed package
	Program     string     `json:"program,omitempty"`     // version and revision of its program
	StartedAt   *time.Time `json:"started_at,omitempty"`  // by its host's clock, as all times that it publishes
	Concurrency int        `json:"concurrency,omitempty"` // how many tasks it runs at once
	Order       string     `json:"order,omitempty"`       // its queues in order, or with their weights
	Running     []Running  `json:"running,omitempty"`     // for more than a second; of each queue the longest 100
	MoreRunning int        `json:"more_running,omitempty"`
	Longest     *Running   `json:"longest,omitempty"` // of Running
}

// Running is a task that has run for more than a second.
type Running struct {
	Queue     string    `json:"queue"`
	ID        string    `json:"id"`       // empty if it has none
	Function  string    `json:"function"` // its path
	StartedAt time.Time `json:"started_at"`
}

// WorkerQueue is a worker on one of its queues.
type WorkerQueue struct {
	Name         string  `json:"name"`
	AliveSeconds float64 `json:"alive_seconds"`
	Claims       int     `json:"claims"`
}

// ReadWorkers describes workers, and reads what they have claimed: of each queue the first hundred tasks, and only
// those of the worker if there is one.
func ReadWorkers(ctx context.Context, ins *inspect.Inspector, workers []inspect.Worker) (Workers, error) {
	tasks, err := claimed(ctx, ins, workers)
	if err != nil {
		return Workers{}, err
	}
	v := Workers{Workers: []Worker{}}
	for i := range workers {
		v.Workers = append(v.Workers, WorkerOf(&workers[i], tasks[workers[i].ID]))
	}
	return v, nil
}

// WorkerOf describes a worker that has claimed some tasks.
func WorkerOf(w *inspect.Worker, tasks []Task) Worker {
	one := Worker{
		ID: w.ID, Host: w.Host, PID: w.PID, Alive: w.Alive(), Condition: w.Condition(), Claims: w.Claims(),
		MemoryBytes: w.Memory, Tasks: tasks, Version: w.Version, Program: w.Program, StartedAt: Stamp(w.Started),
		Concurrency: w.Concurrency, Order: w.Order, MoreRunning: w.MoreRunning,
	}
	if w.State != state.New {
		one.State = w.State.String()
	}
	for i := range w.Running {
		one.Running = append(one.Running, runningOf(&w.Running[i]))
	}
	if longest := w.Longest(); longest != nil {
		r := runningOf(longest)
		one.Longest = &r
	}
	if one.Tasks == nil {
		one.Tasks = []Task{}
	}
	for _, q := range w.Queues {
		one.Queues = append(one.Queues, WorkerQueue{q.Name, q.Alive.Seconds(), q.Claims})
	}
	return one
}

func runningOf(r *inspect.Running) Running {
	return Running{r.Queue, r.ID, r.Function, r.Started.UTC()}
}

// claimed returns what workers have claimed, by their ids.
func claimed(ctx context.Context, ins *inspect.Inspector, workers []inspect.Worker) (map[string][]Task, error) {
	busy := map[string]bool{}
	for i := range workers {
		for _, q := range workers[i].Queues {
			if q.Claims > 0 {
				busy[q.Name] = true
			}
		}
	}
	tasks := map[string][]Task{}
	for _, name := range slices.Sorted(maps.Keys(busy)) {
		query := inspect.Query{State: state.Active}
		if len(workers) == 1 {
			query.Filter.Worker = workers[0].ID
		}
		page, err := ins.Tasks(ctx, name, query)
		if err != nil {
			return nil, err
		}
		for i := range page.Tasks {
			t := &page.Tasks[i]
			tasks[t.Worker] = append(tasks[t.Worker], TaskOf(t))
		}
	}
	return tasks, nil
}
