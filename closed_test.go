package delayed_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
)

// runs returns everything that has a Run, on one handle.
func (b *bench) runs(rdb *delayed.Redis) map[string]func(context.Context) error {
	b.T.Helper()
	w, err := delayed.NewWorker(rdb, b.config())
	if err != nil {
		b.T.Fatal(err)
	}
	sweeper, err := delayed.NewSweeper(rdb,
		delayed.SweeperConfig{Queues: []string{b.Name}, Interval: 10 * time.Millisecond, Logger: b.log.Logger()})
	if err != nil {
		b.T.Fatal(err)
	}
	scheduler, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: b.Name, Logger: b.log.Logger()})
	if err != nil {
		b.T.Fatal(err)
	}
	return map[string]func(context.Context) error{"worker": w.Run, "sweeper": sweeper.Run, "scheduler": scheduler.Run}
}

// TestRunOnAClosedHandle: Run returns an error and does not wait for its context, because it can do nothing any more.
func TestRunOnAClosedHandle(t *testing.T) {
	for _, when := range []string{"before", "meanwhile"} {
		b := newBench(t)
		rdb, err := delayed.Dial(b.Server.URL())
		if err != nil {
			t.Fatal(err)
		}
		runs := b.runs(rdb.WithPrefix("p:"))
		if when == "before" {
			rdb.Close()
		}
		ended := make(chan error)
		for name, run := range runs {
			go func() {
				err := run(t.Context())
				if !errors.Is(err, delayed.ErrClosed) {
					t.Errorf("%s, closed %s: found %v", name, when, err)
				}
				ended <- err
			}()
		}
		if when == "meanwhile" {
			b.Until("the worker is there", func() bool { n := b.Int("EXISTS", "p:"+b.Name+"_workers"); return n == 1 })
			rdb.Close()
		}
		for range runs {
			_ = await(b, "Run to return", ended)
		}
		if when == "before" && b.log.String() != "" {
			t.Errorf("something was tried on a closed handle:\n%s", b.log)
		}
		b.Do("DEL", "p:"+b.Name+"_workers")
	}
}

// TestClosedHandleWithTasks: Redis cannot be told of a task that ends after the handle was closed. Run does not wait
// for that, and its error names both.
func TestClosedHandleWithTasks(t *testing.T) {
	b := newBench(t)
	rdb, err := delayed.Dial(b.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.CancelGrace = time.Hour
	w, err := delayed.NewWorker(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	started, end := make(chan struct{}), make(chan struct{})
	f := b.fn("f", func() { close(started); <-end })
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- w.Run(t.Context()) }()
	b.delay(f)
	await(b, "the task", started)
	rdb.Close()
	b.Until("the worker stops", func() bool { return w.Status().State == state.Stopping })
	close(end)
	if err := await(b, "Run", ended); !errors.Is(err, delayed.ErrClosed) ||
		!strings.Contains(err.Error(), "has not confirmed how 1 tasks ended") {
		t.Errorf("found %v", err)
	}
	if reason := w.Status().StopReason; reason != "closed" {
		t.Errorf("stopped because of %q", reason)
	}
}

// TestDeadlineIsACleanStop: a context that ends by a deadline stops Run like a cancelled one, without logging an error.
func TestDeadlineIsACleanStop(t *testing.T) {
	b := newBench(t)
	var all sync.WaitGroup
	for i := range 4 {
		for name, run := range b.runs(b.rdb) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(40+10*i)*time.Millisecond)
				defer cancel()
				if err := run(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	all.Wait()
	if log := b.log.String(); strings.Contains(log, "cannot") || strings.Contains(log, "level=error") {
		t.Errorf("found\n%s", b.log)
	}
}

// TestCloseEndsSubscriptions: a caller that waits for a signal looks again, and finds that the handle is closed.
func TestCloseEndsSubscriptions(t *testing.T) {
	b := newBench(t)
	c, end := delayed.Signals(b.rdb).Subscribe(b.Name)
	defer end()
	if got := await(b, "the subscription", c); got != "" {
		t.Fatalf("signal %q, expected that the subscription holds", got)
	}
	b.Must(b.rdb.Close())
	if got := await(b, "the end", c); got != "" {
		t.Errorf("signal %q, expected the demand to look again", got)
	}
}
