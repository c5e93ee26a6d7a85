package web

import (
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

func apiFunctions(s *site, c *apiCall) (v document.Functions, err error) {
	_, names, err := c.described(s)
	if err != nil {
		return v, err
	}
	functions, err := c.ins.Functions(c.ctx, names...)
	return document.FunctionsOf(functions), err
}

func apiWorkers(s *site, c *apiCall) (v document.Workers, err error) {
	_, names, err := c.described(s)
	if err != nil {
		return v, err
	}
	workers, err := c.ins.Workers(c.ctx, names...)
	if err != nil {
		return v, err
	}
	return document.ReadWorkers(c.ctx, c.ins, workers)
}

func apiWorker(_ *site, c *apiCall) (v document.Workers, err error) {
	workers, err := c.ins.Workers(c.ctx)
	if err != nil {
		return v, err
	}
	for i := range workers {
		if workers[i].ID == c.in("worker") {
			return document.ReadWorkers(c.ctx, c.ins, workers[i:i+1])
		}
	}
	return v, missing("there is no worker with this id: api/v1/workers lists them")
}

// apiOrder makes an action of an order to a worker.
func apiOrder(o inspect.Order) action {
	return answers(func(_ *site, c *apiCall) (document.Did, error) {
		return did(string(o), c.in("worker")), c.ins.OrderWorker(c.ctx, c.in("worker"), o)
	})
}
