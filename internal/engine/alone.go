package engine

import (
	"context"

	"github.com/godelayed/delayed/internal/redisstore"
)

// markAlone tells Redis that nothing but c is in this worker's hands. If that fails c starts all the same: its death
// will not count as one alone.
func (w *Worker) markAlone(ctx context.Context, c *Claim) {
	w.exec.mark(c) // whatever the answer is
	if err := c.lane.store.Mark(ctx, w.id, redisstore.MarkAlone, c.token); err != nil {
		w.log.With("queue", c.lane.store.Name).WithError(err).Debug("cannot note that a suspect runs alone")
	}
}

// unmark takes that back, before others start. It says whether they may.
func (w *Worker) unmark(ctx context.Context) bool {
	c := w.exec.markedTask()
	if c == nil {
		return true
	}
	if c.lane.unsettled(c) { // else Redis knows how it ended: the note says nothing any more
		return w.takeBackMark(ctx, c)
	}
	w.exec.mark(nil)
	return true
}

func (w *Worker) takeBackMark(ctx context.Context, c *Claim) bool {
	if err := c.lane.store.Mark(ctx, w.id, redisstore.MarkAlone, ""); err != nil {
		w.log.With("queue", c.lane.store.Name).WithError(err).Debug("cannot note that a suspect runs beside others")
		return false
	}
	w.exec.mark(nil)
	return true
}

// startLone starts the lone task, which is all that is in hand.
func (w *Worker) startLone(ctx context.Context, c *Claim) {
	w.markAlone(ctx, c)
	w.exec.add([]*Claim{c})
}
