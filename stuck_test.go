package delayed_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// stuckOn blocks like a handler that waits for ever.
func stuckOn(leave chan struct{}) { <-leave }

func TestWorkerReplacesStuckHandlers(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 3), make(chan struct{})
	ends := make(chan error, 3)
	f := b.fn("f", func(ctx context.Context, i int) {
		entered <- i
		if i == 0 {
			<-ctx.Done()
			ends <- context.Cause(ctx)
			stuckOn(leave)
		}
	})
	cfg := b.config()
	cfg.Concurrency, cfg.StuckAfter = 1, 10*time.Millisecond
	w := b.work(cfg, f)
	b.delayWith(b.q.With(delayed.Timeout(10*time.Millisecond)), f, 0) // the others have no limit
	b.delay(f, 1)
	await(b, "the first task", entered)
	if err := await(b, "the end of its context", ends); !errors.Is(err, delayed.ErrTimeout) {
		t.Error(err)
	}
	await(b, "the task in its place", entered)
	b.Until("that is done", func() bool { return b.counters()["processed"] == 1 })
	if n := b.Size("_processing:" + w.ID()); n != 1 {
		t.Errorf("%d claims stand, expected that of the stuck task", n)
	}
	b.Until("the first is logged", func() bool { return strings.Contains(b.log.String(), "handler is stuck") })
	if text := b.log.String(); !strings.Contains(text, "delayed_test.stuckOn") ||
		!strings.Contains(text, "function="+b.Name+".f") || strings.Contains(text, "stuckOn(0x") {
		t.Error(text)
	}
	close(leave)
	b.Until("its end counts", func() bool { return b.counters()["processed"] == 2 })
	b.delay(f, 2)
	await(b, "the next task", entered)
	b.Idle()
	w.mustStop()
	b.Check(redistest.Invariants{Idle: true})
}

func TestWorkerStopsBecauseOfStuckHandlers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		grace time.Duration
		sound bool // whether the other handler finishes
	}{
		{"the others finish", time.Hour, true},
		{"others do not", 10 * time.Millisecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			entered, leave, leaveOther := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
			f := b.fn("f", func(context.Context, int) { stuckOn(leave) }, delayed.Timeout(10*time.Millisecond))
			other := b.fn("other", func(context.Context) { entered <- struct{}{}; <-leaveOther })
			cfg := b.config()
			cfg.Concurrency, cfg.StuckAfter, cfg.MaxStuck = 3, 10*time.Millisecond, 1
			cfg.Grace, cfg.CancelGrace = tt.grace, 10*time.Millisecond
			w, h := b.listened(cfg, f, other)
			b.delay(other)
			result := make(chan error, 1)
			go func() { result <- w.Run(t.Context()) }()
			await(b, "the other handler", entered)
			refs := []string{b.delay(f, 1).ID()}
			b.Until("it is stuck", func() bool { return strings.Contains(b.log.String(), refs[0]) })
			refs = append(refs, b.delay(f, 2).ID())
			b.Until("the worker stops", func() bool { return w.Status().State == state.Stopping })
			if tt.sound {
				close(leaveOther)
			}
			err := await(b, "Run", result)
			var stuck *delayed.StuckError
			if !errors.As(err, &stuck) || len(stuck.Funcs) != 2 || stuck.Funcs[0] != b.Name+".f" ||
				w.Status().StopReason != "stuck" {
				t.Fatalf("Run: %v, stop reason %q", err, w.Status().StopReason)
			}
			slices.Sort(stuck.IDs)
			slices.Sort(refs)
			if !slices.Equal(stuck.IDs, refs) {
				t.Errorf("ids %v, expected %v", stuck.IDs, refs)
			}
			var running *delayed.StillRunningError
			if others := errors.As(err, &running); others == tt.sound || others &&
				!slices.Equal(running.Funcs, []string{b.Name + ".other"}) {
				t.Errorf("Run: %v", err)
			}
			if n := b.Size("_processing:" + w.ID()); n < 2 {
				t.Errorf("%d claims stand, expected those of the stuck tasks", n)
			}
			if note := b.Do("HGET", b.Name+"_claims:"+w.ID(), "stopped"); note != nil {
				t.Error("the worker noted that it stops in good order: sweepers would count no deaths of stuck tasks")
			}
			close(leave)
			if !tt.sound {
				close(leaveOther)
			}
			b.Until("the worker is gone", func() bool { return len(h.of(event.WorkerStopped)) == 1 })
			last := h.of(event.WorkerStopped)[0]
			if !errors.Is(last.Err, stuck) || last.Reason != "stuck" || w.Status().State != state.Stopped {
				t.Errorf("the last event: %+v, expected the error that Run returns", last)
			}
			b.Check(redistest.Invariants{Idle: true})
			if n := b.counters()["processed"]; n != 3 {
				t.Errorf("processed %d, expected 3: late ends count", n)
			}
		})
	}
}

// A stop does not wait longer because of stuck handlers, and its error names them as still running.
func TestStopBesideAStuckHandler(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	f := b.fn("f", func() { entered <- struct{}{}; stuckOn(leave) })
	cfg := b.config()
	cfg.Timeout, cfg.StuckAfter, cfg.Grace, cfg.CancelGrace = time.Millisecond, time.Millisecond, 10*time.Millisecond,
		10*time.Millisecond
	w, err := delayed.NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	b.delay(f)
	await(b, "the handler", entered)
	b.Until("it is stuck", func() bool { return strings.Contains(b.log.String(), "handler is stuck") })
	cancel()
	var running *delayed.StillRunningError
	if err := await(b, "Run", result); !errors.As(err, &running) || len(running.Funcs) != 1 {
		t.Errorf("Run: %v", err)
	}
	close(leave)
	b.Until("the worker is gone", func() bool { return w.Status().State == state.Stopped })
}

func TestMaxStuckDefaults(t *testing.T) {
	for _, tt := range []struct{ concurrency, given, want int }{
		{1, 0, 1},
		{5, 0, 1},
		{100, 0, 10},
		{100, 3, 3},
		{100, -1, 0},
	} {
		cfg := delayed.WorkerConfig{Concurrency: tt.concurrency, MaxStuck: tt.given}
		if got := delayed.WithDefaults(cfg).MaxStuck; got != tt.want {
			t.Errorf("%d of %d: %d, expected %d", tt.given, tt.concurrency, got, tt.want)
		}
	}
	b := newBench(t)
	cfg := b.config()
	cfg.MaxStuck = 100_001
	if _, err := delayed.NewWorker(b.rdb, cfg); err == nil ||
		!strings.Contains(err.Error(), "WorkerConfig.MaxStuck is 100001: expected at most 100000") {
		t.Error(err)
	}
}
