package delayed_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	step, gone := make(chan string), make(chan error)
	f := b.fn("f", func(ctx context.Context) error {
		for note := range step {
			if note == "fail" {
				return errors.New("failed")
			}
			if note == "done" {
				return nil
			}
			gone <- delayed.Progress(ctx, int64(len(note)), 10, note)
		}
		return nil
	})
	cfg := b.config()
	cfg.Backoff = func(int) time.Duration { return time.Hour }
	w := b.work(cfg, f)
	say := func(note string) {
		t.Helper()
		step <- note
		if err := await(b, "Progress", gone); err != nil {
			t.Errorf("Progress: %v", err)
		}
	}
	read := func(ref *delayed.Ref, want string) {
		t.Helper()
		b.Until("others read "+want, func() bool {
			done, total, note, err := ref.Progress(b.within())
			if err != nil {
				t.Fatal(err)
			}
			return done == int64(len(want)) && note == want && total == 10
		})
	}
	ref := b.delay(f)
	say("one")
	read(ref, "one")
	for range 50 {
		say("sooner")
	}
	say("last")
	read(ref, "last")
	long := strings.Repeat("é", 4096)
	say(long)
	b.Until("others read as much of a long note as is kept", func() bool {
		done, _, note, err := ref.Progress(b.within())
		return err == nil && done == int64(len(long)) && note == long[:4096]
	})
	if info, err := ref.Info(b.within()); err != nil || info.State != state.Active || info.Function != b.Name+".f" ||
		info.Worker != w.ID() || info.EnqueuedAt.IsZero() {
		t.Errorf("found %+v, %v", info, err)
	}
	step <- "done"
	b.Until("nothing is left of it", func() bool { return b.Size("_results") == 0 })

	// The progress stays in the kept info.
	ref = b.delayWith(b.q.With(delayed.KeepResult(time.Hour)), f)
	say("kept")
	say("to the end")
	step <- "done"
	if err := ref.Wait(b.within()); err != nil {
		t.Error(err)
	}
	read(ref, "to the end")
	if where, _ := ref.State(b.within()); where != state.Completed {
		t.Errorf("its state is %v", where)
	}

	// It stays in the info of a failure as well.
	ref = b.delay(f)
	say("so far")
	step <- "fail"
	b.Until("it is to be retried", func() bool { where, _ := ref.State(b.within()); return where == state.Retry })
	read(ref, "so far")
	if n := b.Size("_results"); n != 1 {
		t.Errorf("%d results, expected that of the second task", n)
	}

	// A task that is given back is pending again.
	ref = b.delay(f)
	say("half")
	read(ref, "half")
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	b.Until("the worker stops", func() bool { return w.Status().State != state.Running })
	close(step)
	if err := await(b, "the worker's end", stopped); err != nil {
		t.Error(err)
	}
	if err := delayed.Progress(t.Context(), 1, 2, ""); err == nil ||
		!strings.Contains(err.Error(), "outside of a handler") {
		t.Errorf("outside of a handler: %v", err)
	}
}

func TestProgressOfLessThanNothing(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(ctx context.Context) error { return delayed.Progress(ctx, -1, -10, "less than nothing") })
	b.work(b.config(), f)
	ref := b.delayWith(b.q.With(delayed.KeepResult(time.Hour)), f)
	b.Must(ref.Wait(b.within()))
	done, total, note, err := ref.Progress(b.within())
	if done != 0 || total != 0 || note != "less than nothing" || err != nil {
		t.Errorf("%d of %d, %q, %v", done, total, note, err)
	}
}

// TestProgressOfReleased gives back a task that has reported progress: the report is deleted.
func TestProgressOfReleased(t *testing.T) {
	b := newBench(t)
	began := make(chan struct{})
	f := b.fn("f", func(ctx context.Context) error {
		if err := delayed.Progress(ctx, 1, 2, "half"); err != nil {
			t.Error(err)
		}
		close(began)
		<-ctx.Done()
		if err := delayed.Progress(context.WithoutCancel(ctx), 2, 2, "late"); err != nil {
			t.Error(err)
		}
		return context.Cause(ctx)
	})
	cfg := b.config()
	cfg.Grace = -1
	w := b.work(cfg, f)
	ref := b.delay(f)
	await(b, "the report", began)
	w.mustStop()
	if n, results := b.Size(""), b.Size("_results"); n != 1 || results != 0 {
		t.Errorf("%d tasks are pending and %d reports are left, expected 1 and 0", n, results)
	}
	if where, err := ref.State(b.within()); where != state.Unknown || err != nil {
		t.Errorf("its state is %v, %v", where, err)
	}
	b.Check(redistest.Invariants{})
}

// TestProgressOfLost reports for a claim that another worker may have.
func TestProgressOfLost(t *testing.T) {
	b := newBench(t)
	began, gone := make(chan struct{}), make(chan error)
	f := b.fn("f", func(ctx context.Context) {
		began <- struct{}{}
		<-began
		gone <- delayed.Progress(ctx, 1, 2, "")
	})
	w := b.work(b.config(), f)
	b.delay(f)
	await(b, "the handler", began)
	b.Do("DEL", b.Name+"_processing:"+w.ID())
	began <- struct{}{}
	if err := await(b, "Progress", gone); !errors.Is(err, delayed.ErrLost) {
		t.Errorf("Progress: %v, expected ErrLost", err)
	}
	if n := b.Size("_results"); n != 0 {
		t.Errorf("%d reports", n)
	}
	w.mustStop()
}
