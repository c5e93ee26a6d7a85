package delayed_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
)

// Greet greets.
func Greet(name string) {
	fmt.Println("hello", name)
	called <- struct{}{}
}

// A queue is paused, for example while the mail server is down. Its tasks wait.
func ExampleQueue_Pause() {
	ctx := context.Background()
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	q := delayed.NewQueue("example-pause", rdb)
	if err := q.Pause(ctx); err != nil {
		panic(err)
	}
	if _, err := q.Delay(Greet, "gopher"); err != nil {
		panic(err)
	}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-pause"}, Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Greet); err != nil {
		panic(err)
	}
	go func() {
		for !w.Status().Connected {
			time.Sleep(time.Millisecond)
		}
		paused, _ := q.Paused(ctx)
		pending, _ := q.Len(ctx)
		fmt.Println("paused:", paused, "pending:", pending)
		if err := q.Resume(ctx); err != nil {
			panic(err)
		}
	}()
	runOne(w)
	// Output:
	// paused: true pending: 1
	// hello gopher
}

// A new version of the program is installed: every worker finishes its tasks and ends, and a process manager starts the
// new version.
func ExampleQueue_Restart() {
	ctx := context.Background()
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	mail := delayed.NewQueue("example-restart-mail", rdb)
	thumbnails := delayed.NewQueue("example-restart-thumbnails", rdb)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Weighted{mail.Name(): 3, thumbnails.Name(): 1},
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	for !w.Status().Connected {
		time.Sleep(time.Millisecond)
	}
	if err := thumbnails.SetWeight(ctx, 10); err != nil { // there are many thumbnails to make today
		panic(err)
	}
	for _, q := range []*delayed.Queue{mail, thumbnails} {
		if err := q.Restart(ctx); err != nil {
			panic(err)
		}
	}
	fmt.Println(<-ended, w.Status().StopReason)
	// Output: <nil> restart
}
