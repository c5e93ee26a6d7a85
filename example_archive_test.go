package delayed_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/godelayed/delayed"
)

// Charge fails for customers that it does not know.
func Charge(customer string, cents int64) error {
	if customer == "" {
		return errors.New("no customer")
	}
	fmt.Println("charged", customer, cents)
	called <- struct{}{}
	return nil
}

// A task that has failed for good waits in the archive, until somebody runs it again, perhaps with other arguments.
func ExampleRef_RunAgainWith() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	ctx := context.Background()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-archive"}, ArchiveMax: 1000, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Charge); err != nil {
		panic(err)
	}
	q := delayed.NewQueue("example-archive", rdb)
	ref, err := q.With(delayed.MaxRetry(0)).Delay(Charge, "", 995)
	if err != nil {
		panic(err)
	}
	go func() {
		for { // until the task is there
			tasks, _, err := q.Archived(ctx, 0, 10)
			if err != nil {
				panic(err)
			}
			for _, task := range tasks {
				fmt.Println(task.State, task.Error, task.ID == ref.ID())
				if err := q.Ref(task.ID).RunAgainWith(ctx, delayed.Call(Charge, "Ada", 995)); err != nil {
					panic(err)
				}
				return
			}
		}
	}()
	runOne(w)
	// Output:
	// archived no customer true
	// charged Ada 995
}

// Middleware notes who was charged, although it does not know the function: argument 0 is the customer.
func ExampleTask_Arg() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-arg"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	err = w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error {
			var customer string
			if err := t.Arg(0, &customer); err != nil {
				return err
			}
			fmt.Println("customer", customer, "with", t.Options())
			return next(ctx, t)
		}
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Charge); err != nil {
		panic(err)
	}
	q := delayed.NewQueue("example-arg", rdb)
	if _, err := q.With(delayed.MaxRetry(3), delayed.Header("tenant", "shop")).Delay(Charge, "Ada", 995); err != nil {
		panic(err)
	}
	runOne(w)
	// Output:
	// customer Ada with [MaxRetry(3) Header("tenant", "shop")]
	// charged Ada 995
}
