package page

import (
	"context"
	"fmt"
	"slices"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/web/internal/chart"
	"github.com/godelayed/delayed/web/internal/site"
)

// allWorkers returns all workers, as they were a moment ago. They are shared: callers do not change them.
func (s *shared) allWorkers(q *site.Request) ([]inspect.Worker, error) {
	queues, err := s.Queues(q)
	if err != nil {
		return nil, err
	}
	return s.Workers(q, len(queues) > chart.ManyQueues)
}

// functions returns all functions that workers have published, as they were a moment ago, or lately if there are many
// queues. They are shared.
func (s *shared) functions(q *site.Request) ([]inspect.Function, error) {
	queues, err := s.Queues(q)
	if err != nil {
		return nil, err
	}
	c := s.Fast
	if len(queues) > chart.ManyQueues {
		c = s.Slow
	}
	return site.Read(q.Ctx, c, "functions", func(ctx context.Context) ([]inspect.Function, error) {
		return q.Ins.Functions(ctx)
	})
}

// choice is the queues that a page may show the things of, and the one that it is asked for.
type choice struct {
	Page   string // its address
	Queue  string // "": all of them
	Queues []inspect.Queue
	Broken []inspect.Queue // that cannot be read
}

// choose returns the queues of a page with field "queue". Those that cannot be read are apart.
func (s *shared) choose(q *site.Request) (choice, error) {
	queues, err := s.Queues(q)
	if err != nil {
		return choice{}, err
	}
	c := choice{Page: q.Path, Queue: q.Args.Get("queue")}
	for i := range queues {
		if queues[i].Err != nil {
			c.Broken = append(c.Broken, queues[i])
		} else {
			c.Queues = append(c.Queues, queues[i])
		}
	}
	return c, nil
}

// chosen returns the queues to read, all that can be if none is asked for. A queue that is unknown, or cannot be read,
// is an error if it is asked for.
func (c *choice) chosen() ([]inspect.Queue, error) {
	if c.Queue == "" {
		return c.Queues, nil
	}
	for _, queues := range [][]inspect.Queue{c.Queues, c.Broken} {
		for i := range queues {
			switch {
			case queues[i].Name != c.Queue:
			case queues[i].Err != nil:
				return nil, queues[i].Err
			default:
				return queues[i : i+1], nil
			}
		}
	}
	return nil, site.Missing(fmt.Sprintf("there is no queue %q: nobody has enqueued a task there, "+
		"and no worker serves it",
		c.Queue))
}

// fail notes that a part of a queue cannot be read, so that it does not hide the others. It returns the error if that
// queue is the only one, or if the request has ended.
func (c *choice) fail(q *site.Request, queue string, err error) error {
	if c.Queue != "" || q.Ctx.Err() != nil {
		return err
	}
	c.Broken = append(c.Broken, inspect.Queue{Name: queue, Err: err})
	return nil
}

// knows reports whether Redis knows a worker of a queue, alive or dead.
func knows(w *inspect.Worker, queue string) bool {
	return slices.ContainsFunc(w.Queues, func(q inspect.WorkerQueue) bool { return q.Name == queue })
}
