// Isolated shows that a task can be killed, and what it costs the worker: nothing. It needs nothing but Go:
//
//	go run ./examples/isolated
//
// Functions with the option Isolated run in child processes of the worker. One here never returns and does not look at
// its context, one ends its process, and one does what it should.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/embedded"
)

func hang() {
	select {} // no goroutine can be stopped here, but a process can be killed
}

func crash() { os.Exit(1) }

func greet(name string) (string, error) {
	return fmt.Sprintf("hello %s, says process %d", name, os.Getpid()), nil
}

var (
	hanging   = delayed.Func(hang, delayed.Name("demo.hang"), delayed.Isolated(), delayed.MaxRetry(0))
	crashing  = delayed.Func(crash, delayed.Name("demo.crash"), delayed.Isolated(), delayed.MaxRetry(0))
	greetings = delayed.Func(greet, delayed.Name("demo.greet"), delayed.Isolated())
)

func main() {
	// In a child this makes the worker, runs the tasks that the parent sends, and never returns. The worker of a child
	// does not connect, so any address will do.
	delayed.ChildMain(func() (*delayed.Worker, error) {
		rdb, err := delayed.Dial("redis://localhost")
		if err != nil {
			return nil, err
		}
		return newWorker(rdb)
	})
	if err := demonstrate(); err != nil {
		fmt.Fprintln(os.Stderr, "isolated:", err)
		os.Exit(1)
	}
}

// newWorker makes the worker of the program and those of its children.
func newWorker(rdb *delayed.Store) (*delayed.Worker, error) {
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"demo"}, Concurrency: 3, Logger: quiet,
		Isolation: delayed.Isolation{Grace: 500 * time.Millisecond, Memory: 512 << 20},
	})
	if err != nil {
		return nil, err
	}
	return w, w.Register(hanging, crashing, greetings)
}

func demonstrate() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := embedded.Start(embedded.Config{})
	if err != nil {
		return err
	}
	defer server.Close()
	worker, err := newWorker(server.Redis())
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	stopped := make(chan error, 1)
	go func() { stopped <- worker.Run(running) }()

	fmt.Printf("The worker is process %d.\n", os.Getpid())
	q := delayed.NewQueue("demo", server.Redis()).With(delayed.Timeout(time.Second), delayed.KeepResult(time.Minute))
	for _, fn := range []*delayed.Function{hanging, crashing} {
		start := time.Now()
		ref, err := q.Delay(fn)
		if err != nil {
			return err
		}
		fmt.Printf("\n%v: after %v\n", ref.Wait(ctx), time.Since(start).Round(100*time.Millisecond))
	}
	ref, err := q.Delay(greetings, "world")
	if err != nil {
		return err
	}
	text, err := delayed.Await[string](ctx, ref)
	if err != nil {
		return err
	}
	fmt.Printf("\nThe worker goes on: %s.\n", text)
	stop()
	return <-stopped
}
