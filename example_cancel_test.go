package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
)

// Remind waits for its context, as a long handler should.
func Remind(ctx context.Context, userID int64) error {
	fmt.Println("reminding", userID)
	called <- struct{}{}
	<-ctx.Done()
	fmt.Println(context.Cause(ctx))
	return ctx.Err()
}

// A task is cancelled by its id, which any process may have kept.
func ExampleRef_Cancel() {
	ctx := context.Background()
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-cancel", rdb).With(delayed.KeepResult(time.Hour))
	later, err := q.With(delayed.In(24*time.Hour)).Delay(Remind, 41)
	if err != nil {
		panic(err)
	}
	now, err := q.Delay(Remind, 42)
	if err != nil {
		panic(err)
	}
	if err := q.Ref(later.ID()).Cancel(ctx); err != nil { // it never runs
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-cancel"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Remind); err != nil {
		panic(err)
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error)
	go func() { ended <- w.Run(running) }()
	<-called
	if err := now.Cancel(ctx); err != nil {
		panic(err)
	}
	err = now.Wait(ctx)
	fmt.Println(errors.Is(err, delayed.ErrCanceled))
	stop()
	if err := <-ended; err != nil {
		panic(err)
	}
	// Output:
	// reminding 42
	// delayed: task was canceled
	// true
}
