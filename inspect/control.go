package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/godelayed/delayed"
)

// Pause makes all workers run no further tasks of a queue until Resume; see delayed.Queue.Pause.
func (ins *Inspector) Pause(ctx context.Context, queue string) error {
	return ins.control(ctx, queue, &Record{Action: "pause"}, (*delayed.Queue).Pause)
}

// Resume ends a pause.
func (ins *Inspector) Resume(ctx context.Context, queue string) error {
	return ins.control(ctx, queue, &Record{Action: "resume"}, (*delayed.Queue).Resume)
}

// Restart makes the workers of a queue finish what they run and stop, so that their supervisors start them again;
// see delayed.Queue.Restart.
func (ins *Inspector) Restart(ctx context.Context, queue string) error {
	return ins.control(ctx, queue, &Record{Action: "restart"}, (*delayed.Queue).Restart)
}

// SetWeight changes the weight of a queue for all workers that serve it in weighted order: 1 to 1000, or 0 for the
// weight that each of them was configured with.
func (ins *Inspector) SetWeight(ctx context.Context, queue string, weight int) error {
	return ins.control(ctx, queue, &Record{Action: fmt.Sprintf("set weight to %d", weight)},
		func(q *delayed.Queue, ctx context.Context) error { return q.SetWeight(ctx, weight) })
}

// Enqueue enqueues a call as delayed.Queue.Enqueue does, with options, also on a queue that nobody has used. With a
// Ref, an error means that the call was enqueued, and that the audit log could not be written.
func (ins *Inspector) Enqueue(
	ctx context.Context, queue string, call *delayed.Task, opts ...delayed.Option,
) (*delayed.Ref, error) {
	known, err := ins.Queue(ctx, queue)
	if err != nil && !isNotFound(err) {
		return nil, err
	}
	q, err := ins.openAs(queue, known.Legacy)
	if err != nil {
		return nil, err
	}
	ref, err := q.With(opts...).Enqueue(ctx, call)
	if err != nil {
		return nil, err
	}
	r := &Record{Action: "enqueue", Queue: queue, Target: call.Path(), Done: 1}
	if id := ref.ID(); id != "" {
		r.IDs = []string{id}
	}
	return ref, ins.note(ctx, r)
}

// control does something with a queue and notes it.
func (ins *Inspector) control(
	ctx context.Context, queue string, r *Record, do func(*delayed.Queue, context.Context) error,
) error {
	q, err := ins.open(ctx, queue)
	if err != nil {
		return err
	}
	if err := do(q, ctx); err != nil {
		return err
	}
	r.Queue = queue
	return ins.note(ctx, r)
}

// open returns a queue that somebody has used.
func (ins *Inspector) open(ctx context.Context, name string) (*delayed.Queue, error) {
	q, err := ins.Queue(ctx, name)
	if err != nil {
		return nil, err
	}
	return ins.openAs(name, q.Legacy)
}

// openAs returns a queue, which legacy workers share or not.
func (ins *Inspector) openAs(name string, legacy bool) (*delayed.Queue, error) {
	rdb := ins.rdb
	if legacy {
		rdb = rdb.WithLegacy()
	}
	return delayed.OpenQueue(name, rdb, delayed.QueueConfig{})
}

// Order is what OrderWorker orders a worker to do.
type Order string

// The orders; see the methods of delayed.WorkerControl.
const (
	OrderPause  Order = "pause"  // claim no more tasks until OrderResume
	OrderResume Order = "resume" // end a pause
	OrderQuiet  Order = "quiet"  // claim no more tasks for good
	OrderStop   Order = "stop"   // finish what runs, and stop
)

// OrderWorker gives an order to the worker with an id, on each queue on which it is alive. The error wraps ErrNotFound
// if there is no such worker.
func (ins *Inspector) OrderWorker(ctx context.Context, id string, o Order) error {
	orders := map[Order]func(*delayed.WorkerControl, context.Context) error{
		OrderPause: (*delayed.WorkerControl).Pause, OrderResume: (*delayed.WorkerControl).Resume,
		OrderQuiet: (*delayed.WorkerControl).Quiet, OrderStop: (*delayed.WorkerControl).Stop,
	}
	order, known := orders[o]
	if !known {
		return fmt.Errorf("inspect: OrderWorker: expected pause, resume, quiet or stop, found %q", string(o))
	}
	workers, err := ins.Workers(ctx)
	if err != nil {
		return err
	}
	var errs []error
	done := false
	for i := range workers {
		if workers[i].ID != id {
			continue
		}
		for _, wq := range workers[i].Queues {
			if wq.Alive == 0 {
				continue
			}
			q, err := delayed.OpenQueue(wq.Name, ins.rdb, delayed.QueueConfig{})
			if err == nil {
				err = order(q.Worker(id), ctx)
			}
			done = done || err == nil
			errs = append(errs, err)
		}
	}
	if len(errs) == 0 {
		return fmt.Errorf("%w: no living worker has the id %.100q", ErrNotFound, id)
	}
	if done {
		errs = append(errs, ins.note(ctx, &Record{Action: string(o) + " worker", Target: id}))
	}
	return errors.Join(errs...)
}

// ErrNotEmpty reports that a queue holds tasks or periodic entries, or is in use.
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
