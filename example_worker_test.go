package delayed_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/godelayed/delayed"
)

// Sum is generic; all its instances have the same path, so each needs a name.
func Sum[T int | float64](values ...T) {
	var sum T
	for _, v := range values {
		sum += v
	}
	fmt.Println("sum", sum)
	called <- struct{}{}
}

// SumInts is used by both producer and worker.
var SumInts = delayed.Func(Sum[int], delayed.Name("sum.int"), delayed.Alias("old/path.SumInts"), delayed.MaxRetry(5))

func ExampleFunc() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-func", rdb)
	if _, err := q.Delay(SumInts, 1, 2, 3); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-func"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(SumInts); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: sum 6
}

// Mailer is a handler with a dependency.
type Mailer struct{ from string }

// Send is delayed as (*Mailer).Send; the worker provides the receiver.
func (m *Mailer) Send(_ context.Context, userID int64) error {
	fmt.Println("mail from", m.from, "to", userID)
	called <- struct{}{}
	return nil
}

func ExampleWorker_RegisterMethods() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-methods", rdb)
	if _, err := q.Delay((*Mailer).Send, 42); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-methods"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.RegisterMethods(&Mailer{from: "shop"}); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: mail from shop to 42
}

// While both queues have tasks, the worker takes three mails for each report.
func ExampleWeighted() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	_, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Weighted{"mail": 3, "reports": 1}})
	fmt.Println(err)
	// Output: <nil>
}

// A sweeper without a worker gives back the tasks of dead workers where no worker of this package runs.
func ExampleNewSweeper() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	s, err := delayed.NewSweeper(rdb, delayed.SweeperConfig{
		Queues: []string{"example-legacy"}, Interval: time.Second, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(s.Run(ctx))
	// Output: <nil>
}

// Logs go to a handler of log/slog.
func ExampleSlogLogger() {
	h := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	delayed.SlogLogger(h).WithField("queue", "mail").Warn("task parked")
	// Output: level=WARN msg="task parked" queue=mail
}
