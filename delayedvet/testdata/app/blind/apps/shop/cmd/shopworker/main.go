// Command shopworker runs what the site delays.
package main

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/workermain"

	"example.com/app/blind/apps/shop/mailing"
	"example.com/app/blind/apps/shop/orders"
	"example.com/app/blind/apps/shop/tasks"
)

func main() {
	os.Exit(workermain.Run(workermain.Config{
		Setup: setup,
		Dial: func(url string) (*delayed.Store, error) {
			rdb, err := delayed.Dial(url)
			if err != nil {
				return nil, err
			}
			return rdb.WithPrefix("shop:"), nil
		},
		Worker: delayed.WorkerConfig{
			Queues: delayed.Weighted{tasks.Critical: 6, tasks.Default: 1},
			Schedulers: []delayed.SchedulerConfig{{
				Queue: tasks.Default, Owner: "shop", Entries: tasks.Entries(strings.Fields(os.Getenv("SHOP_TEAM"))),
			}},
			IsFailure: func(err error) bool { return !errors.Is(err, mailing.ErrAddress) },
			Backoff:   func(retried int) time.Duration { return time.Duration(retried+1) * 10 * time.Second },
		},
	}))
}

func setup(_ context.Context, w *delayed.Worker) error {
	if err := w.Use(logged, timed(time.Minute)); err != nil {
		return err
	}
	if err := w.OnEvent(archived); err != nil {
		return err
	}
	charge := func(ctx context.Context, key string, customer int64, amount orders.Cents) error {
		slog.InfoContext(ctx, "charged", "key", key, "customer", customer, "amount", amount)
		return nil
	}
	return tasks.Register(w, orders.NewCashier(orders.NewStore(), charge))
}

func logged(next delayed.HandlerFunc) delayed.HandlerFunc {
	return func(ctx context.Context, t *delayed.Task) error {
		begin := time.Now()
		err := next(ctx, t)
		slog.InfoContext(ctx, "task ended", "path", t.Path(), "request", t.Header("request"),
			"attempt", t.Attempt(), "took", time.Since(begin), "error", err)
		return err
	}
}

func timed(most time.Duration) func(delayed.HandlerFunc) delayed.HandlerFunc {
	return func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error {
			ctx, cancel := context.WithTimeout(ctx, most)
			defer cancel()
			return next(ctx, t)
		}
	}
}

func archived(e delayed.Event) {
	if e.Kind == event.TaskArchived {
		slog.Error("task archived", "queue", e.Queue, "path", e.Task.Path(), "reason", e.Reason, "error", e.Err)
	}
}
