package engine

import "context"

// unlockStart frees the lock of a task that is about to start. It answers false if the task does not start, and has
// seen to what becomes of it.
func (w *Worker) unlockStart(c *Claim) bool {
	if fields := c.fn.UnknownFields(&c.msg); len(fields) > 0 {
		c.lane.finisher.add(w.park(c, reasonFields, c.lane.now(), fields...)) // it has not started: its lock lasts
		return false
	}
	if w.unlock(c) {
		w.cancelClaim(c, false)
		return false
	}
	return true
}

// unlock frees the lock of a task that starts, and answers whether it must not: another one has taken its place. If
// Redis does not answer, the task starts, and the lock ends with it.
func (w *Worker) unlock(c *Claim) (replaced bool) {
	left, replaced, err := c.lane.store.Unlock(w.tasks, c.msg.Meta.ID)
	log := w.log.With("queue", c.lane.store.Name).With("function", c.msg.Path).With("id", c.msg.Meta.ID)
	switch {
	case err != nil:
		log.WithError(err).Warn("the task's lock could not be freed before it starts, and lasts until it is over")
	case replaced:
		log.Info("task dropped: another one has taken its place")
	default:
		c.freed = !left
	}
	return replaced
}

// disown frees what a task has to itself that was handed on to another queue, whose workers cannot do it. If Redis does
// not answer, it lapses.
func (f *finisher) disown(ctx context.Context, c *Claim) {
	if err := f.lane.store.FreeForwarded(ctx, c.msg.Meta.ID); err != nil {
		f.log.With("function", c.msg.Path).With("id", c.msg.Meta.ID).WithError(err).
			Warn("the lock of a task that was handed on could not be freed, and lasts until it lapses")
	}
}

// held says whether the task may have something to give up when it ends.
func (c *Claim) held() bool {
	x := c.msg.Meta.Extra
	return x != nil && x.Lock != "" && !c.freed
}
