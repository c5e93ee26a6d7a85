package engine

// maxRevoked bounds the ids of cancelled tasks that a lane keeps in memory. If there are more, Redis is asked for each
// batch of claims.
const maxRevoked = 1000

// revocations are the ids of cancelled tasks, as far as a lane knows them.
type revocations struct {
	ids     map[string]bool
	partial bool // there are more
}

// noteRevoked replaces what the lane knows. It is called with all that was cancelled before the present version of the
// control hash.
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

// noteCanceled adds one id, of which a signal has told.
func (l *lane) noteCanceled(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked.ids == nil {
		l.revoked.ids = map[string]bool{}
	}
	l.revoked.ids[id] = true
	l.anyRevoked.Store(true)
}

// forgetRevoked removes ids that are not those of cancelled tasks any more.
func (l *lane) forgetRevoked(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.revoked.ids, id)
	l.anyRevoked.Store(len(l.revoked.ids) > 0)
}

// isRevoked says whether a task was cancelled, as far as the lane knows.
func (l *lane) isRevoked(id string) bool {
	if !l.anyRevoked.Load() || id == "" {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revoked.ids[id]
}

// cancelHandler notes that the task of a running handler was cancelled, and ends the handler's context.
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
