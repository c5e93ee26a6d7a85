package delayed_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

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

// called receives an element from each function of the examples.
var called = make(chan struct{}, 10)

// runOne runs a worker until a function was called. A real program calls w.Run(ctx) with a context that ends with its
// signals.
func runOne(w *delayed.Worker) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer cancel()
		<-called
	}()
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
}
