package exec

import (
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
)

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
	e.Crowded = held >= most
	return !e.Crowded
}

// StopAhead makes the worker claim only for its free executors for a while, so that other workers can take what it
// gives back.
func (e *Executors) StopAhead() {
	e.Mu.Lock()
	e.NoAheadUntil = time.Now().Add(NoAheadTime)
	e.Mu.Unlock()
}

// IsCrowded reports whether the worker has put back a suspect because it had too many, and none of these has ended
// since.
func (e *Executors) IsCrowded() bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Crowded
}

// LoneTask returns the task that runs alone or waits until it can, or nil.
func (e *Executors) LoneTask() *lane.Claim {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Lone
}

// MarkedTask returns the task that is marked in Redis as this worker's only one, or nil.
func (e *Executors) MarkedTask() *lane.Claim {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.marked
}

// Mark notes which task is marked in Redis; nil: none.
func (e *Executors) Mark(c *lane.Claim) {
	e.Mu.Lock()
	e.marked = c
	e.Mu.Unlock()
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
		e.Crowded = false
		e.WakeFetcher()
	}
}
