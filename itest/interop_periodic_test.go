//go:build unix

package itest_test

import (
	"context"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// TestSchedulersOfBothLanguagesShareEntries: schedulers of Go and workers of Python see to the same entries, one that
// Go has written and one that Python has. Each tick becomes one task, and none is left out.
func TestSchedulersOfBothLanguagesShareEntries(t *testing.T) {
	t.Parallel()
	const (
		each  = 2                     // schedulers of each language
		every = 50 * time.Millisecond // more often than programs may ask for
		ticks = 40
	)
	server := redistest.Shared(t)
	rdb, queue := handle(t, server), redistest.Name(t)
	py := newPyLedger(t)
	var workers []*childproc.Process
	for range each {
		workers = append(workers, startGodelayed(t, py.env(), server, "--queue", queue, "--concurrency", "1"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, each)
	for range each {
		s, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: queue})
		if err != nil {
			t.Fatal(err)
		}
		go func() { done <- s.Run(ctx) }()
	}
	defer func() {
		cancel()
		for range each {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}()
	runPython(t, "periodic.py", "--url", server.URL(), "--queue", queue, "--name", "python", "--every", every.String())
	setEntry(t, rdb, queue, "go", every)
	control := delayed.NewQueue(queue, rdb).Periodic()
	var enqueued []string
	for _, name := range []string{"go", "python"} {
		var runs []delayed.PeriodicRun
		waitFor(t, "ticks of "+name, func() bool {
			var err error
			runs, err = control.History(ctx, name)
			return err == nil && len(runs) >= ticks
		})
		if err := control.Remove(ctx, name); err != nil {
			t.Error(err)
		}
		for i, run := range runs {
			enqueued = append(enqueued, run.ID)
			if run.ID != schedule.TickID(name, run.Tick) || run.Skipped != "" {
				t.Errorf("%s: a tick was not enqueued: %+v", name, run)
			}
			if i > 0 && runs[i-1].Tick.Sub(run.Tick) != every {
				t.Errorf("%s: the tick after %v is %v", name, run.Tick, runs[i-1].Tick)
			}
		}
	}
	q := delayed.NewQueue(queue, rdb)
	waitFor(t, "the tasks to be claimed", func() bool {
		n, err := q.Len(ctx)
		return err == nil && n == 0
	})
	for _, p := range workers {
		stopPython(t, p)
	}
	ran := map[any]int{}
	for _, call := range py.calls(t) {
		ran[call.Args[0]]++
	}
	for id, n := range ran {
		if n != 1 {
			t.Errorf("task %v ran %d times", id, n)
		}
	}
	for _, id := range enqueued {
		if ran[id] == 0 {
			t.Errorf("task %s did not run", id)
		}
	}
}

// setEntry writes an entry that ticks more often than PeriodicControl.Set allows.
func setEntry(t *testing.T, rdb *delayed.Store, queue, name string, every time.Duration) {
	t.Helper()
	parts, err := seam.Handle(rdb)
	if err != nil {
		t.Fatal(err)
	}
	source, ok := parts.Source.(redisstore.Source)
	if !ok {
		t.Fatalf("the source is a %T", parts.Source)
	}
	store := redisstore.NewStore(source, parts.Prefix, queue)
	now, err := store.Time(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m := wire.Message{Kind: wire.PyExtended, Path: "interop:tick"}
	r := &schedule.Record{Was: schedule.EntryValue{Name: name}}
	def := schedule.Definition{Spec: "@every " + every.String(), Missed: schedule.MissedLatest, Message: m.Append(nil)}
	if err := r.Define(def, now); err != nil {
		t.Fatal(err)
	}
	due, err := r.Due()
	if err != nil {
		t.Fatal(err)
	}
	if err := store.SetEntry(t.Context(), r.Was, r.Encode(), due); err != nil {
		t.Fatal(err)
	}
}
