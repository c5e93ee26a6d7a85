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
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Worker is a worker as Redis knows it. What it says of itself, from Started on, is missing for a moment after its
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
	// processes of a Python worker. Where the system does not tell, it is what the Go runtime has, or the most that
	// there ever was of a Python process. 0 is unknown: an older version tells nothing.
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

// Condition says in a word how the worker is: dead, else its State, and alive if it has told none yet.
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
// key of a wrong type: Queues tells of them.
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

// Function is a function that workers of a queue run.
type Function struct {
	Queue      string
	Path       string
	Aliases    []string    // other paths that tasks may carry
	Parameters []Parameter // without receiver and context
	Variadic   bool        // the last of Parameters is the slice of a variadic parameter
	Optional   int         // how many of the last Parameters a task may lack
	Result     string      // type of the result as it is written in the worker's language; "" for none
	Workers    []string    // ids of those that run it

	listed *catalog.Function // as it was published, with the types there
	types  map[string]*wire.Shape
}

// Parameter is one parameter of a function.
type Parameter struct {
	Name string // "" if it is unknown, as those of Go functions are
	Type string // as it is written in the worker's language
	// Shape is how tasks hold its values; of a variadic parameter, those of the slice.
	Shape *Shape
}

// Signature returns the function as it is declared: "mail.Welcome(int, string) error" without the error.
func (f *Function) Signature() string { return Printable(f.declared().Signature()) }

// TypeOf returns the type of a parameter as it is declared: "...string" of a variadic one.
func (f *Function) TypeOf(i int) string { return f.declared().TypeOf(i) }

// IsNamed reports whether a name means the function: it is the path, an alias, or the end of one behind a slash, dot or
// colon, such as mail.Welcome.
func (f *Function) IsNamed(name string) bool {
	means := func(path string) bool { return isNamed(path, name) }
	return means(f.Path) || slices.ContainsFunc(f.Aliases, means)
}

// declared returns what tells the declaration.
func (f *Function) declared() *catalog.Function {
	d := &catalog.Function{Path: f.Path, Variadic: f.Variadic}
	for _, p := range f.Parameters {
		d.Params = append(d.Params, catalog.Parameter{Name: p.Name, Value: catalog.Value{Go: p.Type}})
	}
	if f.Result != "" {
		d.Result = &catalog.Value{Go: f.Result}
	}
	return d
}

// Functions describes the functions that workers of the given queues have published, of all queues if none is given.
// They are sorted by queue and path. Two versions of one function, as there are during a deploy, are two Functions.
func (ins *Inspector) Functions(ctx context.Context, queues ...string) ([]Function, error) {
	stores, err := ins.stores(ctx, queues)
	if err != nil {
		return nil, err
	}
	var all []Function
	for _, s := range stores {
		of, err := functionsOf(ctx, s)
		if len(queues) == 0 && redisstore.IsWrongType(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	return all, nil
}

// functionsOf describes the functions of one queue.
func functionsOf(ctx context.Context, s *redisstore.Store) ([]Function, error) {
	workers, err := s.Workers(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(workers)
	versions := map[string]int{} // a version of a function, as JSON, to its place
	var all []Function
	for _, w := range workers {
		listing, err := s.FunctionsOf(ctx, w)
		if err != nil {
			return nil, err
		}
		list := catalog.ParseListing(listing)
		if list == nil {
			continue
		}
		types := shapes{list.Types, map[string]*Shape{}}
		for i := range list.Functions {
			f, key := functionOf(s.Name, &list.Functions[i], &types)
			place, known := versions[key]
			if !known {
				place = len(all)
				versions[key] = place
				all = append(all, f)
			}
			all[place].Workers = append(all[place].Workers, w)
		}
	}
	slices.SortStableFunc(all, func(a, b Function) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

// functionOf describes a published function, and returns a text that tells it from other versions of it.
func functionOf(queue string, f *catalog.Function, types *shapes) (fn Function, key string) {
	fn = Function{
		Queue: queue, Path: f.Path, Aliases: f.Aliases, Variadic: f.Variadic, Optional: f.Optional,
		listed: f, types: types.types,
	}
	var b strings.Builder
	published, _ := json.Marshal(f) //nolint:errchkjson // it was JSON
	b.Write(published)
	var seen []*Shape
	for _, p := range f.Params {
		shape := types.of(p.Type)
		shape.text(&b, &seen)
		fn.Parameters = append(fn.Parameters, Parameter{Name: p.Name, Type: p.Go, Shape: shape})
	}
	if f.Result != nil {
		fn.Result = f.Result.Go
	}
	return fn, b.String()
}
