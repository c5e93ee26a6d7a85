package delayed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// deaf has a worker hear no signals.
func deaf(w *Worker) {
	w.engine.Cfg.Signals = redisstore.NewSignals(refusingSource{})
}

// refusingSource has no connections.
type refusingSource struct{}

func (refusingSource) Conn(context.Context, string) (redis.Conn, error) {
	return nil, errors.New("no connections here")
}
func (refusingSource) Slot(string) int { return 0 }
func (refusingSource) Close() error    { return nil }

// TestPause pauses and resumes a queue, of whose tasks one runs and some are claimed ahead.
func TestPause(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			started, release := make(chan int, 10), make(chan struct{})
			f := b.fn("f", func(n int) { started <- n; <-release })
			cfg := b.config()
			cfg.Concurrency, cfg.Prefetch = 1, 5
			if hears {
				cfg.HeartbeatLife = time.Hour // which alone would be too late
			}
			for i := range 5 {
				b.delay(f, i)
			}
			w, err := NewWorker(b.rdb, cfg)
			b.Must(err)
			b.Must(w.Register(f))
			if !hears {
				deaf(w)
			}
			s := b.start(w)
			if n := await(b, "the first task", started); n != 0 {
				t.Errorf("task %d is first", n)
			}
			b.Until("tasks are claimed ahead", func() bool { return b.Size("") == 0 })
			b.Must(b.q.Pause(t.Context()))
			if paused, err := b.q.Paused(t.Context()); err != nil || !paused {
				t.Errorf("Paused: %v, %v", paused, err)
			}
			b.Until("they are given back", func() bool { return b.Size("") == 4 && b.Size("_processing:"+w.ID()) == 1 })
			release <- struct{}{} // the running one ends
			b.Until("it is acknowledged", func() bool { return b.Size("_processing:"+w.ID()) == 0 })
			// What comes meanwhile waits, and what is due becomes pending.
			b.delay(f, 5)
			b.delayWith(b.q.With(In(time.Millisecond)), f, 6)
			b.Until("all are pending", func() bool { return b.Size("") == 6 && b.Size("_noti") >= 1 })
			// A worker that starts now heeds it too.
			other := b.work(cfg, f)
			b.delay(f, 7)
			b.Until("the others know it", func() bool { return b.Size("") == 7 })
			if len(started) > 0 {
				t.Errorf("task %d was started while the queue was paused", <-started)
			}
			b.Must(b.q.Resume(t.Context()))
			if paused, err := b.q.Paused(t.Context()); err != nil || paused {
				t.Errorf("Paused: %v, %v", paused, err)
			}
			close(release)
			for range 7 {
				await(b, "the others", started)
			}
			b.Idle()
			s.mustStop()
			other.mustStop()
			if n := b.counters()["processed"]; n != 8 {
				t.Errorf("%d processed, expected 8", n)
			}
		})
	}
}

// TestPauseOfOneQueue lets the worker go on with another one.
func TestPauseOfOneQueue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := NewQueue(b.Name+".other", b.rdb)
	ran := make(chan string, 10)
	f := b.fn("f", func(s string) { ran <- s })
	cfg := b.config()
	cfg.Queues = Strict{b.Name, other.Name()}
	b.Must(b.q.Pause(t.Context()))
	b.work(cfg, f)
	b.delay(f, "paused")
	for range 20 {
		b.delayWith(other, f, "other")
		if got := await(b, "a task of the other queue", ran); got != "other" {
			t.Fatalf("found %q", got)
		}
	}
	b.Must(b.q.Resume(t.Context()))
	if got := await(b, "the task that was held back", ran); got != "paused" {
		t.Errorf("found %q", got)
	}
}

// TestPausedWorkerIsIdle counts what a worker asks whose only queue is paused and has tasks.
func TestPausedWorkerIsIdle(t *testing.T) {
	t.Parallel()
	b := signalBench(t)
	f := b.fn("f", func() {})
	cfg := b.config()
	cfg.HeartbeatLife, cfg.NoSweeper = 15*time.Second, true
	w := b.work(cfg, f)
	b.Must(b.q.Pause(t.Context()))
	b.Until("the worker knows", w.engine.Lanes[0].QueuePaused)
	b.delay(f)
	b.delay(f)
	before, start := b.Server.CommandStats(t), time.Now()
	<-time.After(2 * time.Second) // what is looked for is that nothing happens
	diff := b.Server.CommandStats(t).Since(before)
	// Some were under way; the others come at fixed times.
	if n, most := diff["evalsha"]+diff["blpop"], 15+5*int64(time.Since(start)/time.Second); n > most {
		t.Errorf("%d calls, expected at most %d: %v", n, most, diff)
	}
	b.Must(b.q.Resume(t.Context()))
	b.Idle()
}

// TestRestart stops the workers that serve the queue, after their tasks, and no later one.
func TestRestart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started, release := make(chan int, 2), make(chan struct{})
	var done atomic.Int64
	f := b.fn("f", func(n int) { started <- n; <-release; done.Add(1) })
	cfg := b.config()
	cfg.Concurrency = 1
	run := func(hears bool) (*Worker, chan error) {
		w, err := NewWorker(b.rdb, cfg)
		b.Must(err)
		b.Must(w.Register(f))
		if !hears {
			deaf(w)
		}
		result := make(chan error, 1)
		go func() { result <- w.Run(t.Context()) }()
		b.Until("it is connected",
			func() bool { return w.Status().Connected && w.engine.Lanes[0].Control.Version.Load() >= 0 })
		return w, result
	}
	b.Must(b.q.Restart(t.Context())) // before all of them
	one, oneOver := run(true)
	two, twoOver := run(false)
	b.delay(f, 1)
	await(b, "the task", started)
	b.Must(b.q.Restart(t.Context()))
	b.Until("both stop", func() bool {
		return one.Status().StopReason == "restart" && two.Status().StopReason == "restart"
	})
	three, threeOver := run(true)
	close(release)
	for _, over := range []chan error{oneOver, twoOver} {
		if err := await(b, "the end of Run", over); err != nil {
			t.Errorf("Run: %v", err)
		}
	}
	if done.Load() != 1 {
		t.Error("the running task was not finished")
	}
	b.delay(f, 2)
	await(b, "a task on the new worker", started)
	if reason := three.Status().StopReason; reason != "" {
		t.Errorf("the new worker stops: %s", reason)
	}
	b.Must(b.q.Worker(three.ID()).Stop(t.Context()))
	if err := await(b, "the end of Run", threeOver); err != nil || three.Status().StopReason != "order" {
		t.Errorf("Run: %v, reason %q", err, three.Status().StopReason)
	}
	if fields := b.Hash("_control"); fields["worker:"+three.ID()] != "" {
		t.Errorf("the order outlives the worker: %v", fields)
	}
	if err := b.q.Worker(three.ID()).Pause(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "no living worker") {
		t.Errorf("an order to a dead worker: %v", err)
	}
}

// TestRestartBeforeTheFirstLook: a worker is told to restart as soon as it serves the queue, also if it hears of it
// only later.
func TestRestartBeforeTheFirstLook(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Must(b.q.Restart(t.Context())) // not for this worker
	w, err := NewWorker(b.rdb, b.config())
	b.Must(err)
	lc := &w.engine.Lanes[0].Control
	lc.Looking.Lock()
	s := b.start(w)
	told := redistest.Time(t, b.Conn)
	b.Until("it is later", func() bool { return redistest.Time(t, b.Conn) > told })
	b.Must(b.q.Restart(t.Context()))
	lc.Looking.Unlock()
	b.Until("it stops", func() bool { return w.Status().StopReason == "restart" })
	s.mustStop()
}

// TestWorkerOrders pauses one of two workers from elsewhere.
func TestWorkerOrders(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			cfg := b.config()
			if hears {
				cfg.HeartbeatLife = time.Hour
			}
			w, err := NewWorker(b.rdb, cfg)
			b.Must(err)
			if !hears {
				deaf(w)
			}
			b.start(w)
			other := b.work(b.config())
			control := b.q.Worker(w.ID())
			for _, step := range []struct {
				do   func(context.Context) error
				want WorkerState
			}{
				{control.Pause, WorkerPaused},
				{control.Resume, WorkerRunning},
				{control.Pause, WorkerPaused},
				{control.Quiet, WorkerQuiet},
			} {
				b.Must(step.do(t.Context()))
				b.Until(step.want.String(), func() bool { return w.Status().State == step.want })
			}
			if state := other.Status().State; state != WorkerRunning {
				t.Errorf("the other worker is %v", state)
			}
		})
	}
}

func TestSetWeight(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	heavy, light := b.q, NewQueue(b.Name+".light", b.rdb)
	cfg := b.config()
	cfg.Queues = Weighted{heavy.Name(): 1, light.Name(): 999}
	w := b.work(cfg)
	b.Must(heavy.SetWeight(t.Context(), 500))
	b.Until("the worker knows the weight", func() bool { return w.engine.Lanes[0].Control.Weight.Load() == 500 })
	b.Must(heavy.SetWeight(t.Context(), 0))
	b.Until("the worker knows that there is none", func() bool { return w.engine.Lanes[0].Control.Weight.Load() == 0 })
	for _, n := range []int{-1, 1001} {
		if err := heavy.SetWeight(t.Context(), n); !errors.Is(err, ErrArguments) ||
			!strings.Contains(err.Error(), "expected 1 to 1000, or 0") {
			t.Errorf("SetWeight(%d): %v", n, err)
		}
	}
}

// TestReweigh counts who comes first.
func TestReweigh(t *testing.T) {
	t.Parallel()
	p, err := Weighted{"a": 1, "b": 999}.plan()
	if err != nil {
		t.Fatal(err)
	}
	first := func(weights ...int) (a int) {
		p.Reweigh(func(i int) int { return weights[i] })
		order := make([]int, 2)
		for range 1000 {
			p.Arrange(order)
			if order[0] == 0 {
				a++
			}
		}
		return a
	}
	if n := first(0, 0); n > 50 {
		t.Errorf("a of weight 1 beside 999 was first %d times of 1,000", n)
	}
	if n := first(1000, 1); n < 950 {
		t.Errorf("a of weight 1,000 beside 1 was first %d times of 1,000", n)
	}
	if n := first(1000, 1000); n < 350 || n > 650 {
		t.Errorf("a of the same weight was first %d times of 1,000", n)
	}
	if n := first(0, 0); n > 50 {
		t.Errorf("a, as configured again, was first %d times of 1,000", n)
	}
	strict, err := Strict{"a", "b"}.plan()
	if err != nil {
		t.Fatal(err)
	}
	strict.Reweigh(func(int) int { return 7 })
	if strict.Weights != nil {
		t.Error("a strict order has weights")
	}
}

func TestFleet(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	closed, err := Dial(b.Server.URL())
	b.Must(err)
	closed.Close()
	fleet := Fleet{NewQueue(b.Name+".x", closed), b.q, NewQueue(b.Name+".y", closed)}
	for name, do := range map[string]func(context.Context) error{
		"Pause": fleet.Pause, "Restart": fleet.Restart,
		"Resume": fleet.Resume,
	} {
		err := do(t.Context())
		if !errors.Is(err, ErrClosed) || !strings.Contains(err.Error(), b.Name+".x") ||
			!strings.Contains(err.Error(), b.Name+".y") || strings.Contains(err.Error(), fmt.Sprintf("%q", b.Name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := Fleet{b.q, NewQueue(b.Name+".z", b.rdb)}
	b.Must(good.Pause(t.Context()))
	for _, q := range good {
		if paused, err := q.Paused(t.Context()); err != nil || !paused {
			t.Errorf("%s: %v, %v", q.Name(), paused, err)
		}
	}
	b.Must(good.Resume(t.Context()))
	b.Must(Fleet(nil).Restart(t.Context()))
	if err := (Fleet{nil, b.q}).Pause(t.Context()); !errors.Is(err, ErrArguments) {
		t.Errorf("a nil queue: %v", err)
	}
	if paused, err := b.q.Paused(t.Context()); err != nil || !paused {
		t.Errorf("behind a nil queue: %v, %v", paused, err)
	}
}
