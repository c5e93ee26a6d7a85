package engine

import (
	"time"

	"github.com/godelayed/delayed/state"
)

// taskBudget limits how many tasks the executors start, and how fast. executors.mu protects all fields that change.
type taskBudget struct {
	limited    bool          // startsLeft counts; unchanged
	startsLeft int           // how many more tasks may start
	worker     stopper       // is stopped when startsLeft is 0 and the last task has ended; unchanged
	rest       time.Duration // of each executor between two tasks; unchanged
	resting    int           // executors that rest
	quit       chan struct{} // closed when the executors stop
	starts     uint64        // number of tasks that have started
}

// countStart notes that a task starts. e.mu is held.
func (e *executors) countStart() {
	e.starts++
	if !e.limited {
		return
	}
	if e.startsLeft--; e.startsLeft == 0 {
		e.wakeFetcher() // it gives back the ready tasks
	}
}

// checkUsedUp stops the worker if no more tasks may start and the last one has ended. e.mu is held.
func (e *executors) checkUsedUp() {
	if e.limited && e.startsLeft == 0 && e.busy == 0 {
		e.worker.stopFor(state.StopMaxTasks)
	}
}

// allowed returns how many of n tasks may be claimed, so that all of them may start. e.mu is held.
func (e *executors) allowed(n int) int {
	if !e.limited {
		return n
	}
	return max(min(n, e.startsLeft-len(e.ready)-e.claiming), 0)
}

// exhausted reports whether no more tasks may start.
func (e *executors) exhausted() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.limited && e.startsLeft == 0
}

// takeRest notes the end of the task that executor i ran last, and lets the executor rest. It returns false, at once,
// if the executor must end.
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
	e.resting-- // the executor now takes a task, or tells the fetcher that there is room
	e.mu.Unlock()
	return true
}

// idleState reports whether nothing is ready, being claimed or running, and how many tasks have started so far.
func (e *executors) idleState() (still bool, starts uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.busy == 0 && len(e.ready) == 0 && e.claiming == 0 && e.lone == nil, e.starts
}
