package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
)

// Thumbnail returns what its caller may wait for.
func Thumbnail(path string, width int) (string, error) {
	if width <= 0 {
		return "", errors.New("no width")
	}
	return fmt.Sprintf("%s-%d.png", path, width), nil
}

// A function's result is kept for callers that wait for it, in this process or another.
func ExampleAwait() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-await"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Thumbnail); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()

	q := delayed.NewQueue("example-await", rdb).With(delayed.KeepResult(time.Hour), delayed.MaxRetry(0))
	ref, err := q.Delay(Thumbnail, "cat", 64)
	if err != nil {
		panic(err)
	}
	name, err := delayed.Await[string](ctx, ref)
	fmt.Println(name, err)

	// A caller that has only the id can wait as well, and a failure is returned as an error.
	ref, err = q.Delay(Thumbnail, "dog", 0)
	if err != nil {
		panic(err)
	}
	err = q.Ref(ref.ID()).Wait(ctx)
	var failed *delayed.TaskError
	if errors.As(err, &failed) {
		fmt.Println(failed.State, failed.Text)
	}
	stop()
	if err := <-stopped; err != nil {
		panic(err)
	}
	// Output:
	// cat-64.png <nil>
	// archived no width
}

// Import reports its progress.
func Import(ctx context.Context, rows int64) error {
	for i := range rows {
		// Others read at most ten reports a second, and the last one.
		if err := delayed.Progress(ctx, i+1, rows, "importing"); err != nil {
			return err
		}
	}
	return nil
}

// A task's progress can be read while the task runs and, if its result is kept, afterwards.
func ExampleProgress() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-progress"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Import); err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- w.Run(ctx) }()

	q := delayed.NewQueue("example-progress", rdb)
	ref, err := q.With(delayed.KeepResult(time.Hour)).Delay(Import, 1000)
	if err != nil {
		panic(err)
	}
	if err := ref.Wait(ctx); err != nil {
		panic(err)
	}
	done, total, note, err := q.Ref(ref.ID()).Progress(ctx)
	fmt.Println(done, total, note, err)
	stop()
	if err := <-stopped; err != nil {
		panic(err)
	}
	// Output: 1000 1000 importing <nil>
}
