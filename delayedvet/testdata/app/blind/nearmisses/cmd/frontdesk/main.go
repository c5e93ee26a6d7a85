// Command frontdesk is a desk with a worker of its own.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/nearmisses/catalog"
	"example.com/app/blind/nearmisses/jobs"
	"example.com/app/blind/nearmisses/loans"
	"example.com/app/blind/nearmisses/notify"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	rdb, err := delayed.Dial(os.Getenv("REDIS_URL"))
	if err != nil {
		return err
	}
	defer rdb.Close()
	q := delayed.NewQueue("desk", rdb)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"desk"},
		Schedulers: []delayed.SchedulerConfig{{Queue: "desk", Owner: "frontdesk", Entries: []delayed.Entry{{
			Name: "sweep", Spec: "@every 1m", Task: delayed.Call(loans.Sweep), // right: registered in package jobs
			Options: []delayed.Option{delayed.MaxRetry(0), delayed.TTL(time.Minute)}, // right: entries may have these
			Overlap: delayed.OverlapSkip,
		}}}},
	})
	if err != nil {
		return err
	}
	if err := jobs.Register(w, notify.NewDesk("front", q)); err != nil {
		return err
	}
	if _, err := q.Delay(catalog.MergeBooks, []int64{1}, []int64{2}); err != nil { // right: registered by a list
		return err
	}
	if _, err := q.Delay((*notify.Desk).Write, "c1", "open"); err != nil { // right: registered as a method of a value
		return err
	}
	return w.Run(ctx)
}
