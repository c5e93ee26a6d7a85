package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/godelayed/delayed"
)

// Entry is a periodic entry of a queue.
type Entry struct {
	delayed.PeriodicEntry

	Queue string
}

// Entries returns the periodic entries of the given queues, or of all queues if none is given, sorted by queue and
// name. With an error about some of them it returns the others.
func (ins *Inspector) Entries(ctx context.Context, queues ...string) ([]Entry, error) {
	var all []Entry
	err := ins.each(ctx, queues, func(q *delayed.Queue) error {
		entries, err := q.Periodic().List(ctx)
		for _, e := range entries {
			all = append(all, Entry{e, q.Name()})
		}
		return err
	})
	return all, err
}

// each does something with each of the given queues, or with all, and goes on after errors.
func (ins *Inspector) each(ctx context.Context, queues []string, do func(*delayed.Queue) error) error {
	if err := ins.check(ctx); err != nil {
		return err
	}
	if len(queues) == 0 {
		var err error
		if queues, err = ins.Names(ctx); err != nil {
			return err
		}
	}
	var errs []error
	for _, name := range queues {
		q, err := delayed.OpenQueue(name, ins.rdb, delayed.QueueConfig{})
		if err == nil {
			err = do(q)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("inspect: queue %s: %w", name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// EntryHistory returns what became of the last ticks of an entry; see delayed.PeriodicControl.History.
func (ins *Inspector) EntryHistory(ctx context.Context, queue, name string) ([]delayed.PeriodicRun, error) {
	q, err := ins.open(ctx, queue)
	if err != nil {
		return nil, err
	}
	return q.Periodic().History(ctx, name)
}

// RunEntry enqueues the task of an entry now. Its ticks stay as they are.
func (ins *Inspector) RunEntry(ctx context.Context, queue, name string) (ref *delayed.Ref, err error) {
	r := &Record{Action: "run entry", Target: name}
	err = ins.control(ctx, queue, r, func(q *delayed.Queue, ctx context.Context) (err error) {
		if ref, err = q.Periodic().RunNow(ctx, name); err == nil {
			r.IDs, r.Done = []string{ref.ID()}, 1
		}
		return err
	})
	return ref, err
}

// PauseEntry lets an entry tick no more until ResumeEntry.
func (ins *Inspector) PauseEntry(ctx context.Context, queue, name string) error {
	return ins.control(ctx, queue, &Record{Action: "pause entry", Target: name},
		func(q *delayed.Queue, ctx context.Context) error { return q.Periodic().Pause(ctx, name) })
}

// ResumeEntry ends a PauseEntry.
func (ins *Inspector) ResumeEntry(ctx context.Context, queue, name string) error {
	return ins.control(ctx, queue, &Record{Action: "resume entry", Target: name},
		func(q *delayed.Queue, ctx context.Context) error { return q.Periodic().Resume(ctx, name) })
}

// RemoveEntry removes an entry and its history. One that code declares comes back when its program starts.
func (ins *Inspector) RemoveEntry(ctx context.Context, queue, name string) error {
	return ins.control(ctx, queue, &Record{Action: "remove entry", Target: name},
		func(q *delayed.Queue, ctx context.Context) error { return q.Periodic().Remove(ctx, name) })
}
