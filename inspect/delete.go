package inspect

import (
	"context"
	"errors"
	"fmt"
)

// ErrNotEmpty says that a queue holds tasks or periodic entries, or is in use.
var ErrNotEmpty = errors.New("inspect: the queue is not empty")

// DeleteQueue deletes a queue with everything that Redis keeps of it: counters, settings, periodic entries, and with
// force also tasks in all states. The error wraps ErrNotEmpty if a worker of the queue is alive, or, without force, if
// the queue holds anything. A queue that is enqueued to afterwards, or meanwhile, is there again; Queues finds
// it then within an hour.
func (ins *Inspector) DeleteQueue(ctx context.Context, queue string, force bool) error {
	q, err := ins.Queue(ctx, queue)
	if err != nil {
		return err
	}
	s, err := ins.store(ctx, queue)
	if err != nil {
		return err
	}
	entries, err := s.Entries(ctx)
	if err != nil {
		return err
	}
	held := q.Groups + len(entries)
	for _, state := range States {
		held += q.Size(state)
	}
	switch {
	case q.Workers > 0:
		return fmt.Errorf("%w: queue %s has %d living workers: stop them before", ErrNotEmpty, queue, q.Workers)
	case held > 0 && !force:
		return fmt.Errorf("%w: queue %s holds %d tasks, groups and periodic entries: delete them before, or force it",
			ErrNotEmpty, queue, held)
	}
	workers, err := s.Workers(ctx)
	if err != nil {
		return err
	}
	if err := errors.Join(s.Destroy(ctx, workers), ins.registry.Remove(ctx, queue)); err != nil {
		return err
	}
	return ins.note(ctx, &Record{Action: "delete queue", Queue: queue, Done: held})
}
