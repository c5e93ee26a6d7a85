package delayed_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
)

// TestDebounceRunsTheLast: a burst of calls runs once, with the arguments of the last. All calls have one key, whether
// the function or the call gives it.
func TestDebounceRunsTheLast(t *testing.T) {
	t.Parallel()
	debounce, key := delayed.Debounce(200*time.Millisecond), delayed.UniqueKey("k", time.Hour)
	for name, opts := range map[string]struct {
		call []delayed.Option
		fn   []delayed.FuncOption
	}{
		"key after":       {call: []delayed.Option{debounce, key}},
		"key before":      {call: []delayed.Option{key, debounce}},
		"key of function": {call: []delayed.Option{debounce}, fn: []delayed.FuncOption{key}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			debounced(t, opts.call, opts.fn...)
		})
	}
}

// debounced delays a burst of calls with options that debounce them.
func debounced(t *testing.T, call []delayed.Option, fn ...delayed.FuncOption) {
	t.Helper()
	b := newBench(t)
	ran := make(chan int, 100)
	f := b.fn("f", func(n int) { ran <- n }, fn...)
	q := b.q.With(call...)
	var group sync.WaitGroup
	for p := range 10 {
		group.Go(func() {
			for i := range 20 {
				if _, err := q.Delay(f, 100*p+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	b.delayWith(q, f, -1)
	b.work(b.config(), f) // not earlier, because on a slow machine the burst could pause for long enough
	if n := await(b, "the task", ran); n != -1 {
		t.Errorf("%d ran", n)
	}
	b.unlocked()
	b.Idle()
	if len(ran) > 0 {
		t.Errorf("%d more ran", len(ran))
	}
}

// TestReplacedWhilePending: a worker drops pending tasks that others have replaced.
func TestReplacedWhilePending(t *testing.T) {
	for name, opts := range map[string][]delayed.Option{"until end": nil, "until start": {delayed.UntilStart()}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ran := make(chan int, 100)
			f := b.fn("f", func(n int) { ran <- n })
			q := b.q.With(append(opts, delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.Replace))...)
			for i := range 10 {
				b.delayWith(q, f, i)
			}
			if b.Size("") != 10 || b.Size("_revoked") != 9 {
				t.Errorf("%d pending, %d revoked", b.Size(""), b.Size("_revoked"))
			}
			b.work(b.config(), f)
			if n := await(b, "the last", ran); n != 9 {
				t.Errorf("%d ran", n)
			}
			b.Idle()
			b.unlocked()
			if len(ran) > 0 || b.Size("_revoked") > 0 {
				t.Errorf("%d ran as well, %d are revoked still", len(ran), b.Size("_revoked"))
			}
		})
	}
}

// TestReplacedBetweenClaimAndStart: a replacement that was unknown when a task was claimed is known when the task
// starts.
func TestReplacedBetweenClaimAndStart(t *testing.T) {
	b := newBench(t)
	began, goOn, ran := make(chan struct{}), make(chan struct{}), make(chan int, 10)
	long := b.fn("long", func() { close(began); <-goOn })
	f := b.fn("f", func(n int) { ran <- n })
	q := b.q.With(delayed.UniqueKey("k", time.Hour), delayed.UntilStart(), delayed.OnConflict(delayed.Replace))
	b.delay(long)
	b.delayWith(q, f, 1)
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch = 1, 1
	b.work(cfg, long, f)
	await(b, "the long task", began)
	b.Until("the task is claimed", func() bool { return b.Size("") == 0 })
	b.delayWith(q, f, 2)
	close(goOn)
	if n := await(b, "the second task", ran); n != 2 {
		t.Errorf("%d ran", n)
	}
	b.Idle()
	b.unlocked()
	if len(ran) > 0 || b.Size("_revoked") > 0 {
		t.Errorf("%d ran as well, %d are revoked still", len(ran), b.Size("_revoked"))
	}
}

// TestReplacedWhileRunning: a replacement ends the context of the running task.
func TestReplacedWhileRunning(t *testing.T) {
	b := newBench(t)
	began, ended := make(chan int, 2), make(chan error, 2)
	f := b.fn("f", func(ctx context.Context, n int) error {
		began <- n
		if n == 2 {
			return nil
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	q := b.q.With(delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.Replace))
	b.delayWith(q, f, 1)
	b.work(b.config(), f)
	await(b, "the first task", began)
	b.delayWith(q, f, 2)
	if err := await(b, "its end", ended); !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("the cause is %v", err)
	}
	if n := await(b, "the second task", began); n != 2 {
		t.Errorf("%d ran", n)
	}
	b.Idle()
	b.unlocked()
	if n := b.Size("_retry") + b.Size("_archived") + b.Size("_revoked"); n > 0 {
		t.Errorf("%d tasks are retried, archived or revoked", n)
	}
}

// TestWaitForATaskThatIsReplaced: the wait ends, wherever the task waits. Nothing is kept of a replaced scheduled task,
// so a later look would not find its end.
func TestWaitForATaskThatIsReplaced(t *testing.T) {
	for name, opts := range map[string][]delayed.Option{"scheduled": {delayed.In(time.Hour)}, "pending": nil} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
			f := b.fn("f", func(int) {})
			q := b.q.With(append(opts, delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.Replace),
				delayed.KeepResult(time.Hour))...)
			ref := b.delayWith(q, f, 1)
			waited := make(chan error, 1)
			go func() { waited <- ref.Wait(b.within()) }()
			b.Until("it waits", func() bool { return b.subscribed(ref.ID()) == 1 })
			b.delayWith(q, f, 2)
			b.work(b.config(), f)
			var failed *delayed.TaskError
			if err := await(b, "the end of Wait", waited); !errors.Is(err, delayed.ErrCanceled) ||
				!errors.As(err, &failed) ||
				failed.State != state.Canceled {
				t.Errorf("Wait: %v", err)
			}
		})
	}
}

// Redis keeps the cancellation of a task as long as it would have kept its result or info.
func TestCancelledTaskIsKeptAsLongAsItsEnd(t *testing.T) {
	for what, opts := range map[string][]delayed.FuncOption{
		"a result":  {delayed.KeepResult(time.Hour)},
		"retention": {delayed.Retention(time.Hour)},
		"both":      {delayed.KeepResult(time.Hour), delayed.Retention(2 * time.Hour)},
	} {
		b := newBench(t)
		ref := b.delayWith(b.q.With(delayed.In(time.Hour)), b.fn("f", func() int { return 1 }, opts...))
		b.Must(ref.Cancel(t.Context()))
		if info, err := ref.Info(t.Context()); err != nil || info.State != state.Canceled {
			t.Errorf("%s: %v, %v, expected that it was cancelled", what, info.State, err)
		}
	}
}
