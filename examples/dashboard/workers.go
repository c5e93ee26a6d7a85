package main

import (
	"context"
	"log/slog"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/examples/dashboard/shop"
)

// The functions of the shop, with what holds for all calls of each.
var (
	welcome   = delayed.Func(shop.Welcome)
	thumbnail = delayed.Func(shop.Thumbnail, delayed.Retention(5*time.Minute))
	charge    = delayed.Func(shop.Charge, delayed.MaxRetry(2), delayed.Backoff(2*time.Second, 15*time.Second))
	invoice   = delayed.Func(shop.Invoice, delayed.MaxRetry(1), delayed.Backoff(10*time.Second))
	imports   = delayed.Func(shop.Import, delayed.Retention(time.Hour), delayed.Timeout(time.Minute))
	report    = delayed.Func(shop.Report, delayed.Retention(time.Hour))
	index     = delayed.Func(shop.Index, delayed.Gather(delayed.GatherPolicy{
		Grace: 4 * time.Second, MaxDelay: 10 * time.Second, MaxSize: 20,
	}))
)

// workers returns two workers, each of which runs until its context ends. Most programs have one in a process.
func workers(redis *delayed.Store) []func(context.Context) error {
	logger := delayed.SlogLogger(slog.DiscardHandler) // the pages show what goes wrong
	schedulers := []delayed.SchedulerConfig{{Queue: "mail", Owner: "shop", Logger: logger, Entries: []delayed.Entry{
		{Name: "report", Spec: "@every 15s", Task: delayed.Call(report, "EUR")},
		{
			Name: "nightly-import", Spec: "0 3 * * *", Zone: "Europe/Berlin",
			Task: delayed.Call(imports, "all.csv", 5000),
		},
	}}}
	run := func(ctx context.Context, queues delayed.QueueOrder, concurrency int) error {
		worker, err := delayed.NewWorker(redis, delayed.WorkerConfig{
			Queues: queues, Concurrency: concurrency, Schedulers: schedulers, Logger: logger,
			HeartbeatLife: 4 * time.Second, // shorter than the default, so that the pages show more often what goes on
			Grace:         time.Second,     // what runs at the end goes on the next time
		})
		if err != nil {
			return err
		}
		if err := worker.Register(welcome, thumbnail, charge, invoice, imports, report, index); err != nil {
			return err
		}
		return worker.Run(ctx)
	}
	return []func(context.Context) error{
		func(ctx context.Context) error {
			return run(ctx, delayed.Weighted{"billing": 3, "mail": 2, "search": 1}, 6)
		},
		func(ctx context.Context) error { return run(ctx, delayed.Strict{"media", "mail"}, 4) },
	}
}
