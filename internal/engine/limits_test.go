package engine

import (
	"context"
	"errors"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// runToEnd runs a worker until it stops by itself, and returns why it did.
func (b *bench) runToEnd(cfg WorkerConfig, fns ...*Function) state.Reason {
	b.T.Helper()
	w, _ := b.listened(cfg, fns...)
	result := make(chan error, 1)
	go func() { result <- w.Run(b.T.Context()) }()
	if err := await(b, "the worker to stop", result); err != nil {
		b.T.Fatalf("Run: %v", err)
	}
	return w.Status().StopReason
}

func TestMaxTasksIsNeverExceeded(t *testing.T) {
	for _, c := range []struct {
		name                             string
		tasks, most, executors, prefetch int
	}{
		{"one executor", 10, 3, 1, 0},
		{"prefetch", 100, 7, 4, 50},
		{"fewer executors than tasks", 50, 20, 3, -1},
		{"more executors than tasks", 50, 2, 20, 0},
		{"one task", 5, 1, 4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			var ran atomic.Int64
			f := b.fn("f", func(int) { ran.Add(1) })
			for i := range c.tasks {
				b.delay(f, i)
			}
			cfg := b.config()
			cfg.MaxTasks, cfg.Concurrency, cfg.Prefetch = c.most, c.executors, c.prefetch
			if reason := b.runToEnd(cfg, f); reason != state.StopMaxTasks {
				t.Errorf("expected %q, found %q", state.StopMaxTasks, reason)
			}
			if n := ran.Load(); n != int64(c.most) {
				t.Errorf("expected %d tasks, found %d", c.most, n)
			}
			if n := b.Size(""); n != c.tasks-c.most {
				t.Errorf("expected %d pending tasks, found %d", c.tasks-c.most, n)
			}
			b.Check(redistest.Invariants{})
		})
	}
}

// TestMaxTasksWaitsForTheLast: the grace period does not run while the worker's last task does, because nobody has
// asked the worker to stop.
func TestMaxTasksWaitsForTheLast(t *testing.T) {
	b := newBench(t)
	running, leave := make(chan struct{}, 2), make(chan struct{})
	f := b.fn("f", func(ctx context.Context) error {
		running <- struct{}{}
		select {
		case <-leave:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	cfg := b.config()
	cfg.MaxTasks, cfg.Grace, cfg.Prefetch = 2, -1, 10
	w, h := b.listened(cfg, f)
	s := b.start(w)
	for range 4 {
		b.delay(f)
	}
	for range 2 {
		await(b, "a task", running)
	}
	b.Until("the others are back", func() bool { return b.Size("") == 2 })
	if events := h.of(event.WorkerStopping); len(events) > 0 || w.Status().StopReason != "" {
		t.Errorf("the worker stops before its tasks have ended: %v", events)
	}
	close(leave)
	b.Until("the worker has stopped", func() bool { return w.Status().Phase == state.Stopped })
	s.mustStop()
	if events := h.of(event.WorkerStopping); len(events) != 1 || events[0].Reason != state.StopMaxTasks {
		t.Errorf("expected one event with reason %q, found %+v", state.StopMaxTasks, events)
	}
	if n := b.counters()["processed"]; n != 2 || b.Size("_retry") != 0 {
		t.Errorf("expected 2 tasks done and no retries, found %d and %d", n, b.Size("_retry"))
	}
}

// TestMaxTasksCountsWhatEndsItsGoroutine: the only task of a worker ends by Goexit.
func TestMaxTasksCountsWhatEndsItsGoroutine(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() { runtime.Goexit() }, MaxRetry(0))
	b.delay(f)
	cfg := b.config()
	cfg.MaxTasks = 1
	if reason := b.runToEnd(cfg, f); reason != state.StopMaxTasks || b.Size("_archived") != 1 {
		t.Errorf("expected %q and an archived task, found %q and %d", state.StopMaxTasks, reason, b.Size("_archived"))
	}
}

func TestMaxTime(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.MaxTime = 20 * time.Millisecond
	if reason := b.runToEnd(cfg); reason != state.StopMaxTime {
		t.Errorf("expected %q, found %q", state.StopMaxTime, reason)
	}
}

func TestMaxMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cfg := b.config()
	cfg.MaxMemory = 1 << 20
	if reason := b.runToEnd(cfg); reason != state.StopMaxMemory {
		t.Errorf("expected %q, found %q", state.StopMaxMemory, reason)
	}
	if !strings.Contains(b.log.String(), "WorkerConfig.MaxMemory") {
		t.Errorf("the log does not say why:\n%s", b.log)
	}
	cfg.MaxMemory = math.MaxInt64
	cfg.MaxTime = 2 * memoryInterval
	if reason := b.runToEnd(cfg); reason != state.StopMaxTime {
		t.Errorf("within the limit: expected %q, found %q", state.StopMaxTime, reason)
	}
}

func TestMemoryUsed(t *testing.T) {
	debug.FreeOSMemory() // or memory of other tests may be freed during this one
	before, runtimeBefore := beat.MemoryUsed(), beat.RuntimeMemory()
	if before < 1<<20 || runtimeBefore < 1<<20 {
		t.Fatalf("found %d and %d bytes, expected at least a megabyte", before, runtimeBefore)
	}
	block := make([]byte, 64<<20)
	for i := 0; i < len(block); i += 1024 {
		block[i] = 1
	}
	used, runtimeUsed := beat.MemoryUsed(), beat.RuntimeMemory()
	if used < before+32<<20 || runtimeUsed < runtimeBefore+32<<20 {
		t.Errorf("after 64 MiB more: %d and %d bytes, before %d and %d", used, runtimeUsed, before, runtimeBefore)
	}
	runtime.KeepAlive(block)
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return // only Linux reports the resident memory
	}
	_, peak, _ := strings.Cut(string(status), "VmHWM:")
	peak, _, _ = strings.Cut(peak, "kB")
	if kib, err := strconv.ParseInt(strings.TrimSpace(peak), 10, 64); err != nil || beat.MemoryUsed() > kib<<10+1<<20 {
		t.Errorf("found %d bytes; there were never more than %d KiB in main memory (%v)", beat.MemoryUsed(), kib, err)
	}
}

// TestStopWhenEmpty: the worker first runs tasks that tasks enqueue, parked ones that it knows and due ones; it leaves
// those that are due later.
func TestStopWhenEmpty(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	var f *Function
	f = b.fn("f", func(ctx context.Context, more int) error {
		ran.Add(1)
		if more == 0 {
			return nil
		}
		_, err := b.q.DelayContext(ctx, f, more-1)
		return err
	})
	parking := b.work(b.config())
	b.delay(f, 0)
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	parking.mustStop()
	b.delay(f, 5)
	b.delayAt(time.Now().Add(time.Hour), f, 0)
	b.delayAt(time.Now().Add(-time.Hour), f, 0)
	cfg := b.config()
	cfg.StopWhenEmpty = true
	if reason := b.runToEnd(cfg, f); reason != state.StopEmpty {
		t.Errorf("expected %q, found %q", state.StopEmpty, reason)
	}
	if n := ran.Load(); n != 8 || b.Size("_scheduled") != 1 || b.Size("_parked") != 0 {
		t.Errorf("expected 8 tasks, 1 scheduled and none parked, found %d, %d and %d", n, b.Size("_scheduled"),
			b.Size("_parked"))
	}
}

// TestStopWhenEmptyWaitsForHandlers: a running task may enqueue others.
func TestStopWhenEmptyWaitsForHandlers(t *testing.T) {
	b := newBench(t)
	running, leave := make(chan struct{}), make(chan struct{})
	f := b.fn("f", func() { running <- struct{}{}; <-leave })
	b.delay(f)
	cfg := b.config()
	cfg.StopWhenEmpty = true
	w, h := b.listened(cfg, f)
	s := b.start(w)
	await(b, "the task", running)
	// only then anything counts as empty
	b.Until("the mover has looked", func() bool { return w.slotGroups[0].mover.Checked.Load() })
	v := &idleWatch{worker: w}
	for range 3 {
		if v.check(t.Context(), time.Now().Add(time.Hour)) {
			t.Error("the worker is said to have nothing to do")
		}
	}
	close(leave)
	b.Until("the worker has stopped", func() bool { return w.Status().Phase == state.Stopped })
	s.mustStop()
	if events := h.of(event.WorkerIdle, event.WorkerStopping); len(events) != 2 || events[0].Kind != event.WorkerIdle ||
		events[1].Reason != state.StopEmpty {
		t.Errorf("expected that the worker is idle and stops for %q, found %+v", state.StopEmpty, events)
	}
}

// TestVacancy steps through the looks of a worker that is to stop after an hour without a task.
func TestVacancy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan struct{}, 1)
	f := b.fn("f", func() { ran <- struct{}{} })
	w, h := b.listened(b.config(), f)
	s := b.start(w)
	b.Until("the mover has looked", func() bool { return w.slotGroups[0].mover.Checked.Load() })
	begin := time.Now()
	v := &idleWatch{worker: w, limit: time.Hour, since: begin, hasListeners: true}
	at := func(minutes int) bool { return v.check(t.Context(), begin.Add(time.Duration(minutes)*time.Minute)) }
	idle := func() int { return len(h.of(event.WorkerIdle)) }
	before := idle()
	if at(59) {
		t.Error("after 59 minutes")
	}
	b.Until("listeners know", func() bool { return idle() > before })
	b.delay(f)
	await(b, "the task", ran)
	b.Idle()
	b.Until("it has ended", func() bool { still, _ := w.exec.IdleState(); return still })
	if at(61) || at(120) {
		t.Error("less than an hour after a task")
	}
	if !at(121) {
		t.Error("an hour after the task: expected that it stops")
	}
	w.Pause()
	b.delay(f)
	if at(200) {
		t.Error("a task is pending")
	}
	b.Do("DEL", b.Name, b.Name+"_noti") // as if another worker had taken it
	if at(259) {
		t.Error("less than an hour after a task was pending")
	}
	if !at(260) {
		t.Error("an hour after a task was pending: expected that it stops")
	}
	w.Resume()
	s.mustStop()
}

func TestIdleIsToldOnce(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() {})
	w, h := b.listened(b.config(), f)
	s := b.start(w)
	b.Until("the mover has looked", func() bool { return w.slotGroups[0].mover.Checked.Load() })
	v := &idleWatch{worker: w, limit: -1, hasListeners: true}
	b.Until("listeners were called", func() bool { // a claim may be under way
		v.check(t.Context(), time.Now())
		return v.reported
	})
	if v.check(t.Context(), time.Now().Add(24*time.Hour)) {
		t.Error("expected that listeners were called, and that the worker goes on")
	}
	s.mustStop()
	if n := len(h.of(event.WorkerIdle)); n < 1 || n > 2 { // its own look may have come in between
		t.Errorf("expected one event for each who looks, found %d", n)
	}
}

// TestRest: a resting executor starts its next task only after the rest, and a stop does not wait for it.
func TestRest(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	times := make(chan time.Time, 10)
	f := b.fn("f", func() { times <- time.Now() })
	for range 3 {
		b.delay(f)
	}
	cfg := b.config()
	cfg.Concurrency, cfg.Rest = 1, 150*time.Millisecond
	s := b.work(cfg, f)
	last := await(b, "the first", times)
	for range 2 {
		at := await(b, "another", times)
		if pause := at.Sub(last); pause < cfg.Rest {
			t.Errorf("a pause of %v, expected at least %v", pause, cfg.Rest)
		}
		last = at
	}
	s.mustStop()
	cfg.Rest = time.Hour
	s = b.work(cfg, f)
	b.delay(f)
	b.delay(f)
	await(b, "a task", times)
	b.Until("it is acknowledged while the executor rests", func() bool { return b.counters()["processed"] == 4 })
	if n := b.Size("_processing:" + s.ID()); n != 0 {
		t.Errorf("%d tasks are claimed while the only executor rests", n)
	}
	s.mustStop()
	if n := b.Size(""); n != 1 {
		t.Errorf("expected that the last one is left, found %d", n)
	}
}

// TestNoLimitsNoWatches: without limits and listeners, no goroutine checks for them.
func TestNoLimitsNoWatches(t *testing.T) {
	b := newBench(t)
	w, err := NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	if n := len(w.watches()); n != 0 || w.exec.Limited || w.exec.Rest != 0 {
		t.Errorf("found %d watches, a budget of %d tasks", n, w.exec.StartsLeft)
	}
}

// TestFirstReasonToStopHolds: the reason may be given at any time, also before Run.
func TestFirstReasonToStopHolds(t *testing.T) {
	b := newBench(t)
	w, h := b.listened(b.config())
	w.StopFor("one")
	w.StopFor("two")
	if err := w.Run(t.Context()); err != nil || !errors.Is(w.Run(t.Context()), redisstore.ErrClosed) {
		t.Errorf("Run: %v", err)
	}
	var got []event.Kind
	for _, e := range h.of() {
		got = append(got, e.Kind)
	}
	want := []event.Kind{event.WorkerStarted, event.WorkerStopping, event.WorkerStopped}
	if !slices.Equal(got, want) || h.of()[1].Reason != "one" || w.Status().StopReason != "one" {
		t.Errorf("expected %v for reason one, found %v for %q", want, got, w.Status().StopReason)
	}
}

// TestStopWhenEmptyLeavesPausedQueues: nobody runs their tasks, so the worker would wait in vain.
func TestStopWhenEmptyLeavesPausedQueues(t *testing.T) {
	b := newBench(t)
	if err := b.q.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := b.fn("f", func() {})
	b.delay(f)
	cfg := b.config()
	cfg.StopWhenEmpty = true
	if reason := b.runToEnd(cfg, f); reason != state.StopEmpty || b.Size("") != 1 {
		t.Errorf("expected %q and the task where it was, found %q and %d", state.StopEmpty, reason, b.Size(""))
	}
}

// TestMaxTasksDoesNotWaitForStuckHandlers: other executors have replaced those of stuck handlers.
func TestMaxTasksDoesNotWaitForStuckHandlers(t *testing.T) {
	inCrew(t, 1, 0, func(c *crew) {
		spent := stops(0)
		c.Mu.Lock()
		c.Limited, c.StartsLeft, c.Worker = true, 1, &spent
		c.Mu.Unlock()
		tasks := c.tasks(c.lane, 1)
		c.Add(tasks)
		synctest.Wait()
		if stuck, _ := c.Replace(0, tasks[0]); !stuck || spent != 1 {
			t.Errorf("expected that the last task is given up, found %v and %d", stuck, spent)
		}
	})
}

// TestBudget: no more tasks start than are allowed, however many are ready, and the worker claims no more.
func TestBudget(t *testing.T) {
	inCrew(t, 3, 0, func(c *crew) {
		spent := stops(0)
		c.Mu.Lock()
		c.Limited, c.StartsLeft, c.Worker = true, 2, &spent
		c.Mu.Unlock()
		if n, _, _ := c.ClaimBudget(); n != 2 {
			t.Errorf("room for %d, expected 2", n)
		}
		tasks := c.tasks(c.lane, 4)
		c.Add(tasks)
		synctest.Wait()
		if n, _, _ := c.ClaimBudget(); n != 0 || len(c.started) != 2 || !c.Exhausted() || len(c.Changed) != 1 {
			t.Errorf("room for %d after %d of 2 have started", n, len(c.started))
		}
		c.ways[tasks[0]] <- endDone
		synctest.Wait()
		if spent != 0 || len(c.started) != 2 {
			t.Errorf("one runs still: spent %d, started %d", spent, len(c.started))
		}
		c.ways[tasks[1]] <- endSeenTo
		synctest.Wait()
		if back := c.TakeBack(nil); spent != 1 || len(c.started) != 2 || len(back) != 2 {
			t.Errorf("both have ended: spent %d, started %d, %d left", spent, len(c.started), len(back))
		}
	})
}

// TestEmptyOnlyAfterTheMoverHasLooked: until then there may be parked tasks that this worker knows.
func TestEmptyOnlyAfterTheMoverHasLooked(t *testing.T) {
	b := newBench(t)
	w, err := NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	for _, looked := range []bool{false, true} {
		w.slotGroups[0].mover.Checked.Store(looked)
		if empty, err := w.empty(t.Context()); empty != looked || err != nil {
			t.Errorf("the mover has looked: %v; expected the same of empty, found %v, %v", looked, empty, err)
		}
	}
	b.delayAt(time.Now().Add(-time.Hour), b.fn("f", func() {}))
	if empty, err := w.empty(t.Context()); empty || err != nil {
		t.Errorf("a task is due: found %v, %v", empty, err)
	}
}

// The published memory of a worker changes only with what is worth it.
func TestToldMemory(t *testing.T) {
	var m beat.PublishedMemory
	begin := time.Now()
	for _, c := range []struct{ used, after, want int64 }{ // MiB and seconds
		{16, 0, 16},
		{18, 60, 16}, // an eighth, but little
		{28, 61, 28},
		{48, 62, 28}, // too soon
		{48, 91, 48},
		{44, 200, 48}, // less than an eighth
		{42, 200, 42},
	} {
		if got := m.Update(c.used<<20, begin.Add(time.Duration(c.after)*time.Second)); got != c.want<<20 {
			t.Errorf("%d MiB after %d s: published %d, expected %d MiB", c.used, c.after, got, c.want)
		}
	}
}

// stops counts how often a worker is to stop.
type stops int

func (s *stops) StopFor(state.Reason) { *s++ }
