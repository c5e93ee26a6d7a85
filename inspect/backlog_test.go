package inspect_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// TestBacklog measures a queue with a paused worker, whose tasks have taken at least as long as they sleep.
func TestBacklog(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const slow = 30 * time.Millisecond
	sleeps := delayed.Func(func() { <-time.After(slow) }, delayed.Name("sleeps"))
	w := b.work(sleeps)
	for range 4 {
		_, err := b.q.Delay(sleeps)
		b.Must(err)
	}
	var found inspect.Backlog
	look := func() inspect.Backlog {
		var err error
		found, err = b.ins.Backlog(bg, queueName, queueName)
		b.Must(err)
		return found
	}
	b.Until("the mean run is known", func() bool { return look().Queues[0].MeanRun > 0 })
	b.Until("nothing is active", func() bool { return look().Pending == 0 && found.Busy == 0 })
	if found.Workers != 1 || found.Concurrency != 2 || found.Work != 0 || found.Waiting {
		t.Errorf("a worker that has nothing to do: %+v", found)
	}
	w.Pause()
	b.Until("the worker says that it pauses", func() bool { return look().Workers == 0 })
	for range 10 {
		_, err := b.q.Delay(sleeps)
		b.Must(err)
	}
	look()
	q := found.Queues[0]
	if len(found.Queues) != 1 || q.MeanRun < slow || q.Work != 10*q.MeanRun || found.Work != q.Work ||
		found.Pending != 10 || found.Concurrency != 0 || found.Unmeasured != 0 || found.At.IsZero() {
		t.Errorf("10 tasks of at least %v: %+v", slow, found)
	}
	if n, err := found.WorkersFor(q.Work/4, 2); n != 2 || err != nil {
		t.Errorf("%d workers of 2 handlers for a fourth of the time (%v), expected 2", n, err)
	}
	b.Must(b.q.Pause(bg))
	if look(); found.Pending != 0 || found.Work != 0 || !found.Queues[0].Paused || found.Queues[0].Pending != 10 {
		t.Errorf("a paused queue counts: %+v", found)
	}
	b.Must(b.q.Resume(bg))
	w.Resume()
	b.Until("all have run", func() bool { return look().Pending == 0 && found.Busy == 0 })
	w.Pause()
	b.Until("the worker says that it pauses", func() bool { return look().Workers == 0 })
	minutes, err := redis.Strings(b.Conn.Do("KEYS", b.Name+"_metrics:m*"))
	if err != nil || len(minutes) == 0 {
		t.Fatalf("samples of minutes are in %q, %v", minutes, err)
	}
	for _, key := range minutes {
		b.Do("DEL", key)
	}
	if look(); found.Queues[0].MeanRun < slow {
		t.Errorf("nothing has run lately, and tasks are said to take %v, expected what they took before",
			found.Queues[0].MeanRun)
	}
}

// TestBacklogOfSeveralQueues counts a worker of two queues once.
func TestBacklogOfSeveralQueues(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w, err := delayed.NewWorker(b.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{queueName, "other"}, Concurrency: 3, Logger: b.log.Logger(),
	})
	b.Must(err)
	b.Must(w.Register(welcome))
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	b.Until("both queues know the worker", func() bool {
		found, err := b.ins.Backlog(bg)
		b.Must(err)
		return len(found.Queues) == 2 && found.Concurrency >= 3
	})
	found, err := b.ins.Backlog(bg)
	b.Must(err)
	if found.Workers != 1 || found.Concurrency != 3 {
		t.Errorf("%+v, expected one worker of 3 handlers", found)
	}
	cancel()
	b.Must(<-done)
	if _, err := b.ins.Backlog(bg, "nobody's"); !errors.Is(err, inspect.ErrNotFound) {
		t.Errorf("a queue that nobody uses: %v", err)
	}
}

// TestBacklogWithoutWorkers wants a worker for whatever only workers can do.
func TestBacklogWithoutWorkers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		q       func(*delayed.Queue) *delayed.Queue
		waiting bool
		wanted  int
	}{
		"pending": {func(q *delayed.Queue) *delayed.Queue { return q }, false, 1},
		"due":     {func(q *delayed.Queue) *delayed.Queue { return q.With(delayed.In(time.Millisecond)) }, true, 1},
		"later":   {func(q *delayed.Queue) *delayed.Queue { return q.With(delayed.In(time.Hour)) }, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			_, err := c.q(b.q).Delay(welcome, 1, "en")
			b.Must(err)
			var found inspect.Backlog
			b.Until("Redis's clock goes on", func() bool {
				found, err = b.ins.Backlog(bg, queueName)
				b.Must(err)
				return found.Waiting == c.waiting
			})
			if n, err := found.WorkersFor(time.Minute, 0); n != c.wanted || err != nil {
				t.Errorf("%d workers (%v), expected %d: %+v", n, err, c.wanted, found)
			}
		})
	}
	t.Run("group", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		_, err := b.q.With(delayed.Group("g")).Delay(gathered, []int{1})
		b.Must(err)
		found, err := b.ins.Backlog(bg, queueName)
		b.Must(err)
		if n, err := found.WorkersFor(time.Minute, 0); n != 1 || err != nil || !found.Waiting {
			t.Errorf("%d workers (%v), expected 1: %+v", n, err, found)
		}
	})
}

// TestBacklogOfPeriodicEntries keeps one worker for a queue that only has periodic entries, until they are paused.
func TestBacklogOfPeriodicEntries(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	wanted := func(what string, want int) {
		t.Helper()
		found, err := b.ins.Backlog(bg, queueName)
		b.Must(err)
		if n, err := found.WorkersFor(time.Minute, 0); n != want || err != nil || found.Periodic != (want > 0) {
			t.Errorf("%s: %d workers (%v), expected %d: %+v", what, n, err, want, found)
		}
	}
	b.Must(b.q.Periodic().Set(bg, delayed.Entry{Name: "e", Spec: "@yearly", Task: delayed.Call(welcome, 1, "en")}))
	wanted("an entry", 1)
	b.Must(b.q.Periodic().Pause(bg, "e"))
	wanted("a paused entry", 0)
	b.Must(b.q.Periodic().Resume(bg, "e"))
	b.Must(b.q.Pause(bg))
	wanted("an entry of a paused queue", 0)
}

func TestWorkersFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		b           inspect.Backlog
		target      time.Duration
		concurrency int
		wanted      int
	}{
		"nothing":         {inspect.Backlog{}, time.Second, 0, 0},
		"one":             {inspect.Backlog{Pending: 1, Work: time.Millisecond}, time.Minute, 10, 1},
		"rounded up":      {inspect.Backlog{Pending: 9, Work: 61 * time.Second}, time.Minute, 1, 2},
		"as present ones": {inspect.Backlog{Work: time.Minute, Workers: 2, Concurrency: 20}, time.Second, 0, 6},
		"busy ones stay":  {inspect.Backlog{Busy: 15, Workers: 3, Concurrency: 30}, time.Minute, 0, 2},
		"unmeasured":      {inspect.Backlog{Pending: 5, Unmeasured: 5, Workers: 4, Concurrency: 4}, time.Minute, 0, 4},
		"much":            {inspect.Backlog{Pending: 5, Work: math.MaxInt64}, 1, 1, math.MaxInt32},
	} {
		if n, err := c.b.WorkersFor(c.target, c.concurrency); n != c.wanted || err != nil {
			t.Errorf("%s: %d workers (%v), expected %d", name, n, err, c.wanted)
		}
	}
	b := inspect.Backlog{Work: time.Minute, Concurrency: 20}
	if w := b.Wait(); w != 3*time.Second {
		t.Errorf("Wait is %v, expected 3s", w)
	}
	for _, c := range []struct {
		target      time.Duration
		concurrency int
	}{{0, 1}, {-1, 1}, {1, -1}} {
		if _, err := b.WorkersFor(c.target, c.concurrency); err == nil {
			t.Errorf("%v is no error", c)
		}
	}
}
