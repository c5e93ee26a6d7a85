package inspect

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// Worker is a worker as Redis knows it. What it publishes of itself, from Started on, is missing for a moment after its
// start. Times are those of its host's clock.
type Worker struct {
	ID     string
	Host   string
	PID    int
	Queues []WorkerQueue // that it serves, sorted by name

	Started     time.Time
	Version     string // of the delayed package that it runs; of Python's with its name before it
	Program     string // version and revision of the program, as its linker has noted them
	Concurrency int
	Order       string // its queues in order, or with their weights: "critical=6, mail=3 (weighted)"
	State       state.Worker
	// Memory is how many bytes of its process are in main memory, exact to an eighth or 4 MiB, without the task
	// processes of a Python worker. Where the system does not report it, it is what the Go runtime has, or the most
	// that there ever was of a Python process. 0 is unknown: an older version publishes nothing.
	Memory      int64
	Running     []Running // what has run for more than a second, of each queue the longest 100
	MoreRunning int       // how many more there are
}

// WorkerQueue is a worker on one of its queues.
type WorkerQueue struct {
	Name string
	// Alive is how long the worker counts as alive if it does not renew its heartbeat; 0: it is dead, and a sweeper
	// will give back what it has claimed.
	Alive  time.Duration
	Claims int // tasks that it has claimed: those that run, and those that it has claimed ahead
}

// Alive reports whether the worker is alive on one of its queues.
func (w *Worker) Alive() bool {
	return slices.ContainsFunc(w.Queues, func(q WorkerQueue) bool { return q.Alive > 0 })
}

// Condition returns in a word how the worker is: dead, else its State, and alive if it has published none yet.
func (w *Worker) Condition() string {
	switch {
	case !w.Alive():
		return "dead"
	case w.State == state.New:
		return "alive"
	default:
		return w.State.String()
	}
}

// Claims returns how many tasks the worker has claimed on all its queues: those that run, and those claimed ahead.
func (w *Worker) Claims() (n int) {
	for _, q := range w.Queues {
		n += q.Claims
	}
	return n
}

// Longest returns what has run for the longest time, nil if nothing has run for more than a second.
func (w *Worker) Longest() *Running {
	var longest *Running
	for i := range w.Running {
		if r := &w.Running[i]; longest == nil || r.Started.Before(longest.Started) {
			longest = r
		}
	}
	return longest
}

// Workers describes the workers that serve the given queues, or any queue if none is given, sorted by host, process and
// id. Legacy workers are not among them: they do not make themselves known. Of all queues it leaves out those with a
// key of a wrong type: Queues returns them.
func (ins *Inspector) Workers(ctx context.Context, queues ...string) ([]Worker, error) {
	stores, err := ins.stores(ctx, queues)
	if err != nil {
		return nil, err
	}
	byID := map[string]*Worker{}
	err = gatherWorkers(ctx, stores, byID)
	if len(queues) == 0 && redisstore.IsWrongType(err) {
		clear(byID)
		for i := range stores { // to find those with such a key
			if err = gatherWorkers(ctx, stores[i:i+1], byID); redisstore.IsWrongType(err) {
				err = nil
			}
			if err != nil {
				break
			}
		}
	}
	if err != nil {
		return nil, err
	}
	workers := make([]Worker, 0, len(byID))
	for _, w := range byID {
		slices.SortFunc(w.Queues, func(a, b WorkerQueue) int { return strings.Compare(a.Name, b.Name) })
		workers = append(workers, *w)
	}
	slices.SortFunc(workers, func(a, b Worker) int {
		if c := strings.Compare(a.Host, b.Host); c != 0 {
			return c
		}
		if a.PID != b.PID {
			return a.PID - b.PID
		}
		return strings.Compare(a.ID, b.ID)
	})
	return workers, nil
}

// gatherWorkers adds the workers of queues.
func gatherWorkers(ctx context.Context, stores []*redisstore.Store, byID map[string]*Worker) error {
	ids, err := redisstore.WorkersOf(ctx, stores)
	if err != nil {
		return err
	}
	rosters, err := redisstore.Rosters(ctx, stores, ids, true)
	if err != nil {
		return err
	}
	for i, s := range stores {
		for _, e := range rosters[i] {
			if e.Heartbeat == "" && e.Claims == 0 {
				continue // it has just stopped
			}
			w := byID[e.ID]
			if w == nil {
				w = &Worker{ID: e.ID}
				byID[e.ID] = w
			}
			if e.Heartbeat != "" {
				w.Host, w.PID = hostOf(e.Heartbeat)
			}
			w.Queues = append(w.Queues, WorkerQueue{Name: s.Name, Alive: e.Life, Claims: e.Claims})
			if status := readStatus(e.Status); status != nil {
				w.note(s.Name, status)
			}
		}
	}
	return nil
}

// hostOf reads the value of a heartbeat: host, process id and number of the registration, with colons between.
func hostOf(heartbeat string) (host string, pid int) {
	rest, _ := cutLast(heartbeat, ':')
	host, number := cutLast(rest, ':')
	pid, _ = strconv.Atoi(number)
	return host, pid
}

// Running is a task whose handler has run for more than a second, as its worker last published.
type Running struct {
	Queue    string
	ID       string    // "" if the task has none
	Function string    // path
	Started  time.Time // by the clock of the worker's host
}

// workerStates maps the texts of states to them.
var workerStates = func() map[string]state.Worker {
	m := map[string]state.Worker{}
	for s := state.New; s <= state.Stopped; s++ {
		m[s.String()] = s
	}
	return m
}()

// readStatus reads what a worker has published of what it does; nil: nothing that can be read.
func readStatus(text []byte) *catalog.Status {
	var status catalog.Status
	if len(text) == 0 || json.Unmarshal(text, &status) != nil || status.Version != catalog.Version {
		return nil // a later version wrote it, or another program
	}
	return &status
}

// note adds what a worker has published of itself on a queue.
func (w *Worker) note(queue string, s *catalog.Status) {
	w.Started, w.Version, w.Concurrency, w.Order = time.UnixMilli(s.Started), s.Library, s.Concurrency, s.Queues
	w.State, w.Program, w.Memory = workerStates[s.State], s.Program, max(s.Memory, 0)
	for _, r := range s.Running {
		w.Running = append(w.Running, Running{queue, r.ID, r.Function, time.UnixMilli(r.Started)})
	}
	w.MoreRunning += s.More
}
