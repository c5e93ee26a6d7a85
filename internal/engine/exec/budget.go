package exec

import (
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/state"
)

// ClaimBudget returns how many tasks to claim now. If that is 0, wait is the time after which to ask again; 0: ask when
// changed says so. back holds overdue tasks, which the caller must give back.
func (e *Executors) ClaimBudget() (n int, wait time.Duration, back []*lane.Claim) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	now := time.Now()
	e.FetcherWaits = false
	if e.Lone != nil {
		return 0, 0, nil
	}
	if e.Pace.fixed < 0 && len(e.Ready) > 0 {
		wait = OverdueTime - now.Sub(e.Ready[0].Batch.At)
		switch {
		case wait > 0:
		case e.Busy+e.Resting < e.N:
			wait = OverdueTime // a free executor starts one now, or they wait for a heartbeat
		default:
			e.Pace.stall(now)
			e.NoAheadUntil = now.Add(NoAheadTime)
			return 0, NoAheadTime, e.TakeBackLocked()
		}
	}
	e.Ahead = 0
	if !now.Before(e.NoAheadUntil) {
		e.Ahead = e.Pace.ahead(e.N, now)
	}
	if n = e.Claimable(); n > 0 {
		return n, wait, nil
	}
	e.FetcherWaits = true
	return 0, wait, nil
}

// Claimable returns how many tasks to claim. It returns 0 while fewer than maxAheadPerCall and than half of those to
// claim ahead would fit: few large claims are cheaper than many small ones. e.mu is held.
func (e *Executors) Claimable() int {
	free := e.N - e.Busy - e.Resting
	n := free + e.Ahead - len(e.Ready) - e.Claiming
	if n <= 0 || n < min((e.Ahead+1)/2, MaxAheadPerCall) {
		return 0
	}
	return e.Allowed(min(n, free+MaxAheadPerCall))
}

// BeginClaim notes that a claim call asks for n tasks.
func (e *Executors) BeginClaim(n int) {
	e.Mu.Lock()
	e.Claiming += n
	e.Mu.Unlock()
}

// EndClaim notes that a claim call for n tasks is over, and its tasks are ready or handled otherwise.
func (e *Executors) EndClaim(n int) {
	e.Mu.Lock()
	e.Claiming -= n
	e.Mu.Unlock()
}

// wakeFetcherIfRoom wakes the fetcher if it waits for room and there is some. e.mu is held.
func (e *Executors) wakeFetcherIfRoom() {
	if e.FetcherWaits && e.Claimable() > 0 {
		e.FetcherWaits = false
		e.WakeFetcher()
	}
}

// taskBudget limits how many tasks the executors start, and how fast. Executors.Mu protects all fields that change.
type taskBudget struct {
	Limited    bool          // startsLeft counts; unchanged
	StartsLeft int           // how many more tasks may start
	Worker     stopper       // is stopped when startsLeft is 0 and the last task has ended; unchanged
	Rest       time.Duration // of each executor between two tasks; unchanged
	Resting    int           // executors that rest
	quit       chan struct{} // closed when the executors stop
	starts     uint64        // number of tasks that have started
}

// countStart notes that a task starts. e.mu is held.
func (e *Executors) countStart() {
	e.starts++
	if !e.Limited {
		return
	}
	if e.StartsLeft--; e.StartsLeft == 0 {
		e.WakeFetcher() // it gives back the ready tasks
	}
}

// checkUsedUp stops the worker if no more tasks may start and the last one has ended. e.mu is held.
func (e *Executors) checkUsedUp() {
	if e.Limited && e.StartsLeft == 0 && e.Busy == 0 {
		e.Worker.StopFor(state.StopMaxTasks)
	}
}

// Allowed returns how many of n tasks may be claimed, so that all of them may start. e.mu is held.
func (e *Executors) Allowed(n int) int {
	if !e.Limited {
		return n
	}
	return max(min(n, e.StartsLeft-len(e.Ready)-e.Claiming), 0)
}

// Exhausted reports whether no more tasks may start.
func (e *Executors) Exhausted() bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Limited && e.StartsLeft == 0
}

// takeRest notes the end of the task that executor i ran last, and lets the executor rest. It returns false, at once,
// if the executor must end.
func (e *Executors) takeRest(i int, last *lane.Claim, done bool, start time.Time) bool {
	now := time.Now()
	e.Mu.Lock()
	e.TaskEnded(last, done, now.Sub(start))
	if e.freeIfReplaced(i, last) {
		e.Mu.Unlock()
		return false
	}
	e.Slots[i].Store(nil)
	e.Resting++
	e.Mu.Unlock()
	timer := time.NewTimer(e.Rest)
	select {
	case <-timer.C:
	case <-e.quit:
		timer.Stop()
	}
	e.Mu.Lock()
	e.Resting-- // the executor now takes a task, or wakes the fetcher because there is room
	e.Mu.Unlock()
	return true
}

// IdleState reports whether nothing is ready, being claimed or running, and how many tasks have started so far.
func (e *Executors) IdleState() (still bool, starts uint64) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Busy == 0 && len(e.Ready) == 0 && e.Claiming == 0 && e.Lone == nil, e.starts
}
