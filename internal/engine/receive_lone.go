package engine

import (
	"context"

	"github.com/godelayed/delayed/internal/redisstore"
)

// markAlone marks c in Redis as this worker's only task. If that fails c starts all the same, and its death will not
// count as one alone.
func (r *receiver) markAlone(ctx context.Context, c *Claim) {
	r.exec.mark(c) // even if the call fails: it may have run
	if err := c.lane.store.Mark(ctx, r.worker, redisstore.MarkAlone, c.token); err != nil {
		r.log.With("queue", c.lane.store.Name).WithError(err).Debug("cannot note that a suspect runs alone")
	}
}

// unmarkAlone removes the mark before other tasks start. It reports whether they may start.
func (r *receiver) unmarkAlone(ctx context.Context) bool {
	c := r.exec.markedTask()
	if c == nil {
		return true
	}
	if c.lane.isOpen(c) { // otherwise Redis has removed the claim, and its mark means nothing
		return r.clearAloneMark(ctx, c)
	}
	r.exec.mark(nil)
	return true
}

func (r *receiver) clearAloneMark(ctx context.Context, c *Claim) bool {
	if err := c.lane.store.Mark(ctx, r.worker, redisstore.MarkAlone, ""); err != nil {
		r.log.With("queue", c.lane.store.Name).WithError(err).Debug("cannot note that a suspect runs beside others")
		return false
	}
	r.exec.mark(nil)
	return true
}

// startLone starts the lone task, which must be the worker's only one.
func (r *receiver) startLone(ctx context.Context, c *Claim) {
	r.markAlone(ctx, c)
	r.exec.add([]*Claim{c})
}
