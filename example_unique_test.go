package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
)

// While a call waits or runs, the same call is refused, unless the caller asks for the existing task.
func ExampleUnique() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-unique", rdb).With(delayed.Unique(time.Hour))
	first, _ := q.Delay(Welcome, 42, "en")
	_, err := q.Delay(Welcome, 42, "en")
	var duplicate *delayed.DuplicateError
	fmt.Println(errors.As(err, &duplicate) && duplicate.ID == first.ID())

	again, err := q.With(delayed.OnConflict(delayed.Skip)).Delay(Welcome, 42, "en")
	fmt.Println(again.ID() == first.ID(), err)

	_, err = q.Delay(Welcome, 43, "en") // another call
	fmt.Println(err)
	// Output:
	// true
	// true <nil>
	// <nil>
}

// The tasks of one invoice run one after the other, and the last call counts.
func ExampleUniqueKey() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-key", rdb)
	invoice := q.With(delayed.UniqueKey("invoice:17", time.Hour), delayed.In(time.Minute),
		delayed.OnConflict(delayed.Replace))
	for _, lang := range []string{"en", "de", "fr"} {
		if _, err := invoice.Delay(Welcome, 17, lang); err != nil {
			panic(err)
		}
	}
	_, err := q.With(delayed.UniqueKey("invoice:17", time.Hour)).Delay(Welcome, 17, "it")
	fmt.Println(errors.Is(err, delayed.ErrDuplicate))
	// Output: true
}

// A function may be unique by default. With UntilStart, a call that comes while it runs is not lost: the function runs
// once more.
func ExampleUntilStart() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-until-start", rdb)
	refresh := delayed.Func(func() {}, delayed.Name("example.refresh"),
		delayed.Unique(time.Hour), delayed.UntilStart(), delayed.OnConflict(delayed.Skip))
	first, _ := q.Delay(refresh)
	second, _ := q.Delay(refresh)
	fmt.Println(first.ID() == second.ID())
	// Output: true
}

// However often a document is saved, it is indexed once, a while after the last change.
func ExampleDebounce() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	indexed := make(chan int, 1)
	index := delayed.Func(func(_ string, revision int) { indexed <- revision }, delayed.Name("example.index"))
	q := delayed.NewQueue("example-debounce", rdb)
	for revision := 1; revision <= 10; revision++ {
		document := q.With(delayed.Debounce(50*time.Millisecond), delayed.UniqueKey("index:readme", time.Hour))
		if _, err := document.Delay(index, "readme", revision); err != nil {
			panic(err)
		}
	}
	w, _ := delayed.NewWorker(rdb,
		delayed.WorkerConfig{Queues: delayed.Strict{"example-debounce"}, Logger: delayed.SlogLogger(quietLog())})
	if err := w.Register(index); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()
	fmt.Println("revision", <-indexed)
	stop()
	fmt.Println(<-stopped)
	// Output:
	// revision 10
	// <nil>
}

// An id can be used only once: the task of a payment runs once, however often the payment is announced.
func ExampleTaskID() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-id", rdb)
	for range 2 {
		_, err := q.With(delayed.TaskID("payment-17")).Delay(Welcome, 17, "en")
		fmt.Println(errors.Is(err, delayed.ErrDuplicate))
	}
	// Output:
	// false
	// true
}

// The urgent task goes first.
func ExampleFront() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-front", rdb)
	ran := make(chan string, 2)
	run := delayed.Func(func(name string) { ran <- name }, delayed.Name("example.run"))
	for _, queue := range []*delayed.Queue{q, q.With(delayed.Front())} {
		if _, err := queue.Delay(run, fmt.Sprint("first enqueued: ", queue == q)); err != nil {
			panic(err)
		}
	}
	w, _ := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-front"}, Concurrency: 1, StopWhenEmpty: true,
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err := w.Register(run); err != nil {
		panic(err)
	}
	fmt.Println(w.Run(context.Background()))
	fmt.Println(<-ran)
	fmt.Println(<-ran)
	// Output:
	// <nil>
	// first enqueued: false
	// first enqueued: true
}
