package scale

import (
	"time"

	"github.com/godelayed/delayed/inspect"
)

// Answer is what Handler answers, as JSON: the same fields as delayed scale --json prints. Times are in seconds.
type Answer struct {
	At *time.Time `json:"at"` // by Redis's clock; null if there is no queue
	// WantedWorkers is the number to scale to, so that BacklogSeconds is at most TargetSeconds; see
	// inspect.Backlog.WorkersFor. 0: there is nothing to do, and no periodic entry will tick.
	WantedWorkers int     `json:"wanted_workers"`
	TargetSeconds float64 `json:"target_seconds"`

	BacklogSeconds float64 `json:"backlog_seconds"` // inspect.Backlog.Wait
	// The fields of inspect.Backlog.
	LatencySeconds float64 `json:"latency_seconds"`
	WorkSeconds    float64 `json:"work_seconds"`
	Pending        int     `json:"pending"`
	Unmeasured     int     `json:"unmeasured"`
	Workers        int     `json:"workers"`
	Concurrency    int     `json:"concurrency"`
	Busy           int     `json:"busy"`
	Waiting        bool    `json:"waiting"`

	Queues []Queue `json:"queues"` // sorted by name
}

// Queue is the part of an Answer that is about one queue: the fields of inspect.QueueBacklog.
type Queue struct {
	Name           string  `json:"name"`
	Paused         bool    `json:"paused"`
	Pending        int     `json:"pending"`
	Active         int     `json:"active"`
	LatencySeconds float64 `json:"latency_seconds"`
	MeanRunSeconds float64 `json:"mean_run_seconds"`
	WorkSeconds    float64 `json:"work_seconds"`
}

// newAnswer returns the answer for a backlog.
func newAnswer(b *inspect.Backlog, q *query) (*Answer, error) {
	wanted, err := b.WorkersFor(q.target, q.concurrency)
	if err != nil {
		return nil, err
	}
	a := &Answer{
		WantedWorkers: wanted, TargetSeconds: q.target.Seconds(), BacklogSeconds: b.Wait().Seconds(),
		LatencySeconds: b.Latency.Seconds(), WorkSeconds: b.Work.Seconds(), Pending: b.Pending,
		Unmeasured: b.Unmeasured, Workers: b.Workers, Concurrency: b.Concurrency, Busy: b.Busy, Waiting: b.Waiting,
		Queues: make([]Queue, 0, len(b.Queues)),
	}
	if !b.At.IsZero() {
		a.At = &b.At
	}
	for i := range b.Queues {
		part := &b.Queues[i]
		a.Queues = append(a.Queues, Queue{
			Name: part.Name, Paused: part.Paused, Pending: part.Pending, Active: part.Active,
			LatencySeconds: part.Latency.Seconds(), MeanRunSeconds: part.MeanRun.Seconds(),
			WorkSeconds: part.Work.Seconds(),
		})
	}
	return a, nil
}
