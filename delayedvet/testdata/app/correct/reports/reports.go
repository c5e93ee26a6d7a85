// Package reports has ten calls that look like mistakes.
package reports

import (
	"context"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/handlers"
)

type ids []handlers.OrderID

var (
	clean = delayed.Func(handlers.Clean, delayed.Optional(2))
	merge = delayed.Func(handlers.Merge[float64], delayed.Name("shop.merge.float"))
	watch = delayed.Func(handlers.Watch, delayed.MaxRetry(0), delayed.KeepResult(0))
	note  = delayed.Func(func(text string) {}, delayed.Name("shop.note"), delayed.Alias("old.Note"))
)

var schedule = delayed.SchedulerConfig{
	Queue: "reports", Owner: "shop",
	Entries: []delayed.Entry{
		{Name: "report", Spec: "@monthly", Task: delayed.Call(handlers.Report, 2026, time.May, true, false)},
		{Name: "number", Spec: "@monthly", Task: delayed.Call(handlers.Report, 2026, 5)},
		{
			Name: "clean", Spec: "@daily", Task: delayed.Call(handlers.Clean, time.Time{}, true),
			Options: []delayed.Option{delayed.Header("tenant", "a"), delayed.TTL(time.Hour)},
		},
	},
}

func rerun(ctx context.Context, q *delayed.Queue, id string) error {
	if _, err := q.Delay(handlers.MergeIDs, []int64{1}, nil); err != nil {
		return err
	}
	if _, err := q.Delay(note, "x"); err != nil {
		return err
	}
	return q.Ref(id).RunAgainWith(ctx, delayed.Call(handlers.Totals, ids{1}, map[handlers.OrderID]float64{}))
}
