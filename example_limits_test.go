package delayed_test

import (
	"context"
	"fmt"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
)

// A worker that does everything there is to do and stops, as for a cron job. Other settings stop it after some tasks,
// after a while, or when the process has grown too large.
func ExampleWorkerConfig_stopWhenEmpty() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-empty", rdb)
	greet := delayed.Func(func(name string) { fmt.Println("hello", name) }, delayed.Name("greet"))
	for _, name := range []string{"Ada", "Grace"} {
		if _, err := q.Delay(greet, name); err != nil {
			panic(err)
		}
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-empty"}, Concurrency: 1, StopWhenEmpty: true,
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(greet); err != nil {
		panic(err)
	}
	fmt.Println("Run:", w.Run(context.Background()), "because:", w.Status().StopReason)
	// Output:
	// hello Ada
	// hello Grace
	// Run: <nil> because: empty
}

// A listener receives events, here those of the worker itself.
func ExampleWorker_Listen() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-listen"}, Once: true, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	err = w.Listen(func(e delayed.Event) {
		switch e.Kind {
		case event.WorkerStarted:
			fmt.Println(e.Kind)
		case event.WorkerStopping:
			fmt.Println(e.Kind, "because:", e.Reason)
		default: // later versions may have more kinds
		}
	})
	if err != nil {
		panic(err)
	}
	if err := w.Run(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// worker started
	// worker stopping because: empty
}
