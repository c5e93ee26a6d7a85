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

// Stats is what queues hold together.
type Stats struct {
	Queues         int            `json:"queues"`
	Paused         int            `json:"paused"`
	Workers        int            `json:"workers"`
	LatencySeconds float64        `json:"latency_seconds"` // the longest
	States         map[string]int `json:"states"`
	Groups         int            `json:"groups"`
	Today          inspect.Counts `json:"today"`
}

// StatsOf adds up queues, and counts the workers that are alive.
func StatsOf(queues []inspect.Queue, workers []inspect.Worker) Stats {
	v := Stats{Queues: len(queues), States: map[string]int{}}
	for _, s := range inspect.States {
		v.States[s.String()] = 0
	}
	for i := range queues {
		q := &queues[i]
		for _, s := range inspect.States {
			v.States[s.String()] += q.Size(s)
		}
		if !q.Paused.IsZero() {
			v.Paused++
		}
		v.Groups += q.Groups
		v.LatencySeconds = max(v.LatencySeconds, q.Latency.Seconds())
		v.Today.Add(&q.Today)
	}
	for i := range workers {
		if workers[i].Alive() {
			v.Workers++
		}
	}
	return v
}

// Groups is the groups of calls that wait.
type Groups struct {
	Groups []Group `json:"groups"`
}

// Group is a group of calls that waits for more of them.
type Group struct {
	Queue    string     `json:"queue"`
	Key      string     `json:"key"`
	Function string     `json:"function"`
	Size     int        `json:"size"`
	Due      *time.Time `json:"due"`
}

// GroupsOf describes groups.
func GroupsOf(groups []inspect.Group) Groups {
	return Groups{each(groups, func(g *inspect.Group) Group {
		return Group{g.Queue, g.Key, g.Function, g.Size, Stamp(g.Due)}
	})}
}
