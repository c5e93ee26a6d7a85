package web

import (
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
)

// StartJob begins a job and returns its id.
func (h *Handler) StartJob(u User, queue string, s state.Task, f inspect.Filter, a inspect.Action) (string, error) {
	q, err := h.site.newRequest(h.site.ctx, u, "", nil)
	if err != nil {
		return "", err
	}
	j, err := h.site.jobs.start(h.site.ctx, q.ins, order{
		Queue: queue, State: s, Filter: f, What: "Do", Action: a, By: u.Name,
	})
	if err != nil {
		return "", err
	}
	return j.ID, nil
}

// Values of jobs.
const (
	MaxRunning = maxRunning
	MaxJobs    = maxJobs
)
