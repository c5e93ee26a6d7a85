// Command reportd runs the workers of reports.
package main

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/reports/deliver"
	"example.com/app/blind/apps/reports/plan"
	"example.com/app/blind/apps/reports/render"
	"example.com/app/blind/apps/reports/schedule"
)

func main() {
	rdb, err := delayed.Dial(os.Getenv("REDIS_URL"))
	if err != nil {
		slog.Error("no Redis", "error", err)
		os.Exit(2)
	}
	newWorker := func() (*delayed.Worker, error) { return worker(rdb) }
	delayed.ChildMain(newWorker)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	w, err := newWorker()
	if err != nil {
		slog.Error("no worker", "error", err)
		os.Exit(2)
	}
	if err := w.Run(ctx); err != nil {
		slog.Error("worker ended", "error", err)
		os.Exit(1)
	}
}

func worker(rdb *delayed.Store) (*delayed.Worker, error) {
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues:     delayed.Strict{plan.Queue},
		Schedulers: []delayed.SchedulerConfig{schedule.Config(7)},
		Isolation:  delayed.Isolation{Memory: 1 << 30, CPU: time.Minute},
		Logger:     delayed.SlogLogger(slog.Default().Handler()),
	})
	if err != nil {
		return nil, err
	}
	db, err := sql.Open("postgres", os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, err
	}
	send := func(_ context.Context, to string, d render.Document) error {
		slog.Info("delivered", "to", to, "name", d.Name, "bytes", len(d.Content))
		return nil
	}
	return w, errors.Join(w.Use(tenant), plan.Register(w, deliver.NewOutbox(db, send)))
}

type tenantKey struct{}

func tenant(next delayed.HandlerFunc) delayed.HandlerFunc {
	return func(ctx context.Context, t *delayed.Task) error {
		return next(context.WithValue(ctx, tenantKey{}, t.Header("tenant")), t)
	}
}
