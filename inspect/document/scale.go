package document

import (
	"time"

	"github.com/godelayed/delayed/inspect"
)

// Scale is how much work waits, and how many workers are wanted for it.
type Scale struct {
	At             *time.Time `json:"at"`              // by the clock of Redis
	BacklogSeconds float64    `json:"backlog_seconds"` // work divided by concurrency: inspect.Backlog.Wait
	LatencySeconds float64    `json:"latency_seconds"` // age of the oldest pending task
	WorkSeconds    float64    `json:"work_seconds"`    // pending tasks × mean run: what one handler would take
	Pending        int        `json:"pending"`         // of queues that are not paused
	Unmeasured     int        `json:"unmeasured"`      // of pending: tasks of queues whose mean run is unknown
	Workers        int        `json:"workers"`         // that are alive and take tasks
	Concurrency    int        `json:"concurrency"`     // handlers that they can run at once
	Busy           int        `json:"busy"`            // of these, the ones that have a task
	Waiting        bool       `json:"waiting"`         // a queue without workers needs one in any case
	TargetSeconds  float64    `json:"target_seconds"`
	// WantedWorkers is the number to scale to, so that BacklogSeconds is at most TargetSeconds; see
	// inspect.Backlog.WorkersFor. 0: there is nothing to do, and no periodic entry will tick.
	WantedWorkers int          `json:"wanted_workers"`
	Queues        []ScaleQueue `json:"queues"` // sorted by name
}

// ScaleQueue is the part of the work that waits in one queue.
type ScaleQueue struct {
	Name           string  `json:"name"`
	Paused         bool    `json:"paused"` // its tasks do not count
	Pending        int     `json:"pending"`
	Active         int     `json:"active"`
	LatencySeconds float64 `json:"latency_seconds"`
	MeanRunSeconds float64 `json:"mean_run_seconds"` // 0: unknown
	WorkSeconds    float64 `json:"work_seconds"`
}

// ScaleOf describes a backlog, and a number of workers that are wanted for a target.
func ScaleOf(b *inspect.Backlog, target time.Duration, wanted int) Scale {
	return Scale{
		At: Stamp(b.At), BacklogSeconds: b.Wait().Seconds(), LatencySeconds: b.Latency.Seconds(),
		WorkSeconds: b.Work.Seconds(), Pending: b.Pending, Unmeasured: b.Unmeasured, Workers: b.Workers,
		Concurrency: b.Concurrency, Busy: b.Busy, Waiting: b.Waiting, TargetSeconds: target.Seconds(),
		WantedWorkers: wanted, Queues: each(b.Queues, func(q *inspect.QueueBacklog) ScaleQueue {
			return ScaleQueue{
				Name: q.Name, Paused: q.Paused, Pending: q.Pending, Active: q.Active,
				LatencySeconds: q.Latency.Seconds(), MeanRunSeconds: q.MeanRun.Seconds(), WorkSeconds: q.Work.Seconds(),
			}
		}),
	}
}
