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
	"github.com/godelayed/delayed/internal/redistest/controltest"
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
		Queues: delayed.Strict{"jobs"}, Concurrency: 2, HeartbeatLife: time.Second, SweepInterval: 100 * time.Millisecond,
		Backoff: func(int) time.Duration { return 50 * time.Millisecond },
		Logger:  delayed.SlogLogger(slog.NewTextHandler(io.Discard, nil)),
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
	for limit := time.After(20 * time.Second); len(seen) < 3; {
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

// TestControl cancels a task and pauses a queue.
func TestControl(t *testing.T) {
	controltest.Run(t, start(t, embedded.Config{}).Redis(), "control")
}
