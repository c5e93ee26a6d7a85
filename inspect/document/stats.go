package document

import "github.com/godelayed/delayed/inspect"

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
