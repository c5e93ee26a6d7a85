package inspect

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/godelayed/delayed/state"
)

// Backlog is how much work waits in queues that the same workers serve, for autoscalers.
type Backlog struct {
	At     time.Time      // by Redis's clock; zero if there is no queue
	Queues []QueueBacklog // sorted by name

	Pending int           // of all queues that are not paused
	Latency time.Duration // the longest of all queues that are not paused
	// Work is how long one handler would take for the pending tasks: the sum of QueueBacklog.Work.
	Work time.Duration
	// Unmeasured is how many of Pending are in queues whose mean run is unknown: Work is without them.
	Unmeasured int
	// Workers are alive, serve at least one of the queues, and are neither paused nor stopping. Concurrency is how many
	// handlers they can run at once; a worker that has not published it yet counts as one.
	Workers, Concurrency int
	// Busy is how many of these handlers have a task.
	Busy int
	// Waiting reports that no worker serves a queue where one has something to do beside running pending tasks: tasks
	// or groups that are or become due, or claims of a dead worker.
	Waiting bool
	// Periodic reports that one of the queues has a periodic entry that will tick. Neither is paused. Only a worker, or
	// a Scheduler, makes entries tick.
	Periodic bool
}

// QueueBacklog is the part of a Backlog that is in one queue.
type QueueBacklog struct {
	Name    string
	Paused  bool // its tasks do not count
	Pending int
	Active  int // claimed by workers
	Latency time.Duration
	// MeanRun is how long a handler has run on average in the last 15 minutes, or, if none has returned meanwhile, as
	// far back as Redis remembers; 0 if that is unknown.
	MeanRun time.Duration
	Work    time.Duration // Pending × MeanRun; 0 if the queue is paused
}

// recent is how far back mean runs are taken from.
const recent = 15 * time.Minute

// Backlog measures the work that waits in the given queues, or in all queues if none is given. If nobody has used one
// of the given queues, the error wraps ErrNotFound.
func (ins *Inspector) Backlog(ctx context.Context, queues ...string) (Backlog, error) {
	if err := ins.check(ctx); err != nil {
		return Backlog{}, err
	}
	found, err := ins.described(ctx, queues)
	if err != nil {
		return Backlog{}, err
	}
	b := Backlog{}
	active := 0
	for i := range found {
		q := &found[i]
		part := QueueBacklog{
			Name: q.Name, Paused: !q.Paused.IsZero(), Pending: q.Pending, Active: q.Active, Latency: q.Latency,
		}
		if part.MeanRun, err = ins.meanRun(ctx, q.Name, q.At); err != nil {
			return Backlog{}, err
		}
		if !part.Paused {
			part.Work = times(part.MeanRun, part.Pending)
			waits, err := ins.waitsForWorker(ctx, q)
			if err != nil {
				return Backlog{}, err
			}
			b.Waiting = b.Waiting || waits
			if !b.Periodic {
				if b.Periodic, err = ins.ticks(ctx, q.Name); err != nil {
					return Backlog{}, err
				}
			}
		}
		b.add(&part)
		active += q.Active
		b.At = q.At
	}
	if err := ins.countHandlers(ctx, &b); err != nil {
		return Backlog{}, err
	}
	b.Busy = min(active, b.Concurrency)
	return b, nil
}

// described describes the given queues, each once, or all that can be described, sorted by name.
func (ins *Inspector) described(ctx context.Context, names []string) ([]Queue, error) {
	if len(names) == 0 {
		all, err := ins.Queues(ctx)
		return slices.DeleteFunc(all, func(q Queue) bool { return q.Err != nil }), err
	}
	var found []Queue
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		q, err := ins.Queue(ctx, name)
		if err != nil {
			return nil, err
		}
		found = append(found, q)
	}
	return found, nil
}

// meanRun returns how long the handlers of a queue run on average; 0 if that is unknown.
func (ins *Inspector) meanRun(ctx context.Context, queue string, now time.Time) (time.Duration, error) {
	for _, g := range []Grain{Minutes, Total} {
		samples, err := ins.Metrics(ctx, queue, g, now.Add(-recent), time.Time{})
		if err != nil {
			return 0, err
		}
		var all Sample
		for i := range samples {
			all.Merge(&samples[i])
		}
		if n := all.Run.Count(); n > 0 {
			return time.Duration(float64(all.Run.Sum()) / float64(n)), nil
		}
	}
	return 0, nil
}

// waitsForWorker reports whether a queue has no worker and something that one must do before tasks are pending.
func (ins *Inspector) waitsForWorker(ctx context.Context, q *Queue) (bool, error) {
	switch {
	case q.Workers > 0:
		return false, nil
	case q.Aggregating > 0 || q.Active > 0 && !q.Legacy:
		return true, nil
	}
	for _, s := range []state.Task{state.Scheduled, state.Retry} {
		if q.Size(s) == 0 {
			continue
		}
		page, err := ins.Tasks(ctx, q.Name, Query{State: s, Limit: 1})
		if err != nil {
			return false, err
		}
		if len(page.Tasks) > 0 && !page.Tasks[0].Due.After(q.At) {
			return true, nil
		}
	}
	return false, nil
}

// ticks reports whether an entry of a queue will tick.
func (ins *Inspector) ticks(ctx context.Context, queue string) (bool, error) {
	entries, err := ins.Entries(ctx, queue)
	if slices.ContainsFunc(entries, func(e Entry) bool { return !e.Next.IsZero() }) {
		return true, nil
	}
	return false, err
}

func (b *Backlog) add(q *QueueBacklog) {
	b.Queues = append(b.Queues, *q)
	if q.Paused {
		return
	}
	b.Pending += q.Pending
	b.Latency = max(b.Latency, q.Latency)
	if b.Work += q.Work; b.Work < 0 {
		b.Work = math.MaxInt64
	}
	if q.MeanRun == 0 {
		b.Unmeasured += q.Pending
	}
}

// countHandlers fills in the workers and their concurrency.
func (ins *Inspector) countHandlers(ctx context.Context, b *Backlog) error {
	if len(b.Queues) == 0 {
		return nil
	}
	names := make([]string, len(b.Queues))
	for i := range b.Queues {
		names[i] = b.Queues[i].Name
	}
	workers, err := ins.Workers(ctx, names...)
	if err != nil {
		return err
	}
	for i := range workers {
		w := &workers[i]
		if w.Alive() && (w.State == 0 || w.State == state.Running) {
			b.Workers++
			b.Concurrency += max(w.Concurrency, 1)
		}
	}
	return nil
}

// Wait is how long the present workers need until the last pending task has ended, if no others come: Work divided by
// Concurrency. Without workers it is Work, as if there were one handler.
func (b *Backlog) Wait() time.Duration { return b.Work / time.Duration(max(b.Concurrency, 1)) }

// WorkersFor returns how many workers are wanted so that Wait is at most target, if each runs so many handlers at once;
// 0 means as many as the present workers have on average, or one if there is none. It is at least as many as keep the
// busy handlers, at least one if anything waits for a worker or a periodic entry will tick, and at least those that
// there are while the run times of pending tasks are unknown. The target must be positive.
func (b *Backlog) WorkersFor(target time.Duration, concurrency int) (int, error) {
	if target <= 0 {
		return 0, fmt.Errorf("inspect: WorkersFor: expected a positive target, found %v", target)
	}
	if concurrency < 0 {
		return 0, fmt.Errorf("inspect: WorkersFor: expected a concurrency of 0 or more, found %d", concurrency)
	}
	each := float64(concurrency)
	if concurrency == 0 {
		each = max(float64(b.Concurrency)/float64(max(b.Workers, 1)), 1)
	}
	handlers := max(float64(b.Work)/float64(target), float64(b.Busy))
	wanted := int(min(math.Ceil(handlers/each), math.MaxInt32))
	if b.Pending > 0 || b.Waiting || b.Periodic {
		wanted = max(wanted, 1)
	}
	if b.Unmeasured > 0 {
		wanted = max(wanted, b.Workers)
	}
	return wanted, nil
}

// times multiplies without overflow.
func times(d time.Duration, n int) time.Duration {
	if n > 0 && d > math.MaxInt64/time.Duration(n) {
		return math.MaxInt64
	}
	return d * time.Duration(n)
}
