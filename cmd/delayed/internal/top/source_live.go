package top

import (
	"context"
	"errors"
	"fmt"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

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

// each does something with every queue that cond is true of. It returns an error if that went wrong for all of them;
// fault is what went wrong for some.
func (l *live) each(
	ctx context.Context, cond func(*inspect.Queue) bool, do func(*delayed.Queue) error,
) (fault, err error) {
	queues, err := l.Queues(ctx)
	if err != nil {
		return nil, err
	}
	worked := false
	for i := range queues {
		if !cond(&queues[i]) {
			continue
		}
		q, err := delayed.OpenQueue(l.rdb, delayed.QueueConfig{Name: queues[i].Name, Legacy: queues[i].Legacy})
		if err == nil {
			err = do(q)
		}
		switch {
		case err == nil:
			worked = true
		case ctx.Err() != nil:
			return nil, err
		case fault == nil:
			fault = fmt.Errorf("queue %s: %w", queues[i].Name, err)
		}
	}
	if fault != nil && !worked {
		return nil, fault
	}
	return fault, nil
}

func (l *live) entries(ctx context.Context) (d entriesData, err error) {
	d.fault, err = l.each(ctx, func(*inspect.Queue) bool { return true }, func(q *delayed.Queue) error {
		entries, err := q.Periodic().List(ctx) // of those that cannot be read the error tells
		for _, e := range entries {
			d.entries = append(d.entries, entryRow{e, q.Name()})
		}
		return err
	})
	return d, err
}

func (l *live) entry(ctx context.Context, queue, name string) (d entryData, err error) {
	q, err := l.open(ctx, queue)
	if err != nil {
		return d, err
	}
	entries, err := q.Periodic().List(ctx)
	for _, e := range entries {
		if e.Name == name {
			d.entry = &entryRow{e, queue}
		}
	}
	if d.entry == nil {
		return d, err
	}
	d.ticks, err = q.Periodic().History(ctx, name)
	return d, err
}

// periodic opens the control of a queue's periodic entries.
func (l *live) periodic(ctx context.Context, queue string) (*delayed.PeriodicControl, error) {
	q, err := l.open(ctx, queue)
	if err != nil {
		return nil, err
	}
	return q.Periodic(), nil
}

func (l *live) runEntry(ctx context.Context, queue, name string) error {
	p, err := l.periodic(ctx, queue)
	if err == nil {
		_, err = p.RunNow(ctx, name)
	}
	return err
}

func (l *live) pauseEntry(ctx context.Context, queue, name string, paused bool) error {
	p, err := l.periodic(ctx, queue)
	switch {
	case err != nil:
		return err
	case paused:
		return p.Pause(ctx, name)
	default:
		return p.Resume(ctx, name)
	}
}

func (l *live) removeEntry(ctx context.Context, queue, name string) error {
	p, err := l.periodic(ctx, queue)
	if err == nil {
		err = p.Remove(ctx, name)
	}
	return err
}

func (l *live) groups(ctx context.Context) (d groupsData, err error) {
	some := func(q *inspect.Queue) bool { return q.Groups > 0 }
	d.fault, err = l.each(ctx, some, func(q *delayed.Queue) error {
		groups, err := q.Groups(ctx)
		for _, g := range groups {
			d.groups = append(d.groups, groupRow{g, q.Name()})
		}
		return err
	})
	return d, err
}
