package embedded_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/embedded"
)

// done has the names of the tasks that ran to their end.
var done = make(chan string, 10)

func greet(name string) { done <- name }

var failures = 1

func failOnce(name string) error {
	if failures--; failures >= 0 {
		return errors.New("not yet")
	}
	done <- name
	return nil
}

// TestWorker runs tasks now, later and again.
func TestWorker(t *testing.T) {
	srv := start(t, embedded.Config{})
	w, err := delayed.NewWorker(srv.Redis(), delayed.WorkerConfig{
		Queues: delayed.Strict{"jobs"}, Concurrency: 2, HeartbeatLife: time.Second,
		SweepInterval: 100 * time.Millisecond,
		Backoff:       func(int) time.Duration { return 50 * time.Millisecond },
		Logger:        delayed.SlogLogger(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(greet, failOnce); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	q := delayed.NewQueue("jobs", srv.Redis())
	for name, delay := range map[string]func(name string) error{
		"now": func(name string) error { _, err := q.Delay(greet, name); return err },
		"later": func(name string) error {
			_, err := q.With(delayed.In(1500*time.Millisecond)).Delay(greet, name)
			return err
		},
		"again": func(name string) error { _, err := q.Delay(failOnce, name); return err },
	} {
		if err := delay(name); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	seen := map[string]bool{}
	for limit := time.After(60 * time.Second); len(seen) < 3; {
		select {
		case name := <-done:
			if seen[name] {
				t.Errorf("%s ran twice", name)
			}
			seen[name] = true
		case <-limit:
			t.Fatalf("within 20 s only %v ran", seen)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}

// TestControl cancels a task that runs, and pauses and resumes its queue. The worker's heartbeat comes too late to tell
// it of any of this.
func TestControl(t *testing.T) {
	srv := start(t, embedded.Config{})
	ctx, stop := context.WithTimeout(t.Context(), 60*time.Second)
	defer stop()
	started, causes := make(chan int), make(chan error, 1)
	waits := delayed.Func(func(ctx context.Context, n int) error {
		started <- n
		if n == 0 {
			<-ctx.Done()
			causes <- context.Cause(ctx)
		}
		return ctx.Err()
	}, delayed.Name("waits"))
	w, err := delayed.NewWorker(srv.Redis(), delayed.WorkerConfig{
		Queues: delayed.Strict{"control"}, Concurrency: 1, HeartbeatLife: time.Hour,
		Logger: delayed.SlogLogger(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(waits); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	q := delayed.NewQueue("control", srv.Redis())
	ref, err := q.With(delayed.KeepResult(time.Hour)).Delay(waits, 0)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-started:
	case <-ctx.Done():
		t.Fatal("the task does not run")
	}
	if err := ref.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ref.Wait(ctx); !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("Wait: %v", err)
	}
	if err := <-causes; !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("cause %v", err)
	}
	if err := q.Pause(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Delay(waits, 1); err != nil {
		t.Fatal(err)
	}
	if err := q.Resume(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-started:
	case <-ctx.Done():
		t.Fatal("the task does not run after the queue was resumed")
	}
	if err := q.Restart(ctx); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil || w.Status().StopReason != "restart" {
		t.Errorf("Run: %v, reason %q", err, w.Status().StopReason)
	}
}
