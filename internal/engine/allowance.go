package engine

import "time"

// allowance is what limits let executors do. All of it is protected by Executors.Mu, but for what never changes.
type allowance struct {
	Limited bool          // only a number of tasks may start; unchanged
	Budget  int           // how many still may
	OnSpent func()        // called when the last of the budget has ended, with Executors.Mu held
	Rest    time.Duration // of each executor between two tasks; unchanged
	Resting int           // executors that rest
	quit    chan struct{} // closed when the executors stop
	starts  uint64        // tasks that have started
}

// spend notes that a task starts. e.mu is held.
func (e *Executors) spend() {
	e.starts++
	if !e.Limited {
		return
	}
	if e.Budget--; e.Budget == 0 {
		e.signal() // what is ready goes back
	}
}

// spent notices that the last task of the budget has ended. e.mu is held.
func (e *Executors) spent() {
	if e.Limited && e.Budget == 0 && e.Busy == 0 {
		e.OnSpent()
	}
}

// Allowed returns how many of n tasks may be claimed for what is left of the budget. e.mu is held.
func (e *Executors) Allowed(n int) int {
	if !e.Limited {
		return n
	}
	return max(min(n, e.Budget-len(e.Ready)-e.Coming), 0)
}

// Exhausted says whether no more tasks may start.
func (e *Executors) Exhausted() bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Limited && e.Budget == 0
}

// pause gives back the task that an executor ran last and lets the executor rest. It answers false, at once, if the
// executor is to end.
func (e *Executors) pause(i int, last *Claim, done bool, start time.Time) bool {
	now := time.Now()
	e.Mu.Lock()
	e.Leave(last, done, now.Sub(start))
	if e.relieved(i, last) {
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
	e.Resting-- // who goes on takes a task, or tells the fetcher that there is room
	e.Mu.Unlock()
	return true
}

// Stillness says whether nothing is claimed, being claimed or running, and how many tasks have started so far.
func (e *Executors) Stillness() (still bool, starts uint64) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Busy == 0 && len(e.Ready) == 0 && e.Coming == 0 && e.Lone == nil, e.starts
}
