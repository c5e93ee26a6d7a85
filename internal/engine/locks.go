package engine

import "github.com/godelayed/delayed/state"

// unlockStart frees the lock of a task that is about to start. It returns false if the task must not start; then it has
// handled the end of the claim.
func (r *runner) unlockStart(c *Claim) bool {
	if fields := c.fn.UnknownFields(&c.msg); len(fields) > 0 {
		// A task that does not start keeps its lock.
		c.lane.ends.add(r.park(c, state.ReasonUnknownFields, c.lane.now(), fields...))
		return false
	}
	if r.unlock(c) {
		r.cancelClaim(c, false)
		return false
	}
	return true
}

// unlock frees the lock of a task that starts. replaced: the task must not start, because another task has replaced it.
// If Redis does not answer, the task starts and frees the lock at its end.
func (r *runner) unlock(c *Claim) (replaced bool) {
	left, replaced, err := c.lane.store.Unlock(r.handlersCtx, c.msg.Meta.ID, c.lock())
	log := r.logOf(c)
	switch {
	case err != nil:
		log.WithError(err).Warn("the task's lock could not be freed before it starts, and lasts until it is over")
	case replaced:
		log.Info("task dropped: another one has replaced it")
	default:
		c.lockFreed = !left
	}
	return replaced
}
