package engine

// unlockStart frees the lock of a task that is about to start. It answers false if the task does not start, and has
// seen to what becomes of it.
func (r *runner) unlockStart(c *Claim) bool {
	if fields := c.fn.UnknownFields(&c.msg); len(fields) > 0 {
		c.lane.ends.add(r.park(c, parkedFields, c.lane.now(), fields...)) // it has not started: its lock lasts
		return false
	}
	if r.unlock(c) {
		r.cancelClaim(c, false)
		return false
	}
	return true
}

// unlock frees the lock of a task that starts, and answers whether it must not: another one has taken its place. If
// Redis does not answer, the task starts, and the lock ends with it.
func (r *runner) unlock(c *Claim) (replaced bool) {
	left, replaced, err := c.lane.store.Unlock(r.handlersCtx, c.msg.Meta.ID)
	log := r.logOf(c)
	switch {
	case err != nil:
		log.WithError(err).Warn("the task's lock could not be freed before it starts, and lasts until it is over")
	case replaced:
		log.Info("task dropped: another one has taken its place")
	default:
		c.lockFreed = !left
	}
	return replaced
}
