package engine

import "time"

// admitSuspect says whether a worker may hold a suspect. One that runs alone becomes lone: it starts when nothing else is in
// hand.
func (e *executors) admitSuspect(c *Claim) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	most := suspectsHeld(e.n, int(c.suspicion))
	if most == 1 {
		e.lone = c // receive lets nothing through while there is one
		return true
	}
	held := 0
	for _, other := range e.ready {
		if other.suspicion >= c.suspicion {
			held++
		}
	}
	for i := range e.slots {
		if other := e.slots[i].Load(); other != nil && !other.stuck && other.suspicion >= c.suspicion {
			held++
		}
	}
	e.crowded = held >= most
	return !e.crowded
}

// stopAhead makes the worker claim no more than its free executors for a while, so that others come to what it gives
// back.
func (e *executors) stopAhead() {
	e.mu.Lock()
	e.noAheadUntil = time.Now().Add(noAheadTime)
	e.mu.Unlock()
}

// isCrowded says whether a suspect was put back because of those in hand, and none of them has ended since.
func (e *executors) isCrowded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.crowded
}

// loneTask returns the task that runs alone or waits for that, nil for none.
func (e *executors) loneTask() *Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lone
}

// markedTask returns the task that Redis was told to be alone in this worker's hands, nil for none.
func (e *executors) markedTask() *Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.marked
}

// mark notes what Redis was told; nil for nothing.
func (e *executors) mark(c *Claim) {
	e.mu.Lock()
	e.marked = c
	e.mu.Unlock()
}

// forgetLone forgets a lone task that has not started.
func (e *executors) forgetLone(c *Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.suspectLeft(c)
}

// suspectLeft notes that a task which had died before has left. e.mu is held.
func (e *executors) suspectLeft(c *Claim) {
	if e.lone == c {
		e.lone = nil
	}
	if c.suspicion >= minSuspectDeaths {
		e.crowded = false
		e.wakeFetcher()
	}
}
