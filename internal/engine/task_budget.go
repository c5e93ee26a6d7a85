package engine

import "time"

// taskBudget is what limits let executors do. All of it is protected by executors.mu, but for what never changes.
type taskBudget struct {
	limited    bool          // only a number of tasks may start; unchanged
	startsLeft int           // how many still may
	onUsedUp   func()        // called when the last of the budget has ended, with executors.mu held
	rest       time.Duration // of each executor between two tasks; unchanged
	resting    int           // executors that rest
	quit       chan struct{} // closed when the executors stop
	starts     uint64        // tasks that have started
}

// countStart notes that a task starts. e.mu is held.
func (e *executors) countStart() {
	e.starts++
	if !e.limited {
		return
	}
	if e.startsLeft--; e.startsLeft == 0 {
		e.wakeFetcher() // what is ready goes back
	}
}

// checkUsedUp notices that the last task of the budget has ended. e.mu is held.
func (e *executors) checkUsedUp() {
	if e.limited && e.startsLeft == 0 && e.busy == 0 {
		e.onUsedUp()
	}
}

// allowed returns how many of n tasks may be claimed for what is left of the budget. e.mu is held.
func (e *executors) allowed(n int) int {
	if !e.limited {
		return n
	}
	return max(min(n, e.startsLeft-len(e.ready)-e.claiming), 0)
}

// exhausted says whether no more tasks may start.
func (e *executors) exhausted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.limited && e.startsLeft == 0
}

// takeRest gives back the task that an executor ran last and lets the executor rest. It answers false, at once, if the
// executor is to end.
func (e *executors) takeRest(i int, last *Claim, done bool, start time.Time) bool {
	now := time.Now()
	e.mu.Lock()
	e.taskEnded(last, done, now.Sub(start))
	if e.freeIfReplaced(i, last) {
		e.mu.Unlock()
		return false
	}
	e.slots[i].Store(nil)
	e.resting++
	e.mu.Unlock()
	timer := time.NewTimer(e.rest)
	select {
	case <-timer.C:
	case <-e.quit:
		timer.Stop()
	}
	e.mu.Lock()
	e.resting-- // who goes on takes a task, or tells the fetcher that there is room
	e.mu.Unlock()
	return true
}

// idleState says whether nothing is claimed, being claimed or running, and how many tasks have started so far.
func (e *executors) idleState() (still bool, starts uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.busy == 0 && len(e.ready) == 0 && e.claiming == 0 && e.lone == nil, e.starts
}
