package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// room returns how many tasks may be claimed now. If none, it returns how long to wait for more room at most; 0 means
// until changed says so. back are tasks that have waited for too long and are to be given back.
func (e *executors) room() (n int, wait time.Duration, back []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	e.hungry = false
	if e.lone != nil {
		return 0, 0, nil
	}
	if e.pace.fixed < 0 && len(e.ready) > 0 {
		wait = overdueTime - now.Sub(e.ready[0].batch.at)
		switch {
		case wait > 0:
		case e.busy+e.resting < e.n:
			wait = overdueTime // one of them starts now, or waits for a heartbeat
		default:
			e.pace.stall(now)
			e.restless = now.Add(restlessTime)
			return 0, restlessTime, e.takeBackLocked()
		}
	}
	e.ahead = 0
	if !now.Before(e.restless) {
		e.ahead = e.pace.ahead(e.n, now)
	}
	if n = e.space(); n > 0 {
		return n, wait, nil
	}
	e.hungry = true
	return 0, wait, nil
}

// space returns how many tasks to claim. As long as more than half of those to be claimed ahead are there or claimLot
// do not fit, and no executor goes idle, it is none: few large claims are cheaper than many small ones. e.mu is held.
func (e *executors) space() int {
	free := e.n - e.busy - e.resting
	n := free + e.ahead - len(e.ready) - e.coming
	if n <= 0 || n < min((e.ahead+1)/2, claimLot) {
		return 0
	}
	return e.allowed(min(n, free+claimLot))
}

// expect notes that up to n tasks are being claimed.
func (e *executors) expect(n int) {
	e.mu.Lock()
	e.coming += n
	e.mu.Unlock()
}

// arrived notes that the claim of up to n tasks is over, and that they are ready or have been seen to.
func (e *executors) arrived(n int) {
	e.mu.Lock()
	e.coming -= n
	e.mu.Unlock()
}

// beckon tells the fetcher when it waits for room and there is some. e.mu is held.
func (e *executors) beckon() {
	if e.hungry && e.space() > 0 {
		e.hungry = false
		e.signal()
	}
}

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

// leaveOff says that the fetcher claims no more for now. What is done is left to the finishers.
func (e *executors) leaveOff() {
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
	e.hungry = false // nobody waits for room any more
	e.mu.Unlock()
	e.leaveOff()
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
