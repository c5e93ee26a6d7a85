// Package reports has ten mistakes.
package reports

import (
	"context"
	"os"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/handlers"
)

var (
	clean  = delayed.Func(handlers.Clean, delayed.Optional(3))           // want `expected Optional of 0 to 2, as the function takes so many arguments, found 3`
	merge  = delayed.Func(handlers.Merge[float64])                       // want `found an instance of a generic function`
	watch  = delayed.Func(handlers.Watch, delayed.KeepResult(time.Hour)) // want `expected a result that can travel, because KeepResult is given`
	colon  = delayed.Func(handlers.Rate, delayed.Name("shop:rate"))      // want `with a colon, which marks Python functions`
	unlink = delayed.Func(os.Remove, delayed.Name("shop.unlink"))        // want `os.Remove: expected a function that is safe`
)

var schedule = delayed.SchedulerConfig{
	Queue: "reports", Owner: "shop",
	Entries: []delayed.Entry{
		{Name: "report", Spec: "@monthly", Task: delayed.Call(handlers.Report, 2026, "May")}, // want `argument 2: expected time.Month, found string`
		{Name: "index", Spec: "@daily", Task: delayed.Call(handlers.Single, "berlin")},       // want `expected a task without a lock`
		{
			Name: "clean", Spec: "@daily", Task: delayed.Call(handlers.Clean, time.Time{}, true),
			Options: []delayed.Option{delayed.TaskID("clean")}, // want `found TaskID: each tick has an id of its own`
		},
	},
}

func rerun(ctx context.Context, q *delayed.Queue, id string) error {
	if _, err := q.Delay(handlers.MergeIDs, []int64{1}, 2); err != nil { // want `shop.merge: argument 2: expected \[\]int64, found int 2`
		return err
	}
	return q.Ref(id).RunAgainWith(ctx, delayed.Call(handlers.Totals, []int64{1}, nil)) // want `argument 1: expected \[\]handlers.OrderID, found \[\]int64`
}
