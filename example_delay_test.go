package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
)

// Welcome is an ordinary function.
func Welcome(_ context.Context, userID int64, lang string) error {
	fmt.Println("welcome", userID, "in", lang)
	called <- struct{}{}
	return nil
}

// A function is delayed by one process and run by another. Here both are one.
func Example() {
	rdb, err := delayed.Dial(redisURL())
	if err != nil {
		panic(err)
	}
	defer rdb.Close()

	q := delayed.NewQueue("example-mail", rdb)
	if _, err := q.Delay(Welcome, 42, "en"); err != nil {
		panic(err)
	}

	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-mail"},
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Welcome); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: welcome 42 in en
}

// Arguments are checked where Delay is called.
func ExampleArgumentError() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	_, err := delayed.NewQueue("example-checked", rdb).Delay(Welcome, "forty-two", "en")
	var misfit *delayed.ArgumentError
	if errors.As(err, &misfit) {
		fmt.Printf("argument %d: expected %s, found %s\n", misfit.Index+1, misfit.Want, misfit.Got)
	}
	// Output: argument 1: expected int64, found string
}

// Options come before the call, so that they do not mix with the function's arguments.
func ExampleQueue_With() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-options", rdb)
	ref, err := q.With(delayed.In(time.Hour), delayed.MaxRetry(5), delayed.TaskID("welcome-42")).Delay(Welcome, 42,
		"en")
	fmt.Println(ref, err)
	pending, _ := q.Len(context.Background())
	fmt.Println(pending, "pending")
	// Output:
	// example-options/welcome-42 <nil>
	// 0 pending
}

// Many calls cost little more than one.
func ExampleQueue_DelayMany() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-many", rdb)
	refs, err := q.DelayMany(context.Background(), delayed.Call(Welcome, 1, "en"), delayed.Call(Welcome, 2, "de"))
	fmt.Println(len(refs), err)
	// Output: 2 <nil>
}

// A function that this program does not link is named by its path.
func ExampleNewGoTask() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-path", rdb)
	_, err := q.Enqueue(context.Background(), delayed.NewGoTask("example.com/app/mail.Welcome", 42, "en"))
	fmt.Println(err)
	// Output: <nil>
}

// A Python worker, such as that of keakon's package delayed, runs mail/tasks.py's function welcome.
func ExampleNewPyTask() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-python", rdb)
	task := delayed.NewPyTask("mail.tasks:welcome", []any{42}, map[string]any{"lang": "en"})
	_, err := q.With(delayed.MaxRetry(3)).Enqueue(context.Background(), task)
	fmt.Println(err)
	// Output: <nil>
}
