package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
)

// errNoSuchUser is permanent: trying again does not help.
var errNoSuchUser = errors.New("no such user")

// Deliver decides by its error what happens to the task.
func Deliver(_ context.Context, userID int) error {
	switch userID {
	case 1:
		return delayed.Snooze(time.Minute) // not yet
	case 2:
		return delayed.Discard(fmt.Errorf("user %d: %w", userID, errNoSuchUser)) // never
	case 3:
		return delayed.Drop(nil) // not needed any more
	case 4:
		return delayed.RetryIn(30*time.Second, errors.New("rate limit")) // as the server says
	}
	return errors.New("connection refused") // after the usual backoff
}

func handle(userID int) {
	err := Deliver(context.Background(), userID)
	fmt.Println(userID, err)
}

// A handler decides by its error.
func ExampleDiscard() {
	for userID := range 5 {
		handle(userID)
	}
	fmt.Println(errors.Is(Deliver(context.Background(), 2), errNoSuchUser), delayed.Discard(nil))
	// Output:
	// 0 connection refused
	// 1 delayed: snoozed for 1m0s
	// 2 user 2: no such user
	// 3 delayed: dropped
	// 4 rate limit
	// true <nil>
}

// Retries after a minute, five minutes, and then every hour for a day.
func ExampleBackoff() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-backoff", rdb)
	patient := q.With(delayed.Backoff(time.Minute, 5*time.Minute, time.Hour),
		delayed.RetryUntil(time.Now().Add(24*time.Hour)))
	_, err := patient.Delay(Deliver, 42)
	fmt.Println(err)
	_, err = q.With(delayed.Backoff(-time.Minute)).Delay(Deliver, 42)
	fmt.Println(strings.TrimPrefix(err.Error(), delayed.ErrArguments.Error()))
	// Output:
	// <nil>
	// : option Backoff(-1m0s): expected no negative delay, found -1m0s as number 1
}

// Report has its own settings for retries.
var Report = delayed.Func(func(ctx context.Context, day string) error {
	<-ctx.Done() // it takes too long
	fmt.Println("report of", day, "ends:", context.Cause(ctx))
	called <- struct{}{}
	return ctx.Err()
}, delayed.Name("reports.Daily"), delayed.Timeout(10*time.Millisecond),
	delayed.BackoffFunc(func(retried int, err error) time.Duration {
		if errors.Is(err, delayed.ErrTimeout) {
			return time.Hour // when there is less to do
		}
		return time.Duration(retried+1) * time.Minute
	}), delayed.MaxBackoff(2*time.Hour))

func ExampleTimeout() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-timeout", rdb)
	if _, err := q.Delay(Report, "2025-01-02"); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-timeout"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Report); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: report of 2025-01-02 ends: delayed: handler takes too long
}

// A code that is valid for five minutes is not sent later.
func ExampleTTL() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-ttl", rdb).With(delayed.TTL(5*time.Minute),
		delayed.Deadline(time.Now().Add(10*time.Minute)))
	_, err := q.Delay(Deliver, 42)
	fmt.Println(err)
	// Output: <nil>
}

// A worker whose handlers do not return stops, so that its process can be restarted.
func ExampleStuckError() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	forever := make(chan struct{})
	// it takes no context, so it does not notice its timeout
	wait := delayed.Func(func() { <-forever }, delayed.Name("example.Wait"))
	if _, err := delayed.NewQueue("example-stuck", rdb).Delay(wait); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-stuck"}, Timeout: time.Millisecond, StuckAfter: 10 * time.Millisecond,
		MaxStuck: -1,
		Logger:   delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(wait); err != nil {
		panic(err)
	}
	err = w.Run(context.Background())
	var stuck *delayed.StuckError
	fmt.Println(errors.As(err, &stuck), stuck.Funcs)
	close(forever) // a program would exit now
	for w.Status().State != state.Stopped {
		runtime.Gosched()
	}
	// Output: true [example.Wait]
}
