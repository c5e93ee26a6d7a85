package engine

// maxRevoked bounds the ids of cancelled tasks that a lane keeps in memory. If there are more, the worker asks Redis
// about each batch of claims.
const maxRevoked = 1000

// revocations are ids of cancelled tasks that a lane knows.
type revocations struct {
	ids     map[string]bool
	partial bool // Redis has more ids
}

// noteRevoked replaces the ids that the lane knows. all: ids are all that Redis has.
func (l *lane) noteRevoked(ids []string, all bool) {
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revoked = revocations{known, !all}
	l.anyRevoked.Store(len(ids) > 0)
}

// noteCanceled adds the id of a cancelled task.
func (l *lane) noteCanceled(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked.ids == nil {
		l.revoked.ids = map[string]bool{}
	}
	l.revoked.ids[id] = true
	l.anyRevoked.Store(true)
}

// forgetRevoked removes the id of a task that is not cancelled any more.
func (l *lane) forgetRevoked(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.revoked.ids, id)
	l.anyRevoked.Store(len(l.revoked.ids) > 0)
}

// isRevoked reports whether the lane knows that a task was cancelled.
func (l *lane) isRevoked(id string) bool {
	if !l.anyRevoked.Load() || id == "" {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revoked.ids[id]
}

// cancelHandler notes that the task of a running handler was cancelled, and cancels its context.
func (l *lane) cancelHandler(c *Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.settled || c.canceled.Swap(true) {
		return
	}
	if c.cancel != nil {
		c.cancel(ErrCanceled)
	}
}
