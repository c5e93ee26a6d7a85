package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// delayDied enqueues a call that was claimed when that many workers died.
func (b *bench) delayDied(deaths int, f *Function, args ...any) {
	b.T.Helper()
	task := Call(f, args...)
	task.msg.Extend()
	task.msg.Meta.Deaths, task.msg.Meta.DiedAt = deaths, time.Now().UnixMilli()
	if _, err := b.q.Enqueue(b.T.Context(), task); err != nil {
		b.T.Fatal(err)
	}
}

// workPatiently starts a worker that waits for the given time for its other tasks to end.
func (b *bench) workPatiently(patience time.Duration, f *Function) *started {
	b.T.Helper()
	w, err := NewWorker(b.rdb, b.config())
	b.Must(err)
	b.Must(w.Register([]*Function{f}, nil))
	w.fetcher.Patience = patience
	return b.start(w)
}

func TestSuspectsHeld(t *testing.T) {
	for executors, want := range map[int][]int{
		1:   {1, 1, 1, 1},
		4:   {4, 4, 1, 1},
		10:  {10, 10, 2, 1},
		50:  {50, 50, 12, 3, 1},
		100: {100, 100, 25, 6, 1, 1},
	} {
		for deaths, n := range want {
			if got := lane.SuspectsHeld(executors, deaths); got != n {
				t.Errorf("%d executors hold %d tasks of %d deaths, expected %d", executors, got, deaths, n)
			}
		}
	}
}

// The more deaths tasks have shared, the fewer of them run at a time; tasks with one death run like any other.
func TestSuspectsRunAsTheirDeathsAllow(t *testing.T) {
	t.Parallel()
	for deaths, most := range []int{10, 10, 2, 1} {
		b := newBench(t)
		var now, ran atomic.Int64
		var mu sync.Mutex
		worst := 0
		f := b.fn("f", func(int) {
			n := now.Add(1)
			mu.Lock()
			worst = max(worst, int(n))
			mu.Unlock()
			<-time.After(2 * time.Millisecond) // the task's work
			now.Add(-1)
			ran.Add(1)
		})
		for i := range 30 {
			b.delayDied(deaths, f, i)
		}
		cfg := b.config()
		cfg.Concurrency, cfg.Prefetch = 10, -1
		w := b.work(cfg, f)
		b.Until("all have run", func() bool { return ran.Load() == 30 && b.counters()["processed"] == 30 })
		if err := w.stop(); err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		n := worst
		mu.Unlock()
		if n > most || most > 1 && n == 1 {
			t.Errorf("%d tasks of %d deaths ran at once, expected at most %d", n, deaths, most)
		}
		b.Check(redistest.Invariants{Idle: true})
	}
}

// A task that has shared many deaths runs when its worker has no other task, and is marked so in Redis before it
// starts.
func TestLoneTask(t *testing.T) {
	b := newBench(t)
	var mu sync.Mutex
	var order []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, s)
	}
	entered, leave := make(chan string, 10), make(chan struct{})
	f := b.fn("f", func(s string) {
		note("+" + s)
		entered <- s
		<-leave
		note("-" + s)
	})
	w := b.workPatiently(time.Hour, f)
	b.delay(f, "busy")
	await(b, "the busy one", entered)
	b.delayDied(9, f, "lone")
	b.Until("it is in hand", func() bool { return w.exec.LoneTask() != nil })
	for range 2 { // after the second the fetcher has decided once about it at least
		w.exec.WakeFetcher()
		b.Until("the fetcher has looked", func() bool { return len(w.exec.Changed) == 0 })
	}
	if n := startedOrReady(w.exec); n != 1 {
		t.Errorf("%d tasks run or may start, expected that the busy one is alone", n)
	}
	b.delay(f, "fresh")
	leave <- struct{}{}
	if s := await(b, "the lone task", entered); s != "lone" {
		t.Fatalf("%s came first", s)
	}
	b.Until("Redis knows that it is alone", func() bool {
		h := b.Hash("_processing:" + w.ID())
		_, ok := h[b.Hash("_claims:" + w.ID())[redisstore.MarkAlone]]
		return ok && len(h) == 1
	})
	leave <- struct{}{}
	await(b, "the fresh one", entered)
	leave <- struct{}{}
	b.Idle()
	if want := []string{"+busy", "-busy", "+lone", "-lone", "+fresh", "-fresh"}; !slices.Equal(order, want) {
		t.Errorf("expected %q, found %q", want, order)
	}
}

// startedOrReady returns how many tasks run or may start at any moment.
func startedOrReady(e *exec.Executors) int {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Busy + len(e.Ready)
}

// A suspect whose worker has no other task is marked as alone, until another one comes. That starts only after the mark
// is removed.
func TestSuspectIsAloneUntilAnotherComes(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan string, 10), make(chan struct{})
	var w *started
	alone := func() bool {
		_, ok := b.Hash("_claims:" + w.ID())[redisstore.MarkAlone]
		return ok
	}
	var beside atomic.Bool
	f := b.fn("f", func(s string) {
		if s == "fresh" {
			beside.Store(w.receiver.Alone.Load() != nil)
		}
		entered <- s
		<-leave
	})
	w = b.work(b.config(), f)
	b.delayDied(1, f, "suspect")
	await(b, "the suspect", entered)
	if !alone() {
		t.Error("Redis does not know that it is alone")
	}
	b.delay(f, "fresh")
	await(b, "the fresh one", entered)
	if alone() || beside.Load() {
		t.Error("the suspect is still noted as alone")
	}
	close(leave)
	b.Idle()
}

// setAside puts a task into the list of suspects without a notification.
func (b *bench) setAside(f *Function, args ...any) {
	b.T.Helper()
	task := Call(f, args...)
	task.msg.Extend()
	task.msg.Meta.ID, task.msg.Meta.Deaths, task.msg.Meta.DiedAt = wire.NewTaskID(), 9, time.Now().UnixMilli()
	b.Do("RPUSH", b.Name+"_suspects", task.msg.Append(nil))
}

// heard waits until the fetcher has handled all wake-ups so far.
func (s *started) heard() {
	s.b.T.Helper()
	for range 2 { // when it takes the second one, it has handled the first
		s.fetcher.Wakes <- fetch.WakeUp{Lane: -1}
		s.b.Until("the fetcher has looked", func() bool { return len(s.fetcher.Wakes) == 0 })
	}
}

// A worker that learns of another suspect while one runs alone does not start the latter again.
func TestLoneTaskStartsOnce(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan string, 10), make(chan struct{})
	f := b.fn("f", func(s string) { entered <- s; <-leave })
	w := b.workPatiently(time.Hour, f)
	w.heard()
	b.Until("it waits for suspects", func() bool { return b.blocked() > 0 })
	b.setAside(f, "lone")
	w.fetcher.Nudge(0, true)
	await(b, "the lone task", entered)
	b.setAside(f, "next")
	b.Do("RPUSH", b.Name+"_suspects_noti", "1")
	b.Until("the worker was woken, and has put that back", func() bool { return b.Size("_suspects_noti") == 1 })
	w.heard()
	w.exec.Mu.Lock()
	ready := len(w.exec.Ready)
	w.exec.Mu.Unlock()
	if n := len(w.exec.Running()); n != 1 || ready != 0 {
		t.Errorf("%d tasks run and %d are about to, expected one that runs alone", n, ready)
	}
	close(leave)
	if s := await(b, "the next", entered); s != "next" {
		t.Errorf("%s came again", s)
	}
	b.Idle()
}

// blocked returns how many clients wait for notifications of this queue.
func (b *bench) blocked() int {
	b.T.Helper()
	n := 0
	text, err := redis.String(b.Do("CLIENT", "LIST"), nil)
	b.Must(err)
	for line := range strings.Lines(text) {
		if strings.Contains(line, "flags=b") {
			n++
		}
	}
	return n
}

// If a suspect has ended and Redis does not know that yet, the worker removes its mark before other tasks start,
// because their death would count as the suspect's.
func TestEndedSuspectIsAloneNoLonger(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan string, 10), make(chan struct{})
	var failed atomic.Bool
	f := b.fn("f", func(s string) error {
		entered <- s
		<-leave
		if s == "suspect" && failed.CompareAndSwap(false, true) {
			return errors.New("planted")
		}
		return nil
	})
	w := b.work(b.config(), f)
	alone := func() bool { return b.Hash("_claims:" + w.ID())[redisstore.MarkAlone] != "" }
	b.delayDied(1, f, "suspect")
	await(b, "the suspect", entered)
	b.Do("SET", b.Name+"_info", "of another type") // so that its end cannot be stored
	if !alone() {
		t.Error("Redis does not know that it is alone")
	}
	leave <- struct{}{}
	b.Until("it has ended", func() bool { return len(w.exec.Running()) == 0 })
	b.delay(f, "fresh")
	await(b, "the fresh one", entered)
	if b.Size("_processing:"+w.ID()) != 2 || alone() {
		t.Errorf("%d claims, alone: %v", b.Size("_processing:"+w.ID()), alone())
	}
	b.Do("DEL", b.Name+"_info")
	close(leave)
	b.Idle()
}

// A task that waits until it can run alone is given back when its worker, or its queue, is paused, and runs once that
// is over.
func TestLoneTaskIsGivenBackWhenPaused(t *testing.T) {
	t.Parallel()
	for name, pauses := range map[string]struct{ pause, resume func(*started, *Queue) error }{
		"worker": {
			func(w *started, _ *Queue) error { w.Pause(); return nil },
			func(w *started, _ *Queue) error { w.Resume(); return nil },
		},
		"queue": {
			func(_ *started, q *Queue) error { return q.Pause(t.Context()) },
			func(_ *started, q *Queue) error { return q.Resume(t.Context()) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			entered, leave := make(chan string, 10), make(chan struct{})
			f := b.fn("f", func(s string) { entered <- s; <-leave })
			w := b.workPatiently(time.Hour, f)
			b.delay(f, "busy")
			await(b, "the busy one", entered)
			b.delayDied(9, f, "lone")
			b.Until("it is in hand", func() bool { return w.exec.LoneTask() != nil })
			b.Must(pauses.pause(w, b.q))
			b.Until("it is given back",
				func() bool { return b.Size("_processing:"+w.ID()) == 1 && b.Size("_suspects") == 1 })
			b.Until("nothing is alone", func() bool { return w.exec.LoneTask() == nil })
			b.Must(pauses.resume(w, b.q))
			leave <- struct{}{}
			if s := await(b, "the lone task", entered); s != "lone" {
				t.Errorf("%s came", s)
			}
			leave <- struct{}{}
			b.delay(f, "fresh")
			await(b, "a fresh one", entered)
			close(leave)
			b.Idle()
		})
	}
}

// A worker whose tasks do not end stops waiting for them, gives the lone task back, and takes others again.
func TestLoneTaskDoesNotStopAWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	entered, leave := make(chan string, 10), make(chan struct{})
	f := b.fn("f", func(s string) { entered <- s; <-leave })
	b.workPatiently(20*time.Millisecond, f)
	b.delay(f, "busy")
	await(b, "the busy one", entered)
	b.delayDied(9, f, "lone")
	b.Until("it was set apart", func() bool { return b.Size("_suspects") == 1 })
	// Only from here on does the worker wait because of the lone task, again and again; an earlier task would prove
	// nothing.
	b.Until("the worker has taken it", func() bool { return b.Size("_suspects") == 0 })
	b.delay(f, "fresh")
	if s := await(b, "a fresh one", entered); s != "fresh" {
		t.Fatalf("%s runs beside a busy one", s)
	}
	close(leave)
	if s := await(b, "the lone task", entered); s != "lone" {
		t.Fatalf("%s came again", s)
	}
	b.Idle()
}

// A suspect that its worker has put back is tried again as soon as the worker may: no end of a wait and no look of the
// mover is needed.
func TestLoneTaskThatWasPutBackIsNotForgotten(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	entered, leave := make(chan string, 10), make(chan struct{})
	f := b.fn("f", func(s string) { entered <- s; <-leave })
	cfg := b.config()
	cfg.HeartbeatLife = quietLife
	w, err := NewWorker(b.rdb, cfg)
	b.Must(err)
	b.Must(w.Register([]*Function{f}, nil))
	w.fetcher.Patience = 200 * time.Millisecond
	w.slotGroups[0].mover.Every = time.Hour
	w.fetcher.Waiters[0].Limit = time.Hour
	s := b.start(w)
	b.delay(f, "busy")
	await(b, "the busy one", entered)
	b.delayDied(9, f, "lone")
	b.Until("the lone task is in hand", func() bool { return w.exec.LoneTask() != nil })
	b.Until("it is put back", func() bool { return w.exec.LoneTask() == nil && b.Size("_suspects") == 1 })
	leave <- struct{}{}
	if s := await(b, "the lone task", entered); s != "lone" {
		t.Errorf("%s came", s)
	}
	close(leave)
	b.Idle()
	s.mustStop()
	if w.fetcher.Waiters[0].Limit != time.Hour {
		t.Error("it came only after a wait had ended, with the time-out of its connection")
	}
}

// Suspects that a worker may not take do not delay other tasks while they wait, and cost Redis little.
func TestSuspectsDoNotHoldUpOthers(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan string, 1000), make(chan struct{})
	f := b.fn("f", func(s string) {
		entered <- s
		if s == "suspect" {
			<-leave
		}
	})
	for range 300 {
		b.delayDied(2, f, "suspect")
	}
	cfg := b.config()
	cfg.Concurrency = 10
	b.work(cfg, f)
	for range 2 {
		if s := await(b, "a suspect", entered); s != "suspect" {
			t.Fatalf("%s came", s)
		}
	}
	b.Until("all others are set apart", func() bool { return b.Size("") == 0 && b.Size("_suspects") == 298 })
	before := b.Server.CommandStats(t)
	for range 100 {
		b.delay(f, "fresh")
		if s := await(b, "a fresh task", entered); s != "fresh" {
			t.Fatalf("a third %s runs", s)
		}
	}
	sent := b.Server.CommandStats(t).Since(before)
	if n := sent["evalsha"]; n > 600 {
		t.Errorf("%d scripts for 100 tasks beside suspects that wait: %s", n, sent)
	}
	if n, err := b.q.Len(t.Context()); err != nil || n != 298 {
		t.Errorf("the queue has %d pending tasks, %v; expected 298", n, err)
	}
	close(leave)
	b.Idle()
}

// A worker that stops makes suspects that it has not started pending again.
func TestLoneTaskIsGivenBackAtTheStop(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan string, 10), make(chan struct{})
	f := b.fn("f", func(s string) { entered <- s; <-leave })
	w := b.workPatiently(time.Hour, f)
	b.delay(f, "busy")
	await(b, "the busy one", entered)
	b.delayDied(9, f, "lone")
	b.Until("it is in hand", func() bool { return w.exec.LoneTask() != nil })
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	b.Until("it is given back", func() bool {
		return b.Size("_processing:"+w.ID()) == 1 && b.Size("")+b.Size("_suspects") == 1
	})
	close(leave)
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	b.Check(redistest.Invariants{})
}

// A worker that stops while its handlers run notes that in Redis: no death is counted for the tasks that
// it leaves behind.
func TestStopIsNoDeath(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan string, 10), make(chan struct{})
	f := b.fn("f", func(s string) { entered <- s; <-leave })
	cfg := b.config()
	cfg.Grace, cfg.CancelGrace = time.Millisecond, time.Millisecond
	w, err := NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register([]*Function{f}, nil); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	b.delay(f, "stubborn")
	go func() { <-entered; stop() }()
	var still *lane.RunningError
	if err := w.Run(ctx); !errors.As(err, &still) {
		t.Fatalf("expected that a handler still runs, found %v", err)
	}
	b.Until("the stop is noted", func() bool { return b.Hash("_claims:" + w.ID())[redisstore.MarkStopped] == "1" })
	close(leave)
	b.Until("nothing of the worker is left", func() bool {
		return b.Size("_claims:"+w.ID()) == 0 && b.Size("_workers") == 0
	})
	b.Check(redistest.Invariants{Idle: true})
}
