//go:build unix

package itest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/seam"
)

// TestModel performs random operations on a queue and after each compares Redis with a model of the queue: every task
// is in exactly one place, with the expected time and order, and so is every lock. It runs on the embedded server,
// whose clock the test sets. The workers are real ones without their loops: they do one step at a time, and may have
// several tasks in hand when they die. For longer runs, set -rapid.checks, 5 by default here and 100 with -chaos, and
// -rapid.steps, 80.
func TestModel(t *testing.T) {
	for name, value := range map[string]string{"rapid.checks": inChaos("3", "100"), "rapid.steps": "80"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			if err := f.Value.Set(value); err != nil {
				t.Fatal(err)
			}
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(t, rt)
		rt.Repeat(map[string]func(*rapid.T){
			"":         m.check,
			"enqueue":  m.enqueue,
			"work":     m.work,
			"work2":    m.work, // more names make an operation more frequent
			"work3":    m.work,
			"finish2":  m.finish,
			"gather":   m.gather,
			"claim":    m.claim,
			"finish":   m.finish,
			"advance":  m.advance,
			"look":     m.look,
			"kill":     m.kill,
			"sweep":    m.sweep,
			"plague":   m.plague,
			"plague2":  m.plague,
			"crowd":    m.crowd,
			"crowd2":   m.crowd,
			"stop":     m.stop,
			"pause":    m.pause,
			"rerun":    m.rerun,
			"cancel":   m.cancel,
			"beat":     m.beat,
			"tick":     m.tick,
			"run now":  m.runNow,
			"delete":   m.remove,
			"enqueue2": m.enqueue,
		})
	})
}

// machine is a queue, its workers, and the model of both.
type machine struct {
	*model
	t       *rapid.T
	tb      testing.TB
	rdb     *delayed.Store
	q       *delayed.Queue
	conn    redis.Conn
	ticker  *delayed.Scheduler
	workers []*modelWorker
	values  int // arguments so far
}

// modelWorker is a worker that does one step at a time. It may run several tasks at once.
type modelWorker struct {
	seam.Stepper
	id        string
	executors int
	knowsLate bool
	dead      bool // it has no heartbeat
	started   chan modelStart
	parked    []string    // ids of parked tasks that it has found at its last look
	runs      []*modelRun // the tasks that it runs, in the order in which it has claimed them
	marked    *modelTask  // the task that Redis knows as the worker's only one; nil: none
	lone      *modelTask  // the suspect that runs alone; nil: none
}

// modelRun is a task that a worker runs.
type modelRun struct {
	w       *modelWorker
	task    *modelTask
	reply   chan error
	stepped chan modelStep
	lost    bool // whether the task belongs to another worker now
	// suspicion is how many deaths of the task counted when it was claimed.
	suspicion int
}

// GoString is what rapid shows of a worker.
func (w *modelWorker) GoString() string { return "worker " + w.id[:4] }

// GoString is what rapid shows of a run.
func (r *modelRun) GoString() string { return r.w.GoString() + " runs " + r.task.id }

// loses reports whether the worker is dead and was not swept.
func (w *modelWorker) loses() bool {
	return w.dead && slices.ContainsFunc(w.runs, func(r *modelRun) bool { return !r.lost })
}

// over forgets a run that has ended.
func (r *modelRun) over() {
	w := r.w
	w.runs = slices.DeleteFunc(w.runs, func(other *modelRun) bool { return other == r })
	w.ended(r.task)
}

type modelStart struct {
	id     string
	values []int
	reply  chan error
}

type modelStep struct {
	run  *seam.Run
	wait time.Duration
	err  error
}

const modelQueue = "model"

// stepLimit is the longest time that a step may take.
const stepLimit = 20 * time.Second

// The functions of the model, as producers see them.
var (
	modelWork   = delayed.Func(func(context.Context, int) error { return nil }, delayed.Name("model.work"))
	modelLate   = delayed.Func(func(context.Context, int) error { return nil }, delayed.Name("model.late"))
	modelGather = delayed.Func(func(context.Context, ...int) error { return nil }, delayed.Name("model.gather"),
		delayed.Gather(delayed.GatherPolicy{Grace: ms(modelGrace), MaxDelay: ms(modelLongest), MaxSize: modelGroup}))
)

// rapidTB lets helpers of tests report to rapid.
type rapidTB struct {
	testing.TB
	rt *rapid.T
}

func (t rapidTB) Helper()                           {}
func (t rapidTB) Cleanup(f func())                  { t.rt.Cleanup(f) }
func (t rapidTB) Context() context.Context          { return t.rt.Context() }
func (t rapidTB) Errorf(format string, args ...any) { t.rt.Errorf(format, args...) }
func (t rapidTB) Fatalf(format string, args ...any) { t.rt.Fatalf(format, args...) }

func newMachine(t *testing.T, rt *rapid.T) *machine {
	t.Helper()
	tb := rapidTB{t, rt}
	rdb := delayedtest.NewRedis(tb)
	m := &machine{t: rt, tb: tb, rdb: rdb, q: delayed.NewQueue(modelQueue, rdb)}
	src, _, _ := seam.Locate(m.q)
	conn, err := src.(delayed.Source).Conn(t.Context(), modelQueue) //nolint:errcheck // it was made of one
	if err != nil {
		t.Fatal(err)
	}
	m.conn = conn
	rt.Cleanup(func() { conn.Close() })
	m.model = newModel(delayedtest.Now(tb, m.q).UnixMilli())
	m.ticks = m.now/1000*1000 + modelEvery
	for name, overlap := range map[string]delayed.Overlap{"each": delayed.OverlapAllow, "alone": delayed.OverlapSkip} {
		m.must(m.q.Periodic().Set(t.Context(), delayed.Entry{
			Name: name, Spec: "@every 10m", From: time.UnixMilli(m.ticks), CatchUp: 100, Overlap: overlap,
			Task: delayed.Call(modelWork, 0),
		}))
	}
	if m.ticker, err = delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: modelQueue}); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		m.workers = append(m.workers, m.newWorker(i == 0, drawExecutors(rt)))
	}
	rt.Cleanup(m.end)
	return m
}

// end makes all handlers return. After a failure one may have returned already while the model still has its task.
func (m *machine) end() {
	for _, w := range m.workers {
		for _, r := range w.runs {
			select {
			case r.reply <- nil:
				m.finished(r)
			case <-r.stepped:
			case <-time.After(stepLimit):
				m.t.Errorf("%#v: the handler takes no answer", r)
			}
		}
	}
}

func (m *machine) newWorker(knowsLate bool, executors int) *modelWorker {
	w := &modelWorker{knowsLate: knowsLate, executors: executors, started: make(chan modelStart)}
	worker, err := delayed.NewWorker(m.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{modelQueue}, Concurrency: executors, HeartbeatLife: 10 * 365 * 24 * time.Hour,
		MaxRetry: modelRetries,
		Backoff:  func(int) time.Duration { return ms(modelBackoff) },
		Logger:   delayed.SlogLogger(slog.NewTextHandler(io.Discard, nil)),
	})
	m.must(err)
	w.id = worker.ID()
	// A handler returns when the model says so, also after its context has ended: so tasks end in a known order.
	handle := func(ctx context.Context, values ...int) error {
		reply := make(chan error)
		w.started <- modelStart{delayed.TaskFromContext(ctx).ID(), values, reply}
		err := <-reply
		switch {
		case errors.Is(err, errPanic):
			panic(err)
		case errors.Is(err, errContext):
			<-ctx.Done()
			return context.Cause(ctx)
		}
		return err
	}
	one := func(ctx context.Context, n int) error { return handle(ctx, n) }
	m.must(worker.Register(delayed.Func(one, delayed.Name("model.work")),
		delayed.Func(handle, delayed.Name("model.gather"))))
	if knowsLate {
		m.must(worker.Register(delayed.Func(one, delayed.Name("model.late"))))
	}
	w.Stepper, err = seam.NewStepper(context.Background(), worker)
	m.must(err)
	w.parked = m.model.look(knowsLate)
	return w
}

var (
	errPanic   = errors.New("the handler panics")
	errContext = errors.New("the handler returns why its context has ended")
)

func (m *machine) must(err error) {
	if err != nil {
		m.t.Fatalf("%v", err)
	}
}

// step lets a worker claim a task. It returns the task that was started, or the result if the step ended at once.
func (m *machine) step(w *modelWorker) (started *modelStart, stepped chan modelStep, ended modelStep) {
	stepped = make(chan modelStep, 1)
	go func() {
		run, wait, err := w.Step(context.Background())
		stepped <- modelStep{run, wait, err}
	}()
	select {
	case s := <-w.started:
		return &s, stepped, modelStep{}
	case s := <-stepped:
		return nil, stepped, s
	case <-time.After(stepLimit):
		m.t.Fatalf("a step does not come to an end")
		panic("unreachable")
	}
}

// answer makes a handler return err, and waits for the end of its step.
func (m *machine) answer(r *modelRun, err error) modelStep {
	select {
	case r.reply <- err:
	case <-time.After(stepLimit):
		m.t.Fatalf("%#v: the handler takes no answer", r)
	}
	return m.finished(r)
}

// finished waits for the end of a step.
func (m *machine) finished(r *modelRun) modelStep {
	select {
	case s := <-r.stepped:
		return s
	case <-time.After(stepLimit):
		m.t.Fatalf("%#v: the step does not come to an end", r)
		panic("unreachable")
	}
}

// check compares Redis with the model.
func (m *machine) check(*rapid.T) {
	redistest.CheckInvariants(m.tb, m.conn, modelQueue, redistest.Invariants{})
	filed, err := seam.List(context.Background(), m.q)
	m.must(err)
	places := map[string][]string{}
	var pending []string
	for _, f := range filed {
		at := int64(0)
		switch f.State {
		case "completed":
			if at = f.At.UnixMilli(); at <= m.now {
				continue // it counts as deleted
			}
		case "scheduled", "retry":
			at = f.At.UnixMilli()
		case "pending", "canceled":
			pending = append(pending, f.ID)
		}
		places[f.ID] = append(places[f.ID], place(f.State, at))
	}
	for id, t := range m.tasks {
		want := []string{place(t.state, t.due)}
		switch {
		case t.state == "pending" && m.revoked[id]:
			want[0] = place("canceled", 0)
		case t.state == "gone" || t.state == "completed" && t.due <= m.now:
			want = nil
		case t.state != "scheduled" && t.state != "retry" && t.state != "completed":
			want[0] = place(t.state, 0)
		}
		if !slices.Equal(places[id], want) {
			m.t.Errorf("task %s: expected in %q, found in %q", id, want, places[id])
		}
		delete(places, id)
	}
	for id, found := range places {
		m.t.Errorf("task %s is in %q, expected nowhere", id, found)
	}
	if want := slices.Concat(m.pending, m.apart); !slices.Equal(pending, want) {
		m.t.Errorf("expected pending %q, found %q", want, pending)
	}
	m.checkLocks()
}

func place(state string, at int64) string {
	if at == 0 {
		return state
	}
	return fmt.Sprintf("%s until %d", state, at)
}

// checkLocks compares the locks with those of the model, and looks for locks that nobody would free.
func (m *machine) checkLocks() {
	state := redistest.Dump(m.tb, m.conn, modelQueue)
	locks, _ := state["_locks"].(redistest.Hash)
	want := redistest.Hash{}
	for name, e := range m.locks {
		want[name] = fmt.Sprint(e.until, " ", e.value)
		owner := m.tasks[e.value]
		if !strings.HasPrefix(name, "#") && e.until > m.now && (owner == nil || owner.over()) {
			m.t.Errorf("lock %s is held by task %s, which is over", name, e.value)
		}
	}
	if diff := redistest.Diff(redistest.State{"_locks": locks}, redistest.State{"_locks": want}); diff != "" &&
		len(locks)+len(want) > 0 {
		m.t.Errorf("locks at %d: %s", m.now, diff)
	}
}
