package engine

import (
	"context"

	"github.com/godelayed/delayed/internal/redisstore"
)

// markAlone tells Redis that nothing but c is in this worker's hands. If that fails c starts all the same: its death
// will not count as one alone.
func (r *receiver) markAlone(ctx context.Context, c *Claim) {
	r.exec.mark(c) // whatever the answer is
	if err := c.lane.store.Mark(ctx, r.worker, redisstore.MarkAlone, c.token); err != nil {
		r.log.With("queue", c.lane.store.Name).WithError(err).Debug("cannot note that a suspect runs alone")
	}
}

// unmarkAlone takes that back, before others start. It says whether they may.
func (r *receiver) unmarkAlone(ctx context.Context) bool {
	c := r.exec.markedTask()
	if c == nil {
		return true
	}
	if c.lane.isOpen(c) { // else Redis knows how it ended: the note says nothing any more
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

// startLone starts the lone task, which is all that is in hand.
func (r *receiver) startLone(ctx context.Context, c *Claim) {
	r.markAlone(ctx, c)
	r.exec.add([]*Claim{c})
}
