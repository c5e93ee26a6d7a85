// Package controltest tries out on any kind of server what reaches workers by signals: a cancellation and a pause.
package controltest

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
)

// patience bounds every wait.
const patience = 20 * time.Second

// Run cancels a running task, pauses the queue, resumes it and restarts its worker. The worker's heartbeat comes too
// late to tell it of any of this.
func Run(t *testing.T, rdb *delayed.Store, queue string) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	started, causes := make(chan int), make(chan error, 1)
	waits := delayed.Func(func(ctx context.Context, n int) error {
		started <- n
		if n == 0 {
			<-ctx.Done()
			causes <- context.Cause(ctx)
		}
		return ctx.Err()
	}, delayed.Name("controltest.waits"))
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{queue}, Concurrency: 1, HeartbeatLife: time.Hour, NoSweeper: true,
		Logger: delayed.SlogLogger(slog.NewTextHandler(io.Discard, nil)),
	})
	must(t, err)
	must(t, w.Register(waits))
	paused := make(chan event.Kind, 2)
	must(t, w.OnEvent(func(e delayed.Event) {
		if e.Kind == event.QueuePaused || e.Kind == event.QueueResumed {
			paused <- e.Kind
		}
	}))
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()

	q := delayed.NewQueue(queue, rdb)
	ref, err := q.With(delayed.KeepResult(time.Hour)).Delay(waits, 0)
	must(t, err)
	receive(ctx, t, "the task runs", started)
	must(t, ref.Cancel(ctx))
	if err := receive(ctx, t, "its context ends", causes); !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("cause %v", err)
	}
	if err := ref.Wait(ctx); !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("Wait: %v", err)
	}

	must(t, q.Pause(ctx))
	if kind := receive(ctx, t, "the worker knows that the queue is paused", paused); kind != event.QueuePaused {
		t.Errorf("found %v", kind)
	}
	gone, err := q.Delay(waits, 1)
	must(t, err)
	_, err = q.Delay(waits, 2)
	must(t, err)
	must(t, gone.Cancel(ctx))
	select {
	case n := <-started:
		t.Errorf("task %d was started while the queue was paused", n)
	default:
	}
	must(t, q.Resume(ctx))
	if n := receive(ctx, t, "the task runs that was not canceled", started); n != 2 {
		t.Errorf("task %d runs", n)
	}
	must(t, q.Restart(ctx))
	if err := receive(ctx, t, "the worker stops", ended); err != nil || w.Status().StopReason != "restart" {
		t.Errorf("Run: %v, reason %q", err, w.Status().StopReason)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func receive[T any](ctx context.Context, t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-ctx.Done():
		t.Fatalf("waited in vain until %s", what)
		panic("unreachable")
	}
}
