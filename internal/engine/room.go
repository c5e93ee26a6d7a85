package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// Room returns how many tasks may be claimed now. If none, it returns how long to wait for more room at most; 0 means
// until changed says so. back are tasks that have waited for too long and are to be given back.
func (e *Executors) Room() (n int, wait time.Duration, back []*Claim) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	now := time.Now()
	e.Hungry = false
	if e.Lone != nil {
		return 0, 0, nil
	}
	if e.Pace.Fixed < 0 && len(e.Ready) > 0 {
		wait = OverdueTime - now.Sub(e.Ready[0].Batch.At)
		switch {
		case wait > 0:
		case e.Busy+e.Resting < e.N:
			wait = OverdueTime // one of them starts now, or waits for a heartbeat
		default:
			e.Pace.Stall(now)
			e.Restless = now.Add(RestlessTime)
			return 0, RestlessTime, e.TakeBackLocked()
		}
	}
	e.Ahead = 0
	if !now.Before(e.Restless) {
		e.Ahead = e.Pace.Ahead(e.N, now)
	}
	if n = e.Space(); n > 0 {
		return n, wait, nil
	}
	e.Hungry = true
	return 0, wait, nil
}

// Space returns how many tasks to claim. As long as more than half of those to be claimed ahead are there or ClaimLot
// do not fit, and no executor goes idle, it is none: few large claims are cheaper than many small ones. e.mu is held.
func (e *Executors) Space() int {
	free := e.N - e.Busy - e.Resting
	n := free + e.Ahead - len(e.Ready) - e.Coming
	if n <= 0 || n < min((e.Ahead+1)/2, ClaimLot) {
		return 0
	}
	return e.Allowed(min(n, free+ClaimLot))
}

// Expect notes that up to n tasks are being claimed.
func (e *Executors) Expect(n int) {
	e.Mu.Lock()
	e.Coming += n
	e.Mu.Unlock()
}

// Arrived notes that the claim of up to n tasks is over, and that they are ready or have been seen to.
func (e *Executors) Arrived(n int) {
	e.Mu.Lock()
	e.Coming -= n
	e.Mu.Unlock()
}

// beckon tells the fetcher when it waits for room and there is some. e.mu is held.
func (e *Executors) beckon() {
	if e.Hungry && e.Space() > 0 {
		e.Hungry = false
		e.signal()
	}
}

// Serve says that the fetcher is about to claim from l, and takes what is done there. What is done on another lane is
// left to its finisher.
func (e *Executors) Serve(l *Lane) (done []*Claim) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if e.Served != nil && e.Served != l && len(e.Served.Done) > 0 {
		e.Served.Finisher.wake()
	}
	e.Served = l
	return l.takeDone()
}

// LeaveOff says that the fetcher claims no more for now. What is done is left to the finishers.
func (e *Executors) LeaveOff() {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if e.Served != nil && len(e.Served.Done) > 0 {
		e.Served.Finisher.wake()
	}
	e.Served = nil
}

// retire is leaveOff for good, when the fetcher ends.
func (e *Executors) retire() {
	e.Mu.Lock()
	e.Hungry = false // nobody waits for room any more
	e.Mu.Unlock()
	e.LeaveOff()
}

// TakeDone takes what is done, for the lane's finisher.
func (e *Executors) TakeDone(l *Lane) []*Claim {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return l.takeDone()
}

// PutDone puts claims back of which Redis could not be told that they are done.
func (e *Executors) PutDone(l *Lane, claims []*Claim) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	l.Done = append(claims, l.Done...)
}

// takeDone takes as much of what is done as one call tells Redis. Executors.Mu is held.
func (l *Lane) takeDone() []*Claim {
	n := min(len(l.Done), redisstore.MaxTokens)
	if n == 0 {
		return nil
	}
	done := l.Done[:n:n]
	if l.Done = l.Done[n:]; len(l.Done) == 0 {
		l.Done = make([]*Claim, 0, n) // the old memory would hold on to what is done
	}
	return done
}
