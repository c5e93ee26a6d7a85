package desk

import (
	"context"
	"errors"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/nearmisses/catalog"
	"example.com/app/blind/nearmisses/loans"
	"example.com/app/blind/nearmisses/notify"
	"example.com/app/blind/nearmisses/timer"
)

// Queue is what a desk needs of a queue.
type Queue interface {
	DelayContext(ctx context.Context, fn any, args ...any) (*delayed.Ref, error)
}

// Desk delays what takes long.
type Desk struct {
	queue  *delayed.Queue
	writer notify.Desk
	failed chan error
}

// later is a wrapper: it knows nothing of the function.
func (d *Desk) later(wait time.Duration, fn any, args ...any) error {
	_, err := d.queue.With(delayed.In(wait)).Delay(fn, args...) // right: whoever calls it gives what fits
	return err
}

// Open begins a day.
func (d *Desk) Open(ctx context.Context, card string, evening bool) (ref *delayed.Ref, err error) {
	_, _ = d.queue.Delay(loans.Sweep) // right: nobody needs to know
	defer func() {
		_, sweepErr := d.queue.Delay(loans.Sweep) // right: the error is joined
		err = errors.Join(err, sweepErr)
	}()
	go func() {
		_, err := d.queue.DelayContext(ctx, loans.Prolong, 1, 14) // right: the error goes to a channel
		d.failed <- err
	}()
	write := notify.Text
	if evening {
		write = func(context.Context, string, string, ...any) error { return nil }
	}
	if err := d.local(write, card); err != nil {
		return nil, err
	}
	if err := d.later(time.Minute, notify.Later, card, time.Hour); err != nil { // right: by the wrapper
		return nil, err
	}
	return d.queue.Delay((*notify.Desk).Call, card, 3) // right: the caller reads both
}

// local writes here, without the queue.
func (d *Desk) local(write func(context.Context, string, string, ...any) error, card string) error {
	var clock timer.Clock
	clock.Delay(func() { _ = write(context.Background(), card, "closing") }, 30) // right: another Delay
	_ = clock.Register(&d.writer)                                                // right: another Register
	return write(context.Background(), card, timer.In(60).String())              // right: another In
}

// Hand gives functions to a queue behind an interface.
func Hand(ctx context.Context, q Queue, fns map[string]*delayed.Function) error {
	for name, fn := range fns {
		if _, err := q.DelayContext(ctx, fn, name); err != nil { // right: only the running program knows fn
			return err
		}
	}
	return nil
}

// Soon delays to the front of the queue, or until later if there is time.
func Soon(q *delayed.Queue, wait time.Duration) (*delayed.Ref, error) {
	return q.With(delayed.Front(), delayed.In(wait)).Delay(loans.Sweep) // right: zero postpones nothing
}

// Gather makes one call of many.
func Gather(ctx context.Context, q *delayed.Queue, cards ...string) error {
	policy := delayed.GatherPolicy{Grace: time.Second, MaxSize: 50}
	together := q.With(delayed.Group("hello"), delayed.Gather(policy))
	_, manyErr := together.DelayContext(ctx, notify.Many, "hello", cards[:1]) // right: a slice at the end grows
	_, eachErr := together.DelayContext(ctx, notify.Each, "hello", cards[1])  // right: a variadic parameter grows
	return errors.Join(manyErr, eachErr)
}

// Batch enqueues calls that were made before.
func Batch(ctx context.Context, q *delayed.Queue) error {
	tasks := []*delayed.Task{
		delayed.Call(loans.Prolong, 1, 14),
		delayed.NewGoTask("example.com/app/blind/nearmisses/loans.Prolong", 2, 14), // right: not linked, but a path
		delayed.NewPyTask("library.tasks:count", nil, map[string]any{"shelf": 3}),  // right: a path of Python
		delayed.NewPyTask("library.tasks:Shelf.sort", []any{1, []int{2}}, nil),     // right: a method of Python
	}
	tasks = append(tasks, delayed.Call(catalog.Count, "a", 1))
	_, err := q.DelayMany(ctx, tasks...)
	return err
}

// Again runs an archived task again with other arguments.
func Again(ctx context.Context, ref *delayed.Ref, days int) error {
	task := delayed.Call(loans.Prolong, 17, days)
	if days == 0 {
		task = delayed.Call(loans.Prolong, 17, 1)
	}
	return ref.RunAgainWith(ctx, task) // right: the caller reads the error
}

// Refused shows what the queue says of too high a shelf.
func Refused(q *delayed.Queue) bool {
	_, err := q.Delay(loans.Return, 1, 256) //delayed:allow the refusal is what is wanted
	return errors.Is(err, delayed.ErrArguments)
}
