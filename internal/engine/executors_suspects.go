package engine

import "time"

// admitSuspect reports whether the worker may take a suspect. One that must run alone becomes the lone task, which
// starts when the worker has no other.
func (e *executors) admitSuspect(c *Claim) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	most := suspectsHeld(e.n, int(c.suspicion))
	if most == 1 {
		e.lone = c // receive admits no other task while there is a lone one
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

// stopAhead makes the worker claim only for its free executors for a while, so that other workers can take what it
// gives back.
func (e *executors) stopAhead() {
	e.mu.Lock()
	e.noAheadUntil = time.Now().Add(noAheadTime)
	e.mu.Unlock()
}

// isCrowded reports whether the worker has put back a suspect because it had too many, and none of these has ended
// since.
func (e *executors) isCrowded() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.crowded
}

// loneTask returns the task that runs alone or waits until it can, or nil.
func (e *executors) loneTask() *Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.lone
}

// markedTask returns the task that is marked in Redis as this worker's only one, or nil.
func (e *executors) markedTask() *Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.marked
}

// mark notes which task is marked in Redis; nil: none.
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

// suspectLeft notes that a task with deaths has ended or was put back. e.mu is held.
func (e *executors) suspectLeft(c *Claim) {
	if e.lone == c {
		e.lone = nil
	}
	if c.suspicion >= minSuspectDeaths {
		e.crowded = false
		e.wakeFetcher()
	}
}
