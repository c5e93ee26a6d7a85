//go:build unix

package itest_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// waits measures how long tasks that do nothing wait for their start.
type waits struct {
	t    *testing.T
	q    *delayed.Queue
	task *delayed.Function

	mu   sync.Mutex
	took []time.Duration
}

func newWaits(t *testing.T, q *delayed.Queue) *waits {
	t.Helper()
	w := &waits{t: t, q: q}
	w.task = delayed.Func(func(sent int64) {
		took := time.Since(time.Unix(0, sent))
		w.mu.Lock()
		defer w.mu.Unlock()
		w.took = append(w.took, took)
	}, delayed.Name("itest.fresh"))
	return w
}

// measure enqueues a task every few milliseconds as long as on returns true, and returns median, 99th percentile and
// longest wait.
func (w *waits) measure(on func() bool) (p50, p99, worst time.Duration) {
	w.t.Helper()
	w.took = nil
	sent := 0
	for tick := time.NewTicker(10 * time.Millisecond); on(); <-tick.C {
		if _, err := w.q.Delay(w.task, time.Now().UnixNano()); err != nil {
			w.t.Fatal(err)
		}
		sent++
	}
	return w.summary(sent)
}

// measureOneByOne enqueues n tasks, each to an idle worker after prepare has returned.
func (w *waits) measureOneByOne(n int, prepare func()) (p50, p99, worst time.Duration) {
	w.t.Helper()
	w.took = nil
	for i := range n {
		prepare()
		if _, err := w.q.Delay(w.task, time.Now().UnixNano()); err != nil {
			w.t.Fatal(err)
		}
		w.await(i + 1)
	}
	return w.summary(n)
}

// await waits until n tasks have started.
func (w *waits) await(n int) {
	w.t.Helper()
	waitFor(w.t, "all of them to start", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.took) == n
	})
}

// summary waits for the last of n tasks and returns median, 99th percentile and longest wait.
func (w *waits) summary(n int) (p50, p99, worst time.Duration) {
	w.t.Helper()
	w.await(n)
	slices.Sort(w.took)
	return w.took[n/2], w.took[n*99/100], w.took[n-1]
}

func lasting(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().Before(end) }
}

// TestFreshBesideSuspects: tasks that have never died do not wait for those that have while executors are free.
func TestFreshBesideSuspects(t *testing.T) {
	together(t)
	n := 30
	w, q := newWard(t, 1, n)
	rdb := handle(t, w.server)
	var running atomic.Int64
	suspect := delayed.Func(func(string, int) {
		running.Add(1)
		<-time.After(2 * time.Second) // the task's work
		running.Add(-1)
	}, delayed.Name(deafPath))
	fresh := newWaits(t, q)
	for i := range n {
		if _, err := q.Delay(deafTask, key(i), 60_000); err != nil {
			t.Fatal(err)
		}
	}
	victim := w.members[0]
	waitFor(t, "all to be claimed", func() bool { return len(w.claims(victim.id)) == n })
	runWorker(t, rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{w.setup.Queue}, Concurrency: 2 * n, HeartbeatLife: w.setup.Life,
	}, suspect, fresh.task)
	p50, p99, worst := fresh.measure(lasting(inChaos(time.Second, 5*time.Second)))
	victim.Kill()
	waitFor(t, "the suspects to run", func() bool { return running.Load() == int64(n) })
	s50, s99, slowest := fresh.measure(func() bool { return running.Load() > 0 })
	text := fmt.Sprintf("waits of fresh tasks: p50 %v, p99 %v, at most %v; beside %d suspects p50 %v, p99 %v, at "+
		"most %v",
		p50, p99, worst, n, s50, s99, slowest)
	t.Log(text)
	if s50 > 2*p50 || s99 > p99+50*time.Millisecond {
		limits.Errorf(t, "%s", text)
	}
}

// TestFreshBesideLoneTask: if the only worker has a task that must run alone, others wait for one run of it.
func TestFreshBesideLoneTask(t *testing.T) {
	together(t)
	const run = time.Second
	server := redistest.Start(t)
	queue := redistest.Name(t)
	rdb := handle(t, server)
	q := delayed.NewQueue(queue, rdb)
	fresh := newWaits(t, q)
	var starts atomic.Int64
	suspect := delayed.Func(func(context.Context) {
		starts.Add(1)
		<-time.After(run) // the task's work
	}, delayed.Name("itest.suspect"))
	const n = 5
	for i := range n {
		meta := wire.Meta{ID: key(i), Deaths: 9, DiedAt: time.Now().UnixMilli()}
		m := wire.Message{Kind: wire.GoExtended, Path: "itest.suspect", Meta: meta}
		server.Do(t, "RPUSH", queue, m.Append(nil))
		server.Do(t, "RPUSH", queue+"_noti", "1")
	}
	runWorker(t, rdb, delayed.WorkerConfig{Queues: delayed.Strict{queue}, Concurrency: 10}, suspect, fresh.task)
	p50, p99, worst := fresh.measure(func() bool { return starts.Load() < n })
	t.Logf("waits of fresh tasks beside %d tasks of %v that run alone: p50 %v, p99 %v, at most %v",
		n, run, p50, p99, worst)
	if worst > run+250*time.Millisecond {
		limits.Errorf(t, "a task waited for %v, expected %v at most", worst, run)
	}
}

// TestFreshAfterResume: a task that is enqueued shortly after a queue was resumed starts as fast as on any idle worker.
func TestFreshAfterResume(t *testing.T) {
	together(t)
	const rest = 300 * time.Millisecond // long enough for the worker to wait on the queue again
	server := redistest.Start(t)
	rdb := handle(t, server)
	q := delayed.NewQueue(redistest.Name(t), rdb)
	fresh := newWaits(t, q)
	paused := make(chan struct{}, 1)
	hear := func(e delayed.Event) {
		if e.Kind == event.QueuePaused {
			paused <- struct{}{}
		}
	}
	runHeardWorker(t, rdb, delayed.WorkerConfig{Queues: delayed.Strict{q.Name()}}, hear, fresh.task)
	n := inChaos(10, 100)
	fresh.measureOneByOne(1, func() {}) // the worker has started
	p50, p99, worst := fresh.measureOneByOne(n, func() { <-time.After(rest) })
	r50, r99, slowest := fresh.measureOneByOne(n, func() {
		if err := q.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-paused
		if err := q.Resume(t.Context()); err != nil {
			t.Fatal(err)
		}
		<-time.After(rest)
	})
	text := fmt.Sprintf("waits of tasks on an idle worker: p50 %v, p99 %v, at most %v; after Resume p50 %v, p99 %v, "+
		"at most %v",
		p50, p99, worst, r50, r99, slowest)
	t.Log(text)
	if r50 > 2*p50 || r99 > p99+50*time.Millisecond {
		limits.Errorf(t, "%s", text)
	}
}

// TestFreshBesideStrangers: a task starts on the worker that knows its function within 50 ms, though a worker that does
// not know it takes about every second one first, and parks it.
func TestFreshBesideStrangers(t *testing.T) {
	together(t)
	server := redistest.Start(t)
	rdb := handle(t, server)
	q := delayed.NewQueue(redistest.Name(t), rdb)
	fresh := newWaits(t, q)
	stranger := delayed.Func(func() {}, delayed.Name("itest.stranger"))
	var parked, started atomic.Int64
	hear := func(e delayed.Event) {
		if e.Kind == event.TaskParked {
			parked.Add(1)
		}
		if e.Kind == event.WorkerStarted {
			started.Add(1)
		}
	}
	cfg := delayed.WorkerConfig{Queues: delayed.Strict{q.Name()}}
	runHeardWorker(t, rdb, cfg, hear, fresh.task)
	runHeardWorker(t, rdb, cfg, hear, stranger)
	waitFor(t, "both to start", func() bool { return started.Load() == 2 })
	fresh.measureOneByOne(10, func() {}) // both wait for tasks by now
	parked.Store(0)
	n := inChaos(20, 500)
	p50, p99, worst := fresh.measureOneByOne(n, func() {})
	text := fmt.Sprintf("waits of tasks that one of two workers knows: p50 %v, p99 %v, at most %v; %d of %d were "+
		"parked", p50, p99, worst, parked.Load(), n)
	t.Log(text)
	if parked.Load() == 0 {
		t.Error("nothing was parked, so nothing was shown")
	}
	if worst > 50*time.Millisecond {
		limits.Errorf(t, "%s", text)
	}
}
