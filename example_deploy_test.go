package delayed_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
)

// A function has moved to another package and takes a second argument now. Its worker runs the tasks of both versions,
// so producers and workers can be replaced in any order.
func ExampleOptional() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-optional", rdb)

	before := delayed.Func(func(userID int64) {}, delayed.Name("mail.Welcome"))
	now := delayed.Func(func(userID int64, lang string) { fmt.Printf("welcome %d in %q\n", userID, lang) },
		delayed.Name("letters.Welcome"), delayed.Alias("mail.Welcome"), delayed.Optional(1))

	if _, err := q.Delay(before, 1); err != nil { // by a producer of the old version
		panic(err)
	}
	if _, err := q.Delay(now, 2, "de"); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-optional"}, Concurrency: 1, StopWhenEmpty: true,
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(now); err != nil {
		panic(err)
	}
	if err := w.Run(context.Background()); err != nil {
		panic(err)
	}
	// Output:
	// welcome 1 in ""
	// welcome 2 in "de"
}

// Tasks that no worker knows wait in the queue's list of parked tasks.
func ExampleQueue_Parked() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-parked", rdb)
	ctx := context.Background()
	if _, err := q.Enqueue(ctx, delayed.NewGoTask("example.com/next/version.Greet", "Ada")); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-parked"}, StopWhenEmpty: true, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Run(ctx); err != nil {
		panic(err)
	}
	page, total, err := q.Parked(ctx, 0, 10)
	if err != nil {
		panic(err)
	}
	for _, t := range page {
		fmt.Println(t.Function, "waits:", t.Reason, "until", int(t.Due.Sub(t.At).Round(time.Hour).Hours()/24),
			"days after it was parked")
	}
	fmt.Println("in all:", total)
	// Output:
	// example.com/next/version.Greet waits: unknown function until 7 days after it was parked
	// in all: 1
}
