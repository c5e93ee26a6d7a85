package page

import (
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/auth"
	"github.com/godelayed/delayed/web/internal/site"
)

// ordersOfWorkers are the actions of the pages about workers: field "id" is that of the worker.
var ordersOfWorkers = formActions{
	"pause":  {auth.Operator, orderWorker(inspect.OrderPause, "claims no more tasks until it is resumed", "")},
	"resume": {auth.Operator, orderWorker(inspect.OrderResume, "claims tasks again", "")},
	"quiet": {
		auth.Operator, orderWorker(inspect.OrderQuiet, "claims no more tasks; only its next start ends that", ""),
	},
	"stop": {auth.Admin, orderWorker(inspect.OrderStop, "finishes what it runs, and stops", "workers")},
}

// orderWorker gives an order to a worker. to is the address of the page that is shown then; "" for where the form was.
func orderWorker(o inspect.Order, then, to string) func(*shared, *site.Request) (outcome, error) {
	return func(_ *shared, q *site.Request) (outcome, error) {
		id := q.Args.Get("id")
		if err := q.Ins.OrderWorker(q.Ctx, id, o); err != nil {
			return outcome{}, err
		}
		return outcome{To: to, Text: "Worker " + id + " " + then + "."}, nil
	}
}
