//go:build unix

package itest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/state"
)

// array is a queue with tasks in all states, and what is known of each.
type array struct {
	*testing.T
	*rand.Rand
	rdb     *delayed.Store
	ins     *inspect.Inspector
	queue   string
	workers []*arrayWorker
	tasks   map[string]*arrayed // by id
	ids     []string
	last    []func() // makes tasks pending that workers would claim before others

	mu      sync.Mutex
	acts    map[string]string // what the handler of a task does next
	started chan string       // ids of handlers that wait for release
	release chan struct{}
	die     chan struct{} // lets a handler return whose worker is dead
	steps   sync.WaitGroup
}

// arrayWorker is a worker that does one step at a time.
type arrayWorker struct {
	seam.Stepper
	id string
}

// arrayed is what is known of a task.
type arrayed struct {
	in                          state.Task // the list that it is in
	id, function, call          string
	err, reason, worker, group  string
	headers                     map[string]string
	values                      map[string]string // of the arguments, by path
	age                         time.Duration     // when the test began
	attempt, fails, deaths      int
	keepsMessage, keepsAnything bool
}

// The ages of tasks are multiples of arrayAge, and filters ask for times between two of them.
const (
	arrayAge  = 10 * time.Minute
	arrayAges = 6
)

var arrayErrors = []string{"connection refused by SMTP", "no such user", "disk Full", "refused: no such disk"}

// backdated is a source whose producer enqueues in the past.
type backdated struct {
	delayed.Source
	age time.Duration
}

func (b backdated) Now() time.Time  { return time.Now().Add(-b.age) }
func (b backdated) Enqueued(string) {}

// newWorker returns a worker that knows all functions but "jobs.Unknown".
func (a *array) newWorker() *arrayWorker {
	a.Helper()
	w, err := delayed.NewWorker(a.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{a.queue}, Concurrency: 100, HeartbeatLife: time.Hour, MaxRetry: 10,
		Backoff: func(int) time.Duration { return time.Hour },
		Logger:  delayed.SlogLogger(slog.NewTextHandler(io.Discard, nil)),
	})
	if err == nil {
		err = w.Register(
			delayed.Func(func(ctx context.Context, _ int, _ string) error { return a.act(ctx) },
				delayed.Name("example.com/app/mail.Welcome")),
			delayed.Func(func(ctx context.Context, _ int, _ string) error { return a.act(ctx) },
				delayed.Name("example.com/app/mail.NotWelcome")),
			delayed.Func(func(ctx context.Context, _ map[string]any) error { return a.act(ctx) },
				delayed.Name("example.com/jobs.Bill")),
		)
	}
	if err != nil {
		a.Fatal(err)
	}
	s, err := seam.NewStepper(context.Background(), w)
	if err != nil {
		a.Fatal(err)
	}
	return &arrayWorker{s, w.ID()}
}

var arrayActs = map[string]func() error{
	"done":    func() error { return nil },
	"snooze":  func() error { return delayed.Snooze(time.Hour) },
	"drop":    func() error { return delayed.Drop(errors.New(arrayErrors[0])) },
	"discard": func() error { return delayed.Archive(errors.New(arrayErrors[1])) },
}

// act is the handler of all functions.
func (a *array) act(ctx context.Context) error {
	id := delayed.TaskFromContext(ctx).ID()
	a.mu.Lock()
	what := a.acts[id]
	a.mu.Unlock()
	if act, ok := arrayActs[what]; ok {
		return act()
	}
	switch what {
	case "wait":
		a.started <- id
		<-a.release
		return nil
	case "die":
		a.started <- id
		<-a.die
		return nil
	}
	return errors.New(what)
}

// fill enqueues n tasks and brings each into a state of its own.
func (a *array) fill(n int) {
	a.Helper()
	for i := range n {
		a.put(i)
	}
	for _, f := range a.last {
		f()
	}
	a.ids = slices.Sorted(maps.Keys(a.tasks))
}

// end lets all handlers return.
func (a *array) end() {
	close(a.release)
	a.steps.Wait()
	for _, w := range a.workers {
		if err := w.Close(); err != nil {
			a.Error(err)
		}
	}
}

func (a *array) must(err error) {
	if err != nil {
		a.Helper()
		a.Fatal(err)
	}
}

// put enqueues a task and brings it into a state.
func (a *array) put(i int) {
	a.Helper()
	t := &arrayed{headers: map[string]string{}, values: map[string]string{}, attempt: 1}
	call := a.call(t)
	how := a.IntN(12)
	opts := a.options(t, i, how == 11)
	switch how {
	case 11:
		call = delayed.NewGoTask("example.com/jobs.Gather", []int{7, i})
		t.function, t.call = "example.com/jobs.Gather", fmt.Sprintf("jobs.Gather(7, %d)", i)
		t.values = map[string]string{"0": "7", "1": strconv.Itoa(i)}
	case 4:
		call = delayed.NewGoTask("example.com/jobs.Unknown", 7)
		t.function, t.call, t.values = "example.com/jobs.Unknown", "jobs.Unknown(7)", map[string]string{"0": "7"}
	case 5:
		call = delayed.NewPyTask("tasks.mail:send", []any{7}, map[string]any{"to": "ann"})
		t.function, t.call = "tasks.mail:send", `tasks.mail:send(7, to="ann")`
		t.values = map[string]string{"0": "7", "to": "ann"}
	}
	w := a.workers[a.IntN(2)]
	enqueue := func(more ...delayed.Option) {
		a.enqueue(t, call, append(opts, more...)...)
	}
	switch how {
	case 0: // pending, or retried by hand
		t.fails = a.IntN(3)
		if t.fails == 0 {
			a.last = append(a.last, func() { enqueue(); t.in = state.Pending })
			return
		}
		enqueue()
		a.fail(w, t)
		a.last = append(a.last, func() { a.rerun(t) })
	case 1:
		enqueue(delayed.In(time.Hour + time.Duration(a.IntN(1000))*time.Second))
		t.in = state.Scheduled
	case 2:
		enqueue()
		t.fails = a.IntN(2)
		a.fail(w, t)
		a.step(w, t, "snooze", "snoozed")
		t.in, t.reason, t.worker, t.err = state.Scheduled, "snoozed", w.id, ""
	case 3:
		enqueue()
		for range a.IntN(3) {
			a.kill(t)
		}
		t.fails = 1 + a.IntN(3)
		a.fail(w, t)
	case 4, 5: // no worker knows them
		enqueue()
		a.step(w, t, "", "parked")
		t.in, t.reason, t.worker = state.Parked, "unknown function", w.id
		if how == 5 {
			t.reason = "python"
		}
	case 6:
		enqueue()
		t.fails = a.IntN(3)
		a.fail(w, t)
		a.step(w, t, "discard", "archived")
		t.in, t.reason, t.worker, t.err = state.Archived, "failed", w.id, arrayErrors[1]
	case 7: // archived by hand
		enqueue(delayed.In(time.Hour))
		a.do(t, inspect.Archive())
		t.in, t.reason = state.Archived, "by hand"
	case 8:
		enqueue()
		t.fails = a.IntN(2)
		a.fail(w, t)
		a.step(w, t, "done", "done")
		a.ended(t, "completed", w.id, "")
	case 9:
		enqueue()
		a.step(w, t, "drop", "done")
		a.ended(t, "dropped", w.id, arrayErrors[0])
	case 10:
		enqueue(delayed.In(time.Hour))
		a.do(t, inspect.Cancel())
		a.ended(t, "canceled", "", "")
	case 11:
		t.group = fmt.Sprint("g", 1+a.IntN(2))
		t.in = state.Aggregating
		if a.IntN(2) == 0 {
			t.in = state.Scheduled
			enqueue(delayed.Group(t.group), delayed.In(2*time.Hour))
		} else {
			enqueue(delayed.Group(t.group))
		}
	}
	if how == 3 && a.IntN(2) == 0 { // one more runs
		t := &arrayed{headers: map[string]string{}, values: map[string]string{}, attempt: 1}
		a.enqueue(t, a.call(t), a.options(t, i+1000, false)...)
		a.hold(w, t)
	}
}

// hold lets a task run until the test ends.
func (a *array) hold(w *arrayWorker, t *arrayed) {
	a.Helper()
	a.acts[t.id] = "wait"
	a.steps.Go(func() {
		if _, _, err := w.Step(context.Background()); err != nil {
			a.Error(err)
		}
	})
	if id := <-a.started; id != t.id {
		a.Fatalf("expected that %s starts, found %s", t.id, id)
	}
	t.in, t.worker = state.Active, w.id
}

// kill lets a worker die while it runs a task, which is pending then.
func (a *array) kill(t *arrayed) {
	a.Helper()
	w := a.newWorker()
	a.acts[t.id] = "die"
	stepped := make(chan error, 1)
	go func() {
		_, _, err := w.Step(context.Background())
		stepped <- err
	}()
	<-a.started
	parts, err := seam.Handle(a.rdb)
	a.must(err)
	src, _ := parts.Source.(delayed.Source)
	key := parts.Prefix + a.queue + "_worker:" + w.id
	conn, err := src.Conn(context.Background(), key)
	a.must(err)
	defer conn.Close()
	_, err = conn.Do("DEL", key)
	a.must(err)
	a.must(a.workers[0].Sweep(context.Background()))
	a.die <- struct{}{}
	a.must(<-stepped)
	t.deaths++
}

// call draws a function and its arguments.
func (a *array) call(t *arrayed) *delayed.Task {
	n, text := a.IntN(9), []string{"en", "de", `say "no"`}[a.IntN(3)]
	switch a.IntN(3) {
	case 0:
		t.function = "example.com/jobs.Bill"
		t.call = fmt.Sprintf("jobs.Bill({name: %q, sum: %d})", text, n)
		t.values = map[string]string{
			"0.name": text, "0.sum": strconv.Itoa(n), "0": fmt.Sprintf("{name: %q, sum: %d}", text, n),
		}
		return delayed.NewGoTask(t.function, map[string]any{"name": text, "sum": n})
	case 1:
		t.function = "example.com/app/mail.Welcome"
	default:
		t.function = "example.com/app/mail.NotWelcome"
	}
	t.call = fmt.Sprintf("%s(%d, %q)", t.function[len("example.com/app/"):], n, text)
	t.values = map[string]string{"0": strconv.Itoa(n), "1": text}
	return delayed.NewGoTask(t.function, n, text)
}

// options draws options that filters can see. A call that is to join a group takes only headers.
func (a *array) options(t *arrayed, i int, group bool) (opts []delayed.Option) {
	t.age = time.Duration(a.IntN(arrayAges)) * arrayAge
	for _, name := range []string{"tenant", "lang"} {
		if a.IntN(2) == 0 {
			t.headers[name] = []string{"acme", "other", ""}[a.IntN(3)]
			opts = append(opts, delayed.Header(name, t.headers[name]))
		}
	}
	if group {
		return opts
	}
	if a.IntN(2) == 0 {
		opts = append(opts, delayed.TaskID(fmt.Sprint("task-", i)))
	}
	switch a.IntN(3) {
	case 0:
		t.keepsMessage, t.keepsAnything = true, true
		opts = append(opts, delayed.Retention(time.Hour))
	case 1:
		t.keepsAnything = true
		opts = append(opts, delayed.KeepResult(time.Hour))
	}
	return opts
}

// enqueue enqueues a task as old as it is to be.
func (a *array) enqueue(t *arrayed, call *delayed.Task, opts ...delayed.Option) {
	a.Helper()
	parts, err := seam.Handle(a.rdb)
	a.must(err)
	src, _ := parts.Source.(delayed.Source)
	producer := delayed.FromSource(backdated{src, t.age}).WithPrefix(parts.Prefix)
	ref, err := delayed.NewQueue(a.queue, producer).With(opts...).Enqueue(context.Background(), call)
	a.must(err)
	t.id = ref.ID()
	a.tasks[t.id] = t
}

// step lets a worker run a task, which must be the only one that is pending.
func (a *array) step(w *arrayWorker, t *arrayed, act, outcome string) {
	a.Helper()
	if t.in == state.Retry {
		a.rerun(t)
	}
	a.acts[t.id] = act
	r, _, err := w.Step(context.Background())
	if err != nil || r == nil || r.Outcome != outcome {
		a.Fatalf("task %s: expected that it is %s, found %+v, %v", t.id, outcome, r, err)
	}
}

// fail lets a task fail as often as it is to.
func (a *array) fail(w *arrayWorker, t *arrayed) {
	a.Helper()
	for range t.fails {
		text := arrayErrors[a.IntN(len(arrayErrors))]
		a.step(w, t, text, "retry")
		t.in, t.reason, t.worker, t.err = state.Retry, "failed", w.id, text
		t.attempt++
	}
}

// rerun makes a retrying task pending. Nothing tells then how it has failed, but its failures.
func (a *array) rerun(t *arrayed) {
	a.Helper()
	a.do(t, inspect.RunNow())
	t.in, t.reason, t.worker, t.err = state.Pending, "", "", ""
}

func (a *array) do(t *arrayed, action inspect.Action) {
	a.Helper()
	report, err := a.ins.Do(context.Background(), a.queue, action, t.id)
	if err != nil || report.Done != 1 {
		a.Fatalf("%v of %s: %+v, %v", action, t.id, report, err)
	}
}

// ended notes that a task is over, and what is kept of it.
func (a *array) ended(t *arrayed, reason, worker, text string) {
	t.in, t.reason, t.worker, t.err = state.Completed, reason, worker, text
	switch {
	case !t.keepsAnything:
		delete(a.tasks, t.id)
	case !t.keepsMessage:
		t.headers, t.values = nil, nil
		name, _, _ := strings.Cut(t.call, "(")
		t.call = name + "(…)"
	}
}
