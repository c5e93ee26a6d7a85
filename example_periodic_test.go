package delayed_test

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed"
)

// Summary is enqueued again and again.
func Summary(kind string) {
	fmt.Println("summary:", kind)
	called <- struct{}{}
}

// Entries that the code declares run together with the worker. Any number of workers may declare the same entries: each
// tick becomes one task.
func ExampleSchedulerConfig() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"example-periodic"},
		Schedulers: []delayed.SchedulerConfig{{
			Queue: "example-periodic",
			Owner: "shop",
			Entries: []delayed.Entry{
				{Name: "heartbeat", Spec: "@every 1s", Task: delayed.Call(Summary, "heartbeat")},
				{
					Name: "daily", Spec: "30 2 * * *", Zone: "Europe/Berlin", Task: delayed.Call(Summary, "daily"),
					Overlap: delayed.OverlapSkip, Jitter: time.Minute, Options: []delayed.Option{delayed.MaxRetry(3)},
				},
			},
		}},
		Logger: delayed.SlogLogger(quietLog()),
	})
	if err != nil {
		panic(err)
	}
	if err := w.Register(Summary); err != nil {
		panic(err)
	}
	runOne(w)
	// Output: summary: heartbeat
}

// A scheduler without a worker serves the entries that others have set.
func ExampleNewScheduler() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	s, err := delayed.NewScheduler(rdb,
		delayed.SchedulerConfig{Queue: "example-scheduler", Logger: delayed.SlogLogger(quietLog())})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(s.Run(ctx))
	// Output: <nil>
}

// Entries can be changed from any process while schedulers run.
func ExampleQueue_Periodic() {
	rdb, _ := delayed.Dial(redisURL())
	defer rdb.Close()
	ctx := context.Background()
	p := delayed.NewQueue("example-control-periodic", rdb).Periodic()
	err := p.Set(ctx, delayed.Entry{
		Name: "weekly", Spec: "0 6 * * mon", Zone: "Asia/Kolkata",
		Task: delayed.Call(Summary, "weekly"),
	})
	fmt.Println(err)
	ref, err := p.RunNow(ctx, "weekly")
	fmt.Println(ref.ID()[:7], err)
	fmt.Println(p.Pause(ctx, "weekly"))
	entries, err := p.List(ctx)
	for _, e := range entries {
		fmt.Println(e.Name, e.Spec, e.Zone, "paused:", e.Paused, err)
	}
	history, err := p.History(ctx, "weekly")
	fmt.Println(len(history), history[0].ID == ref.ID(), err)
	fmt.Println(p.Remove(ctx, "weekly"))
	// Output:
	// <nil>
	// weekly@ <nil>
	// <nil>
	// weekly 0 6 * * mon Asia/Kolkata paused: true <nil>
	// 1 true <nil>
	// <nil>
}
