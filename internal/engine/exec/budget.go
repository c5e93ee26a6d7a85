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
			return 0, NoAheadTime, e.TakeBackLocked(nil)
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

// AddClaiming notes that a claim call asks for n tasks, or with -n that it is over: its tasks are ready or handled
// otherwise.
func (e *Executors) AddClaiming(n int) {
	e.Mu.Lock()
	e.Claiming += n
	e.Mu.Unlock()
}

// wakeFetcherIfRoom wakes the fetcher if it waits for room and there is some. e.mu is held.
func (e *Executors) wakeFetcherIfRoom() {
	if e.FetcherWaits && e.Claimable() > 0 {
		e.FetcherWaits = false
		e.WakeFetcher()
	}
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

const (
	// paceTime is how much work a worker claims ahead: as much as its executors do in that time. It covers several
	// round trips to Redis. It is so short that it hardly delays a task that another worker could have started at once.
	paceTime = 5 * time.Millisecond
	// MaxAhead bounds how many tasks a worker claims ahead, however short they are. More gained nothing when measured.
	MaxAhead = 800
	// MaxAheadPerCall bounds how many tasks one call claims ahead. Measured: in calls of several hundred, Redis takes
	// longer for each task.
	MaxAheadPerCall = 200
	// paceWindow is the shortest time over which pace measures handlers.
	paceWindow = time.Millisecond
	// OverdueTime is how long a task that was claimed ahead waits while all executors are busy. Then the worker gives
	// it back.
	OverdueTime = 20 * time.Millisecond
)

// pace measures how long handlers take and decides how many tasks to claim ahead: many short ones, so that no executor
// waits for Redis, and no long ones, which another worker could start. It is not safe for concurrent use.
type pace struct {
	fixed int // tasks to claim ahead; negative: measure

	Mean       time.Duration // of recent handlers; 0: unknown
	took       time.Duration // total time of handlers since the last measurement
	runs       int           // number of these handlers
	MeasuredAt time.Time
	Found      int // result of the last measurement
}

// add notes how long a handler took.
func (p *pace) add(took time.Duration) {
	p.took += took
	p.runs++
}

// ahead returns how many tasks to claim beyond those that n executors can start at once.
func (p *pace) ahead(n int, now time.Time) int {
	if p.fixed >= 0 {
		return p.fixed
	}
	if p.runs == 0 || now.Sub(p.MeasuredAt) < paceWindow {
		return p.Found
	}
	mean := max(p.took/time.Duration(p.runs), 1)
	if p.Mean == 0 || mean > p.Mean {
		p.Mean = mean // handlers take longer now: believe it at once
	} else {
		p.Mean = (p.Mean + mean) / 2
	}
	p.took, p.runs, p.MeasuredAt = 0, 0, now
	p.Found = int(min(time.Duration(n)*paceTime/p.Mean, MaxAhead))
	return p.Found
}

// stall forgets the measurements, because tasks that were claimed ahead have waited for too long.
func (p *pace) stall(now time.Time) {
	p.Mean, p.Found, p.took, p.runs, p.MeasuredAt = 0, 0, 0, 0, now
}

// AdmitSuspect reports whether the worker may take a suspect. One that must run alone becomes the lone task, which
// starts when the worker has no other.
func (e *Executors) AdmitSuspect(c *lane.Claim) bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	most := lane.SuspectsHeld(e.N, int(c.Suspicion))
	if most == 1 {
		e.Lone = c // receive admits no other task while there is a lone one
		return true
	}
	held := 0
	for _, other := range e.Ready {
		if other.Suspicion >= c.Suspicion {
			held++
		}
	}
	for i := range e.Slots {
		if other := e.Slots[i].Load(); other != nil && !other.Stuck && other.Suspicion >= c.Suspicion {
			held++
		}
	}
	e.Crowded.Store(held >= most)
	return held < most
}

// StopAhead makes the worker claim only for its free executors for a while, so that other workers can take what it
// gives back.
func (e *Executors) StopAhead() {
	e.Mu.Lock()
	e.NoAheadUntil = time.Now().Add(NoAheadTime)
	e.Mu.Unlock()
}

// LoneTask returns the task that runs alone or waits until it can, or nil.
func (e *Executors) LoneTask() *lane.Claim {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Lone
}

// ForgetLone forgets a lone task that has not started.
func (e *Executors) ForgetLone(c *lane.Claim) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.suspectLeft(c)
}

// suspectLeft notes that a task with deaths has ended or was put back. e.mu is held.
func (e *Executors) suspectLeft(c *lane.Claim) {
	if e.Lone == c {
		e.Lone = nil
	}
	if c.Suspicion >= lane.MinSuspectDeaths {
		e.Crowded.Store(false)
		e.WakeFetcher()
	}
}
