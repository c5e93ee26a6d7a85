package engine

import "github.com/godelayed/delayed/internal/redisstore"

// serve says that the fetcher is about to claim from l, and takes what is done there. What is done on another lane is
// left to its finisher.
func (e *executors) serve(l *lane) (done []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.served != nil && e.served != l && len(e.served.done) > 0 {
		e.served.finisher.wake()
	}
	e.served = l
	return l.takeDone()
}

// stopServing says that the fetcher claims no more for now. What is done is left to the finishers.
func (e *executors) stopServing() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.served != nil && len(e.served.done) > 0 {
		e.served.finisher.wake()
	}
	e.served = nil
}

// retire is leaveOff for good, when the fetcher ends.
func (e *executors) retire() {
	e.mu.Lock()
	e.fetcherWaits = false // nobody waits for room any more
	e.mu.Unlock()
	e.stopServing()
}

// takeDone takes what is done, for the lane's finisher.
func (e *executors) takeDone(l *lane) []*Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return l.takeDone()
}

// putDone puts claims back of which Redis could not be told that they are done.
func (e *executors) putDone(l *lane, claims []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.done = append(claims, l.done...)
}

// takeDone takes as much of what is done as one call tells Redis. executors.mu is held.
func (l *lane) takeDone() []*Claim {
	n := min(len(l.done), redisstore.MaxTokens)
	if n == 0 {
		return nil
	}
	done := l.done[:n:n]
	if l.done = l.done[n:]; len(l.done) == 0 {
		l.done = make([]*Claim, 0, n) // the old memory would hold on to what is done
	}
	return done
}
