package delayed_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// exampleTB lets examples, which have no testing.T, use the tests' server.
type exampleTB struct{ testing.TB }

func (exampleTB) Helper()                           {}
func (exampleTB) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// redisURL stands for the address of a Redis server.
func redisURL() string { return redistest.Shared(exampleTB{}).URL() }

// quietLog keeps the worker's log out of the examples' output.
func quietLog() slog.Handler { return slog.NewTextHandler(io.Discard, nil) }

// runUntilIdle runs a worker until a queue is empty and everything has ended.
func runUntilIdle(w *delayed.Worker, q *delayed.Queue) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		for {
			n, err := q.Len(ctx)
			if err != nil || n == 0 && w.Status().Connected && w.Status().Busy == 0 {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
}
