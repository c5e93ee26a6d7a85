package fetch

import (
	"context"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/redisstore"
)

// markAlone marks c in Redis as this worker's only task. If that fails c starts all the same, and its death will not
// count as one alone.
func (r *Receiver) markAlone(ctx context.Context, c *lane.Claim) {
	r.Exec.Mark(c) // even if the call fails: it may have run
	if err := c.Lane.Store.Mark(ctx, r.Worker, redisstore.MarkAlone, c.Token); err != nil {
		r.Log.With("queue", c.Lane.Store.Name).WithError(err).Debug("cannot note that a suspect runs alone")
	}
}

// unmarkAlone removes the mark before other tasks start. It reports whether they may start.
func (r *Receiver) unmarkAlone(ctx context.Context) bool {
	c := r.Exec.MarkedTask()
	if c == nil {
		return true
	}
	if c.Lane.IsOpen(c) { // otherwise Redis has removed the claim, and its mark means nothing
		return r.clearAloneMark(ctx, c)
	}
	r.Exec.Mark(nil)
	return true
}

func (r *Receiver) clearAloneMark(ctx context.Context, c *lane.Claim) bool {
	if err := c.Lane.Store.Mark(ctx, r.Worker, redisstore.MarkAlone, ""); err != nil {
		r.Log.With("queue", c.Lane.Store.Name).WithError(err).Debug("cannot note that a suspect runs beside others")
		return false
	}
	r.Exec.Mark(nil)
	return true
}

// StartLone starts the lone task, which must be the worker's only one.
func (r *Receiver) StartLone(ctx context.Context, c *lane.Claim) {
	r.markAlone(ctx, c)
	r.Exec.Add([]*lane.Claim{c})
}
