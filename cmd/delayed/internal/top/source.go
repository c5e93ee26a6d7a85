package top

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

// source is what the screens read and what actions do: an inspector, with the control of queues and workers. Tests have
// one of their own.
type source interface {
	Names(ctx context.Context) ([]string, error)
	Queues(ctx context.Context) ([]inspect.Queue, error)
	Queue(ctx context.Context, name string) (inspect.Queue, error)
	Workers(ctx context.Context, queues ...string) ([]inspect.Worker, error)
	Tasks(ctx context.Context, queue string, q inspect.Query) (inspect.Page, error)
	Task(ctx context.Context, queue, id string) (inspect.Task, error)
	Find(ctx context.Context, id string) ([]inspect.Task, error)
	Watch(ctx context.Context, queues ...string) iter.Seq2[inspect.Event, error]
	Do(ctx context.Context, queue string, a inspect.Action, ids ...string) (inspect.Report, error)
	DoAll(
		ctx context.Context, queue string, a inspect.Action, q inspect.Query, progress func(inspect.Report) bool,
	) (inspect.Report, error)

	// flows returns what queues have done lately, of those that are known so far.
	flows(ctx context.Context, s span, queues []string) (map[string]queueFlow, error)
	// pause pauses a queue, or resumes it.
	pause(ctx context.Context, queue string, paused bool) error
	// order gives a worker an order on each of its queues.
	order(ctx context.Context, w *inspect.Worker, o order) error
}

// order is what a worker is told.
type order func(*delayed.WorkerControl, context.Context) error

// live is the source that asks Redis.
type live struct {
	*inspect.Inspector

	rdb   *delayed.Redis
	meter *meter
}

func newLive(rdb *delayed.Redis, ins *inspect.Inspector) *live {
	return &live{Inspector: ins, rdb: rdb, meter: newMeter(ins)}
}

func (l *live) flows(ctx context.Context, s span, queues []string) (map[string]queueFlow, error) {
	return l.meter.read(ctx, s, queues)
}

// open returns a queue that is known.
func (l *live) open(ctx context.Context, name string) (*delayed.Queue, error) {
	q, err := l.Queue(ctx, name)
	if err != nil {
		return nil, err
	}
	return delayed.OpenQueue(l.rdb, delayed.QueueConfig{Name: name, Legacy: q.Legacy})
}

func (l *live) pause(ctx context.Context, queue string, paused bool) error {
	q, err := l.open(ctx, queue)
	if err != nil {
		return err
	}
	if paused {
		return q.Pause(ctx)
	}
	return q.Resume(ctx)
}

func (l *live) order(ctx context.Context, w *inspect.Worker, o order) error {
	var errs []error
	for _, wq := range w.Queues {
		if wq.Alive == 0 {
			continue
		}
		q, err := l.open(ctx, wq.Name)
		if err == nil {
			err = o(q.Worker(w.ID), ctx)
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return fmt.Errorf("%w: the worker is dead; a sweeper will give back what it has claimed", inspect.ErrNotFound)
	}
	return errors.Join(errs...)
}
