package web

import (
	"github.com/godelayed/delayed/inspect"
)

// ordersOfWorkers are the deeds of the pages about workers: field "id" is that of the worker.
var ordersOfWorkers = map[string]deed{
	"pause":  {Operator, orderWorker(inspect.OrderPause, "claims no more tasks until it is resumed", "")},
	"resume": {Operator, orderWorker(inspect.OrderResume, "claims tasks again", "")},
	"quiet":  {Operator, orderWorker(inspect.OrderQuiet, "claims no more tasks; only its next start ends that", "")},
	"stop":   {Admin, orderWorker(inspect.OrderStop, "finishes what it runs, and stops", "workers")},
}

// orderWorker gives an order to a worker. to is the address of the page that is shown then; "" for where the form was.
func orderWorker(o inspect.Order, then, to string) func(*site, *request) (outcome, error) {
	return func(_ *site, q *request) (outcome, error) {
		id := q.args.Get("id")
		if err := q.ins.OrderWorker(q.ctx, id, o); err != nil {
			return outcome{}, err
		}
		return outcome{To: to, Text: "Worker " + id + " " + then + "."}, nil
	}
}
