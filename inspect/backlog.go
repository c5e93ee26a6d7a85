package inspect

import (
	"context"
	"math"
	"time"
)

// Backlog says how much work waits in a queue, and how much its workers do: what those need who start and stop workers.
// Times and rates come from Metrics, to which legacy workers and those written in Python do not add.
type Backlog struct {
	Queue   string
	Pending int
	Later   int           // tasks that workers still have to make pending: scheduled, retrying and gathered ones
	Active  int           // tasks that workers have claimed
	Latency time.Duration // age of the oldest pending task
	// PerTask is how long tasks took lately, in the mean: in the last five minutes, or else the last hour, or else
	// since the queue exists. 0: none has run.
	PerTask time.Duration
	Load    float64 // handlers that ran at a time in the last five minutes, in the mean

	Workers   int // that are alive
	Executors int // handlers that they can run at a time, for all their queues together; 0: they do not say
}

// loadTime is over how much time the load is measured, and loadRuns how many runs make a mean.
const (
	loadTime = 5 * time.Minute
	loadRuns = 20
)

// Backlog measures the backlog of a queue.
func (ins *Inspector) Backlog(ctx context.Context, queue string) (*Backlog, error) {
	q, err := ins.Queue(ctx, queue)
	if err != nil {
		return nil, err
	}
	b := &Backlog{
		Queue: queue, Pending: q.Pending, Later: q.Scheduled + q.Retry + q.Aggregating, Active: q.Active,
		Latency: q.Latency,
	}
	workers, err := ins.Workers(ctx, queue)
	if err != nil {
		return nil, err
	}
	long := 0
	for i := range workers {
		if w := &workers[i]; w.Alive() {
			b.Workers++
			b.Executors += w.Concurrency
			for _, r := range w.Running {
				if r.Queue == queue {
					long++
				}
			}
			long += w.MoreRunning
		}
	}
	if err := ins.measure(ctx, b, q.At); err != nil {
		return nil, err
	}
	b.Load = max(b.Load, float64(long)) // those that have not ended yet
	return b, nil
}

// measure fills in what metrics say at a time.
func (ins *Inspector) measure(ctx context.Context, b *Backlog, now time.Time) error {
	lately, err := ins.Metrics(ctx, b.Queue, Minutes, now.Add(-time.Hour), now)
	if err != nil {
		return err
	}
	var recent, hour Sample
	for i := range lately {
		hour.Merge(&lately[i])
		if now.Sub(lately[i].At) < loadTime {
			recent.Merge(&lately[i])
		}
	}
	b.Load = recent.Run.Sum().Seconds() / loadTime.Seconds()
	for _, s := range []*Sample{&recent, &hour} {
		if s.Run.Count() >= loadRuns {
			b.PerTask = s.Run.mean()
			return nil
		}
	}
	always, err := ins.Metrics(ctx, b.Queue, Total, time.Time{}, time.Time{})
	if err != nil {
		return err
	}
	var all Sample
	for i := range always {
		all.Merge(&always[i])
	}
	b.PerTask = all.Run.mean()
	return nil
}

// mean returns the mean of all durations, 0 if there are none.
func (h *Histogram) mean() time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	return time.Duration(float64(h.Sum()) / float64(n))
}

// Work returns how long one executor would need for all pending tasks.
func (b *Backlog) Work() time.Duration { return span(float64(b.Pending) * float64(b.PerTask)) }

// Drain returns how long the present executors need for all pending tasks if none comes; the longest duration if there
// are tasks and no executor is known.
func (b *Backlog) Drain() time.Duration {
	if b.Executors == 0 && b.Pending > 0 {
		return math.MaxInt64
	}
	return span(float64(b.Work()) / float64(max(b.Executors, 1)))
}

// Wanted returns how many executors keep up with the present load and also need no longer than target for what is
// pending; divide it by the Concurrency of a worker, and round up, for the number of workers. While the queue holds a
// task that is to run, it is at least 1, because workers also make due tasks pending. While no task has run, nobody
// knows how long they take: then Wanted is the present number. A target below a millisecond counts as one.
func (b *Backlog) Wanted(target time.Duration) int {
	least := min(b.Pending+b.Later+b.Active, 1)
	if b.PerTask == 0 {
		return max(b.Executors, least)
	}
	wanted := math.Ceil(b.Load + float64(b.Work())/float64(max(target, time.Millisecond)))
	return max(int(min(wanted, math.MaxInt32)), least)
}

// span returns a duration of so many nanoseconds, or the longest one.
func span(ns float64) time.Duration {
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
