// Package schedule says when reports are made.
package schedule

import (
	"context"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/reports/data"
	"example.com/app/blind/apps/reports/deliver"
	"example.com/app/blind/apps/reports/plan"
)

// Config is the schedule of all workers.
func Config(version int64) delayed.SchedulerConfig {
	weekly := delayed.Entry{
		Name: "plans", Spec: "0 6 * * mon", Zone: "Europe/Berlin", SkipClockGap: true,
		Task: delayed.Call((*deliver.Outbox).Exec, 1),
	}
	retrain := delayed.Entry{
		Name: "retrain", Spec: "@monthly", Task: delayed.NewPyTask("science.forecast:train", nil, nil),
		Options: []delayed.Option{delayed.MaxRetry(1), delayed.Header("why", "schedule")},
	}
	return delayed.SchedulerConfig{
		Queue: plan.Queue, Owner: "reports", Version: version, Entries: []delayed.Entry{weekly, retrain},
	}
}

// Forget forgets tenants every day until a time. It is set while the workers run.
func Forget(ctx context.Context, q *delayed.Queue, until time.Time, tenants ...data.Tenant) error {
	args := make([]any, len(tenants))
	for i, t := range tenants {
		args[i] = t
	}
	return q.With(delayed.MaxRetry(0)).Periodic().Set(ctx, delayed.Entry{
		Name: "forget", Spec: "@every 24h", Until: until, Jitter: time.Minute,
		Task:    delayed.Call(data.Forget, args...),
		Options: []delayed.Option{delayed.TTL(12 * time.Hour)},
	})
}
