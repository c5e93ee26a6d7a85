package api

import (
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/web/internal/site"
)

func apiFunctions(s *shared, c *apiCall) (v document.Functions, err error) {
	_, names, err := c.described(s)
	if err != nil {
		return v, err
	}
	functions, err := c.Ins.Functions(c.Ctx, names...)
	return document.FunctionsOf(functions), err
}

func apiWorkers(s *shared, c *apiCall) (v document.Workers, err error) {
	_, names, err := c.described(s)
	if err != nil {
		return v, err
	}
	workers, err := c.Ins.Workers(c.Ctx, names...)
	if err != nil {
		return v, err
	}
	return document.ReadWorkers(c.Ctx, c.Ins, workers)
}

func apiWorker(_ *shared, c *apiCall) (v document.Workers, err error) {
	workers, err := c.Ins.Workers(c.Ctx)
	if err != nil {
		return v, err
	}
	for i := range workers {
		if workers[i].ID == c.in("worker") {
			return document.ReadWorkers(c.Ctx, c.Ins, workers[i:i+1])
		}
	}
	return v, site.Missing("there is no worker with this id: api/v1/workers lists them")
}

// apiOrder makes an action of an order to a worker.
func apiOrder(o inspect.Order) action {
	return answers(func(_ *shared, c *apiCall) (document.Did, error) {
		return did(string(o), c.in("worker")), c.Ins.OrderWorker(c.Ctx, c.in("worker"), o)
	})
}
