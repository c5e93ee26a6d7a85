package engine

import "time"

// claimBudget returns how many tasks to claim now. If that is 0, wait is the time after which to ask again; 0: ask when
// changed says so. back holds overdue tasks, which the caller must give back.
func (e *executors) claimBudget() (n int, wait time.Duration, back []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.fetcherWaits = false
	if e.lone != nil {
		return 0, 0, nil
	}
	if e.pace.fixed < 0 && len(e.ready) > 0 {
		wait = overdueTime - now.Sub(e.ready[0].batch.at)
		switch {
		case wait > 0:
		case e.busy+e.resting < e.n:
			wait = overdueTime // a free executor starts one now, or they wait for a heartbeat
		default:
			e.pace.stall(now)
			e.noAheadUntil = now.Add(noAheadTime)
			return 0, noAheadTime, e.takeBackLocked()
		}
	}
	e.ahead = 0
	if !now.Before(e.noAheadUntil) {
		e.ahead = e.pace.ahead(e.n, now)
	}
	if n = e.claimable(); n > 0 {
		return n, wait, nil
	}
	e.fetcherWaits = true
	return 0, wait, nil
}

// claimable returns how many tasks to claim. It returns 0 while fewer than maxAheadPerCall and than half of those to
// claim ahead would fit: few large claims are cheaper than many small ones. e.mu is held.
func (e *executors) claimable() int {
	free := e.n - e.busy - e.resting
	n := free + e.ahead - len(e.ready) - e.claiming
	if n <= 0 || n < min((e.ahead+1)/2, maxAheadPerCall) {
		return 0
	}
	return e.allowed(min(n, free+maxAheadPerCall))
}

// beginClaim notes that a claim call asks for n tasks.
func (e *executors) beginClaim(n int) {
	e.mu.Lock()
	e.claiming += n
	e.mu.Unlock()
}

// endClaim notes that a claim call for n tasks is over, and its tasks are ready or handled otherwise.
func (e *executors) endClaim(n int) {
	e.mu.Lock()
	e.claiming -= n
	e.mu.Unlock()
}

// wakeFetcherIfRoom wakes the fetcher if it waits for room and there is some. e.mu is held.
func (e *executors) wakeFetcherIfRoom() {
	if e.fetcherWaits && e.claimable() > 0 {
		e.fetcherWaits = false
		e.wakeFetcher()
	}
}
