package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// Diagnosis is what is wrong with a fleet. The command delayed doctor, delayed top, the dashboard and its API all show
// this one.
type Diagnosis struct {
	At       time.Time // by Redis's clock; zero if there is no queue
	Queues   int       // that were looked at
	Workers  int       // that are alive on them
	Problems []Problem // the worst first
}

// Problem is something that somebody should look at.
type Problem struct {
	Kind     ProblemKind
	Severity Severity
	// Queue, Worker (an id), Function (a path) and Entry (a name) are what it is about; "" if it is not about one.
	Queue, Worker, Function, Entry string
	// Others is how many other queues have the same problem: the least of their names is in Queue.
	Others int
	// Text is what is wrong: a sentence without full stop that goes on behind the name of the queue. It is printable,
	// and has no durations: those follow from Since.
	Text    string
	Since   time.Time // by Redis's clock; zero if that is unknown
	Advice  string    // what to do, without full stop
	Command string    // the command line that does so, or shows more; "" if there is none
}

// Severity is how bad a Problem is.
type Severity string

// The severities.
const (
	SeverityError   Severity = "error"   // tasks do not run, or fail, until somebody does something
	SeverityWarning Severity = "warning" // it may become worse
)

// ProblemKind is what is wrong, for programs.
type ProblemKind string

// The kinds of problems.
const (
	ProblemSetting         ProblemKind = "setting"          // of a Redis server
	ProblemWrongType       ProblemKind = "wrong type"       // another program uses a key of the queue
	ProblemNoWorkers       ProblemKind = "no workers"       // tasks wait, and no worker is alive
	ProblemDeadWorker      ProblemKind = "dead worker"      // a worker has died with tasks
	ProblemParked          ProblemKind = "parked"           // no worker can run some tasks
	ProblemWaiting         ProblemKind = "waiting"          // pending tasks wait too long although workers live
	ProblemFailing         ProblemKind = "failing"          // many runs of a function fail
	ProblemUnknownFunction ProblemKind = "unknown function" // tasks will be parked
	ProblemNoScheduler     ProblemKind = "no scheduler"     // periodic entries are late
	ProblemPaused          ProblemKind = "paused"           // for long, or while tasks wait
	ProblemSuspects        ProblemKind = "suspects"         // tasks have died with workers
	ProblemUnreadable      ProblemKind = "unreadable"       // tasks cannot be read
	ProblemArchive         ProblemKind = "archive"          // archived tasks will be deleted because of their number
	ProblemLost            ProblemKind = "lost claims"      // tasks ran twice
	ProblemVersions        ProblemKind = "versions"         // different versions of workers serve a queue
)

// problemKinds are the kinds in the order in which problems of one severity are shown.
var problemKinds = []ProblemKind{
	ProblemSetting, ProblemWrongType, ProblemNoWorkers, ProblemDeadWorker, ProblemParked, ProblemWaiting,
	ProblemFailing, ProblemUnknownFunction, ProblemNoScheduler, ProblemPaused, ProblemSuspects, ProblemUnreadable,
	ProblemArchive, ProblemLost, ProblemVersions,
}

const (
	longWait    = 30 * time.Second // of the oldest pending task; a warning
	tooLongWait = 5 * time.Minute
	longPause   = time.Hour   // of a queue without tasks
	lateTick    = time.Minute // an entry that is late has no scheduler
	// archiveBound is the default of WorkerConfig.ArchiveMax; the workers' own is not known.
	archiveBound = 10_000
	// deployTime is how long two versions of workers are nothing special.
	deployTime = 15 * time.Minute
	// manyFailed is how many runs of a function must have failed lately if these are half of its runs or more. Of a
	// tenth or more it is twice as many, for a warning.
	manyFailed = 5
	// sampledQueues bounds the queues of which tasks are looked at, those with most tasks, and sampleSize the tasks
	// of each.
	sampledQueues, sampleSize = 20, 100
	// shownFunctions bounds the functions that one problem names.
	shownFunctions = 3
)

// diagnosing is a Diagnosis that is being made.
type diagnosing struct {
	Diagnosis

	ins     *Inspector
	queues  []Queue // without those that cannot be described
	workers []Worker
	stores  []*redisstore.Store // of queues
}

// Diagnose looks for what is wrong with the settings of Redis and with all queues and workers, or with the given queues
// alone. How many calls it takes depends on how many queues and workers fit into one, and not on how many there are; of
// tasks it looks at some, in the queues that have most.
func (ins *Inspector) Diagnose(ctx context.Context, queues ...string) (Diagnosis, error) {
	if err := ins.check(ctx); err != nil {
		return Diagnosis{}, err
	}
	d := &diagnosing{ins: ins, Diagnosis: Diagnosis{Problems: []Problem{}}}
	if err := d.describe(ctx, queues); err != nil {
		return Diagnosis{}, err
	}
	for i := range d.queues {
		d.queue(&d.queues[i])
	}
	d.deadWorkers()
	d.versions()
	for _, look := range []func(context.Context) error{d.failing, d.late, d.parked, d.waiting} {
		if err := look(ctx); err != nil {
			return Diagnosis{}, err
		}
	}
	slices.SortStableFunc(d.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), // "error" < "warning"
			cmp.Compare(slices.Index(problemKinds, a.Kind), slices.Index(problemKinds, b.Kind)),
			cmp.Compare(a.Queue, b.Queue))
	})
	return d.Diagnosis, nil
}

// describe describes all queues, or those of the given names, and their workers.
func (d *diagnosing) describe(ctx context.Context, names []string) (err error) {
	if len(names) == 0 {
		if err = d.settings(ctx); err == nil {
			d.queues, err = d.ins.Queues(ctx)
		}
	}
	for _, name := range names {
		q, failed := d.ins.Queue(ctx, name)
		if redisstore.IsWrongType(failed) {
			q, failed = Queue{Name: name, Err: failed}, nil
		}
		d.queues, err = append(d.queues, q), errors.Join(err, failed)
	}
	if err != nil {
		return err
	}
	d.Queues = len(d.queues)
	d.queues = slices.DeleteFunc(d.queues, func(q Queue) bool {
		if q.Err != nil {
			d.wrongType(&q)
		}
		return q.Err != nil
	})
	for i := range d.queues {
		s, err := d.ins.store(ctx, d.queues[i].Name)
		if err != nil {
			return err
		}
		d.stores = append(d.stores, s)
		if q := &d.queues[i]; q.At.After(d.At) {
			d.At = q.At
		}
	}
	if len(names) > 0 {
		names = names[:0:0]
		for i := range d.queues {
			names = append(names, d.queues[i].Name)
		}
	}
	if len(d.queues) == 0 {
		return nil
	}
	d.workers, err = d.ins.Workers(ctx, names...)
	for i := range d.workers {
		if d.workers[i].Alive() {
			d.Workers++
		}
	}
	return err
}

// settings looks at the settings of Redis.
func (d *diagnosing) settings(ctx context.Context) error {
	warnings, err := d.ins.rdb.Check(ctx)
	for _, e := range joined(err) {
		var s *delayed.SettingError
		if !errors.As(e, &s) {
			return err
		}
		d.add(Problem{
			Kind: ProblemSetting, Severity: SeverityError, Text: Printable(s.Text),
			Advice: fmt.Sprintf("change the setting, or put %q into WorkerConfig.Allow; docs/SERVERS.md", s.Name),
		})
	}
	for _, w := range warnings {
		d.add(Problem{
			Kind: ProblemSetting, Text: Printable(w), Advice: "docs/SERVERS.md has the settings that tasks need",
		})
	}
	return nil
}

// joined returns the errors that were joined; nil for no error.
func joined(err error) []error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// failing finds functions of which many runs have failed lately.
func (d *diagnosing) failing(ctx context.Context) error {
	var stores []*redisstore.Store
	for i := range d.queues {
		q := &d.queues[i]
		midnight := q.At.UTC().Truncate(24 * time.Hour)
		if q.Today.Failed >= manyFailed || q.At.Sub(midnight) < recent { // else too few have
			stores = append(stores, d.stores[i])
		}
	}
	from, _ := redisstore.Grain(Minutes).Truncate(d.At.Add(-recent))
	all, err := redisstore.MetricsEach(ctx, stores, redisstore.Grain(Minutes), from, d.At)
	if err != nil {
		return err
	}
	for i, parts := range all {
		sums := map[string]*failed{}
		for j := range parts {
			p := &parts[j]
			f := sums[p.Function]
			if f == nil {
				f = &failed{queue: stores[i].Name, function: p.Function}
				sums[p.Function] = f
			}
			f.runs += p.Sample.Runs
			if f.failed += p.Sample.Failed; p.Sample.Failed > 0 && (f.since.IsZero() || p.At.Before(f.since)) {
				f.since = p.At
			}
		}
		for _, path := range sortedKeys(sums) {
			d.often(sums[path])
		}
	}
	return nil
}

// late finds periodic entries that should have ticked.
func (d *diagnosing) late(ctx context.Context) error {
	all, err := redisstore.DueTicks(ctx, d.stores, d.At.Add(-lateTick))
	if err != nil {
		return err
	}
	for i, ticks := range all {
		if len(ticks) == 0 {
			continue
		}
		text := "its periodic entry " + Printable(ticks[0].ID) + " should have ticked"
		if n := len(ticks) - 1; n > 0 {
			text = "its periodic entry " + Printable(ticks[0].ID) + " and " + plural(n, "other", "others") +
				" should have ticked"
		}
		d.add(Problem{
			Kind: ProblemNoScheduler, Severity: SeverityError, Queue: d.queues[i].Name, Entry: ticks[0].ID,
			Text: text + ": no scheduler runs", Since: ticks[0].At,
			Advice:  "start a scheduler: WorkerConfig.Schedulers, docs/PERIODIC.md",
			Command: commandOf("cron", "ls", d.queues[i].Name),
		})
	}
	return nil
}

// parked finds queues with parked tasks, and why some of these are.
func (d *diagnosing) parked(ctx context.Context) error {
	looked := d.fullest(state.Parked)
	for i := range d.queues {
		q := &d.queues[i]
		if q.Parked == 0 {
			continue
		}
		p := Problem{
			Kind: ProblemParked, Severity: SeverityError, Queue: q.Name,
			Text: plural(q.Parked, "task is", "tasks are") + " parked because no worker can run " +
				choose(q.Parked, "it", "them"),
			Advice:  "deploy a worker that knows the function and its fields; after seven days they are archived",
			Command: commandOf("tasks", "ls", q.Name, "-s", "parked"),
		}
		if slices.Contains(looked, q) {
			tasks, err := d.sample(ctx, q, state.Parked)
			if err != nil {
				return err
			}
			p.explainParked(tasks)
		}
		d.add(p)
	}
	return nil
}

// waiting finds tasks of functions that no worker knows, and those that cannot be read.
func (d *diagnosing) waiting(ctx context.Context) error {
	states := []state.Task{state.Pending, state.Scheduled, state.Retry, state.Aggregating}
	for _, q := range d.fullest(states...) {
		functions, err := d.ins.Functions(ctx, q.Name)
		if err != nil {
			return err
		}
		known := map[string]bool{}
		for i := range functions {
			for _, path := range append(functions[i].Aliases, functions[i].Path) {
				known[path] = true
			}
		}
		tasks, err := d.sample(ctx, q, states...)
		if err != nil {
			return err
		}
		unknown, unreadable := map[string]int{}, 0
		for i := range tasks {
			switch t := &tasks[i]; {
			case t.Problem != "":
				unreadable++
			case !t.Python && len(functions) > 0 && !known[t.Function]:
				unknown[t.Function]++
			}
		}
		d.unreadable(q, unreadable)
		d.unknown(q, unknown)
	}
	return nil
}

// sample returns the first tasks of a queue in some states.
func (d *diagnosing) sample(ctx context.Context, q *Queue, states ...state.Task) (tasks []Task, err error) {
	for _, s := range states {
		if q.Size(s) == 0 {
			continue
		}
		page, err := d.ins.Tasks(ctx, q.Name, Query{State: s, Limit: sampleSize})
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, page.Tasks...)
	}
	return tasks, nil
}

// fullest returns the queues that hold most tasks in some states.
func (d *diagnosing) fullest(states ...state.Task) (full []*Queue) {
	size := func(q *Queue) (n int) {
		for _, s := range states {
			n += q.Size(s)
		}
		return n
	}
	for i := range d.queues {
		if size(&d.queues[i]) > 0 {
			full = append(full, &d.queues[i])
		}
	}
	slices.SortStableFunc(full, func(a, b *Queue) int { return cmp.Compare(size(b), size(a)) })
	return full[:min(len(full), sampledQueues)]
}

// commandOf returns a command line of the command delayed, for a shell.
func commandOf(words ...string) string {
	for i, w := range words {
		if strings.Trim(w, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:/{}@") != "" {
			words[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
	}
	return Printable("delayed " + strings.Join(words, " "))
}
