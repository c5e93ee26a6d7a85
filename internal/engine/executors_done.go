package engine

import "github.com/godelayed/delayed/internal/redisstore"

// doneClaims are claims of one lane that are done and that nobody has taken to acknowledge them. executors.mu protects
// them.
type doneClaims struct {
	claims []*Claim
	wake   func() // wakes the lane's finisher, which takes what no claim call takes along
}

// take takes as many as one call tells Redis.
func (d *doneClaims) take() []*Claim {
	n := min(len(d.claims), redisstore.MaxTokens)
	if n == 0 {
		return nil
	}
	taken := d.claims[:n:n]
	if d.claims = d.claims[n:]; len(d.claims) == 0 {
		d.claims = make([]*Claim, 0, n) // the old memory would hold on to what is done
	}
	return taken
}

// addLane gives a lane its index, and keeps what is done on it from now on until somebody takes it. It is called before
// start.
func (e *executors) addLane(l *lane, wake func()) {
	l.index = len(e.done)
	e.done = append(e.done, doneClaims{wake: wake})
}

// takeForClaim says that the fetcher is about to claim from l, and takes what is done there. What is done on another lane is
// left to its finisher.
func (e *executors) takeForClaim(l *lane) (done []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ackLane != l {
		e.wakeFinisher()
	}
	e.ackLane = l
	return e.done[l.index].take()
}

// leaveToFinishers says that the fetcher claims no more for now. What is done is left to the finishers.
func (e *executors) leaveToFinishers() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakeFinisher()
	e.ackLane = nil
}

// wakeFinisher leaves what is done on the lane that the fetcher has served to its finisher. e.mu is held.
func (e *executors) wakeFinisher() {
	if e.ackLane == nil {
		return
	}
	if d := &e.done[e.ackLane.index]; len(d.claims) > 0 {
		d.wake()
	}
}

// fetcherEnded is stopServing for good, when the fetcher ends.
func (e *executors) fetcherEnded() {
	e.mu.Lock()
	e.fetcherWaits = false // nobody waits for room any more
	e.mu.Unlock()
	e.leaveToFinishers()
}

// takeDone takes what is done, for the lane's finisher.
func (e *executors) takeDone(l *lane) []*Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done[l.index].take()
}

// putDone puts claims back of which Redis could not be told that they are done.
func (e *executors) putDone(l *lane, claims []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := &e.done[l.index]
	d.claims = append(claims, d.claims...)
}

// undone returns how many claims are done on a lane and not taken.
func (e *executors) undone(l *lane) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.done[l.index].claims)
}
