package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// revoked returns how many ids are revoked.
func (b *bench) revoked() int { return b.Size("_revoked") }

// TestCancelPending cancels tasks that no worker has claimed: they never run.
func TestCancelPending(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			var ran sync.Map
			f := b.fn("f", func(n int) { ran.Store(n, true) })
			var refs []*delayed.Ref
			for i := range 10 {
				refs = append(refs, b.delay(f, i))
			}
			for i := 0; i < 10; i += 3 {
				b.Must(refs[i].Cancel(t.Context()))
				b.Must(refs[i].Cancel(t.Context())) // changes nothing
			}
			w, err := delayed.NewWorker(b.hearing(hears), b.config())
			b.Must(err)
			b.Must(w.Register(f))
			s := b.start(w)
			b.Idle()
			s.mustStop()
			for i := range 10 {
				if _, yes := ran.Load(i); yes != (i%3 != 0) {
					t.Errorf("task %d: ran %v", i, yes)
				}
			}
			if c := b.counters(); c["canceled"] != 4 || c["processed"] != 6 || b.revoked() != 0 {
				t.Errorf("counters %v, %d revoked", c, b.revoked())
			}
			b.Check(redistest.Invariants{Idle: true})
		})
	}
}

// TestCancelFiled cancels scheduled, retrying and parked tasks.
func TestCancelFiled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func() error { return errors.New("no luck") })
	cfg := b.config()
	cfg.Backoff = func(int) time.Duration { return time.Hour }
	b.work(cfg, f)
	scheduled := b.delayWith(b.q.With(delayed.In(time.Hour), delayed.UniqueKey("k", time.Hour),
		delayed.KeepResult(time.Hour)), f)
	retrying, unknown := b.delay(f), b.delay(b.fn("unknown", func() {}))
	b.Until("all are filed", func() bool { return b.Size("_scheduled")+b.Size("_retry")+b.Size("_parked") == 3 })
	waited := make(chan error, 1)
	go func() { waited <- scheduled.Wait(t.Context()) }()
	for _, ref := range []*delayed.Ref{scheduled, retrying, unknown} {
		b.Must(ref.Cancel(t.Context()))
	}
	for _, suffix := range []string{
		"_scheduled", "_retry", "_parked", "_tasks", "_info", "_locks", "_revoked",
	} {
		if n := b.Size(suffix); n != 0 {
			t.Errorf("N%s has %d elements", suffix, n)
		}
	}
	var failed *delayed.TaskError
	if err := await(b, "who waits", waited); !errors.Is(err, delayed.ErrCanceled) || !errors.As(err, &failed) ||
		failed.State != state.Canceled {
		t.Errorf("Wait: %v", err)
	}
	if where, err := scheduled.State(t.Context()); err != nil || where != state.Canceled {
		t.Errorf("State: %v, %v", where, err)
	}
	b.delayWith(b.q.With(delayed.In(time.Hour), delayed.UniqueKey("k", time.Hour)), f) // the lock is free
}

// TestCancelTooLate cancels tasks that are archived or completed, or have ended without a trace.
func TestCancelTooLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fails := b.fn("fails", func() error { return errors.New("no luck") })
	works := b.fn("works", func() {})
	b.work(b.config(), fails, works)
	archived, completed := b.delayWith(b.q.With(delayed.MaxRetry(0)), fails),
		b.delayWith(b.q.With(delayed.KeepResult(time.Hour)), works)
	b.Until("both have ended", func() bool { return b.Size("_archived") == 1 && b.Size("_completed") == 1 })
	for _, ref := range []*delayed.Ref{archived, completed} {
		if err := ref.Cancel(t.Context()); !errors.Is(err, delayed.ErrEnded) ||
			!strings.Contains(err.Error(), ref.String()) {
			t.Errorf("Cancel: %v", err)
		}
	}
	if err := b.q.Ref("").Cancel(t.Context()); !errors.Is(err, delayed.ErrNoID) {
		t.Errorf("without an id: %v", err)
	}
	if err := (*delayed.Ref)(nil).Cancel(t.Context()); !errors.Is(err, delayed.ErrNoID) {
		t.Errorf("nil: %v", err)
	}
	// An id that another task may use again, although nobody knows that its first task has ended.
	own := b.q.With(delayed.TaskID("own"))
	b.delayWith(own, works)
	b.Idle()
	b.Until("it has ended", func() bool { return b.Size("_locks") == 0 })
	b.Must(b.q.Ref("own").Cancel(t.Context()))
	b.delayWith(own, works)
	b.Idle()
	b.Until("it has run again", func() bool { return b.counters()["processed"] == 4 })
}

// TestCancelRunning: cancelling ends the contexts of handlers, whatever the handlers return then.
func TestCancelRunning(t *testing.T) {
	t.Parallel()
	for _, hears := range []bool{true, false} {
		t.Run(fmt.Sprintf("signals=%v", hears), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			started, causes := make(chan string, 10), make(chan error, 10)
			f := b.fn("f", func(ctx context.Context, what string) error {
				started <- what
				<-ctx.Done()
				causes <- context.Cause(ctx)
				switch what {
				case "returns nil":
					return nil
				case "panics":
					panic("stop")
				case "snoozes":
					return delayed.Snooze(time.Second)
				}
				return ctx.Err()
			})
			release := make(chan struct{})
			blind := b.fn("blind", func() error { started <- "blind"; <-release; return errors.New("no luck") })
			cfg := b.config()
			cfg.Concurrency = 10
			if hears {
				cfg.HeartbeatLife = time.Hour // too long for the heartbeat alone
			}
			w, err := delayed.NewWorker(b.hearing(hears), cfg)
			b.Must(err)
			b.Must(w.Register(f, blind))
			b.start(w)
			var refs []*delayed.Ref
			for _, what := range []string{"returns nil", "panics", "snoozes", "fails"} {
				refs = append(refs, b.delayWith(b.q.With(delayed.UniqueKey(what, time.Hour),
					delayed.KeepResult(time.Hour)), f, what))
			}
			refs = append(refs, b.delay(blind))
			for range refs {
				await(b, "all run", started)
			}
			for _, ref := range refs {
				b.Must(ref.Cancel(t.Context()))
			}
			for range len(refs) - 1 {
				if err := await(b, "the end of a context", causes); !errors.Is(err, delayed.ErrCanceled) {
					t.Errorf("cause %v", err)
				}
			}
			close(release)
			b.Idle()
			ctx, stop := context.WithTimeout(t.Context(), patience)
			defer stop()
			for i, ref := range refs[:4] {
				if err := ref.Wait(ctx); errors.Is(err, delayed.ErrCanceled) != (i > 0) || (err == nil) != (i == 0) {
					t.Errorf("%d: %v", i, err)
				}
			}
			b.Until("nothing is left",
				func() bool { return b.revoked()+b.Size("_locks")+b.Size("_retry")+b.Size("_scheduled") == 0 })
			if c := b.counters(); c["canceled"] != 4 || c["processed"] != 1 || c["retried"] != 0 || c["archived"] != 0 {
				t.Errorf("counters %v", c)
			}
		})
	}
}

// TestCancelUnknownToTheWorker: a task fails before its worker knows that it was cancelled, but the script that would
// store it for a retry knows.
func TestCancelUnknownToTheWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	started, release := make(chan struct{}, 4), make(chan struct{})
	f := b.fn("f", func(context.Context) error { started <- struct{}{}; <-release; return errors.New("no luck") })
	cfg := b.config()
	cfg.HeartbeatLife = time.Hour
	w, err := delayed.NewWorker(b.hearing(false), cfg)
	b.Must(err)
	b.Must(w.Register(f))
	b.start(w)
	for i, q := range []*delayed.Queue{b.q, b.q.With(delayed.MaxRetry(0))} {
		ref := b.delayWith(q, f)
		await(b, "it runs", started)
		b.Must(ref.Cancel(t.Context()))
		release <- struct{}{}
		b.Until("it has ended", func() bool { return b.counters()["canceled"] == i+1 })
		b.Idle()
	}
	if n := b.Size("_retry") + b.Size("_archived") + b.revoked(); n != 0 {
		t.Errorf("%d are left: %v", n, b.counters())
	}
}

// TestCancelOfDeadWorkersTask cancels a task whose worker has died, and which would be archived because of that.
func TestCancelOfDeadWorkersTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func() {})
	ref := b.delay(f)
	s := b.store
	_, err := s.Register(bg, "dead", time.Minute, "v")
	b.Must(err)
	got, err := s.Claim(bg, redisstore.ClaimCall{Worker: "dead", Batch: 1, Most: 1})
	if err != nil || len(got.Messages) != 1 {
		t.Fatal(got, err)
	}
	b.delay(f)
	b.Do("DEL", b.Name+"_worker:dead")
	b.Must(ref.Cancel(t.Context()))
	b.sweep()
	cfg := b.config()
	cfg.NoSweeper = true
	b.work(cfg, f)
	b.Until("it was swept and has ended", func() bool { return b.counters()["canceled"] == 1 })
	b.Idle()
	if c := b.counters(); c["processed"] != 1 || c["swept"] != 1 || b.revoked() != 0 {
		t.Errorf("counters %v, %d revoked", c, b.revoked())
	}
}

// TestCancelRace cancels tasks at random moments, many times. Each task ends once: it succeeds or it is cancelled, and
// if it was cancelled before it was claimed it does not run.
func TestCancelRace(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const rounds = 400
	var ended, failures [rounds]atomic.Int64
	f := b.fn("f", func(ctx context.Context, n int) error {
		if rand.IntN(2) == 0 && failures[n].Add(1) < 3 {
			return errors.New("once more")
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ended[n].Add(1)
		return nil
	})
	cfg := b.config()
	cfg.Concurrency = 8
	one, two := b.work(cfg, f), b.work(cfg, f)
	var refs [rounds]*delayed.Ref
	var all sync.WaitGroup
	for i := range rounds {
		all.Go(func() {
			q := b.q.With(delayed.KeepResult(time.Hour), delayed.UniqueKey(fmt.Sprint(i), time.Hour))
			if i%3 == 0 {
				q = q.With(delayed.In(time.Millisecond))
			}
			ref, err := q.Delay(f, i)
			if err != nil {
				t.Error(err)
				return
			}
			refs[i] = ref
			if err := ref.Cancel(t.Context()); err != nil && !errors.Is(err, delayed.ErrEnded) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	canceled := 0
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for i, ref := range refs {
		err := ref.Wait(ctx)
		switch {
		case err == nil && ended[i].Load() == 1:
		case errors.Is(err, delayed.ErrCanceled) && ended[i].Load() == 0:
			canceled++
		default:
			t.Errorf("task %d succeeded %d times, Wait says %v", i, ended[i].Load(), err)
		}
	}
	b.Until("nothing is left", func() bool {
		return b.Size("_locks")+b.Size("_scheduled")+b.Size("_retry")+b.Size("_archived") == 0
	})
	b.Idle()
	one.mustStop()
	two.mustStop()
	if n := b.counters()["canceled"]; n != canceled || canceled == 0 {
		t.Errorf("%d counted, %d seen", n, canceled)
	}
	// Those that had succeeded before they were cancelled.
	t.Logf("%d of %d were cancelled, %d are still revoked", canceled, rounds, b.revoked())
	b.Check(redistest.Invariants{Idle: true})
}
