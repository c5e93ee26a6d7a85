package document

import (
	"time"

	"github.com/godelayed/delayed/inspect"
)

// Queues is the list of queues.
type Queues struct {
	Queues []Queue `json:"queues"`
}

// OneQueue is one queue.
type OneQueue struct {
	Queue Queue `json:"queue"`
}

// Queue is what a queue holds.
type Queue struct {
	Name           string         `json:"name"`
	At             *time.Time     `json:"at"`              // when this was read, by the clock of Redis
	Legacy         bool           `json:"legacy"`          // legacy workers share it
	Paused         *time.Time     `json:"paused"`          // since when it is paused; null: it is not
	Weight         int            `json:"weight"`          // 0: as each worker is configured
	Workers        int            `json:"workers"`         // that are alive
	LatencySeconds float64        `json:"latency_seconds"` // age of the oldest pending task; 0: unknown
	Pending        int            `json:"pending"`         // suspects included
	Suspects       int            `json:"suspects"`        // pending tasks that died with a worker lately
	Active         int            `json:"active"`          // claimed by workers
	Scheduled      int            `json:"scheduled"`
	Retry          int            `json:"retry"`
	Parked         int            `json:"parked"`
	Aggregating    int            `json:"aggregating"` // calls that wait in groups
	Groups         int            `json:"groups"`
	Archived       int            `json:"archived"`
	Completed      int            `json:"completed"`
	MemoryBytes    *int64         `json:"memory_bytes,omitempty"` // an estimate, of one queue only
	Today          inspect.Counts `json:"today"`
	Error          string         `json:"error,omitempty"` // why nothing is known of it but its name
}

// QueueOf describes a queue.
func QueueOf(q *inspect.Queue) Queue {
	if q.Err != nil {
		return Queue{Name: q.Name, Legacy: q.Legacy, Error: ErrorText(q.Err.Error())}
	}
	return Queue{
		Name: q.Name, At: Stamp(q.At), Legacy: q.Legacy, Paused: Stamp(q.Paused), Weight: q.Weight, Workers: q.Workers,
		LatencySeconds: q.Latency.Seconds(), Pending: q.Pending, Suspects: q.Suspects, Active: q.Active,
		Scheduled: q.Scheduled, Retry: q.Retry, Parked: q.Parked, Aggregating: q.Aggregating, Groups: q.Groups,
		Archived: q.Archived, Completed: q.Completed, Today: q.Today,
	}
}

// QueuesOf describes queues.
func QueuesOf(queues []inspect.Queue) Queues { return Queues{each(queues, QueueOf)} }

// History is what became of a queue's tasks, day by day.
type History struct {
	Queue string `json:"queue"`
	Days  []Day  `json:"days"`
}

// Day is what became of a queue's tasks on one day of UTC.
type Day struct {
	Date string `json:"date"`
	inspect.Counts
}

// HistoryOf describes the days of a queue.
func HistoryOf(queue string, days []inspect.Day) History {
	return History{queue, each(days, func(d *inspect.Day) Day { return Day{d.Date.Format(time.DateOnly), d.Counts} })}
}
