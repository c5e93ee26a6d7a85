package engine

import (
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// doneList has claims of one lane that are done, and that no call has acknowledged yet. executors.mu protects it.
type doneList struct {
	claims []*Claim
	wakes  chan<- struct{} // wakes the lane's finisher
}

// take removes and returns as many claims as one call may acknowledge.
func (d *doneList) take() []*Claim {
	n := min(len(d.claims), redisstore.MaxTokens)
	if n == 0 {
		return nil
	}
	taken := d.claims[:n:n]
	if d.claims = d.claims[n:]; len(d.claims) == 0 {
		d.claims = make([]*Claim, 0, n) // the old array would keep the taken claims in memory
	}
	return taken
}

// addLane gives a lane its index and starts its list of done claims. It must be called before start.
func (e *executors) addLane(l *lane, wakes chan<- struct{}) {
	l.index = len(e.done)
	e.done = append(e.done, doneList{wakes: wakes})
	e.tallies = append(e.tallies, tally{})
}

// takeForClaim returns the done claims of l, which the fetcher acknowledges by its next claim call. The finisher of the
// lane that the fetcher claimed from before acknowledges what is left there.
func (e *executors) takeForClaim(l *lane) (done []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.ackLane != l {
		e.wakeFinisher()
	}
	e.ackLane = l
	return e.done[l.index].take()
}

// leaveToFinishers lets the finishers acknowledge done claims, because no claim call follows soon.
func (e *executors) leaveToFinishers() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.wakeFinisher()
	e.ackLane = nil
}

// wakeFinisher wakes the finisher of ackLane if that has done claims. e.mu is held.
func (e *executors) wakeFinisher() {
	if e.ackLane == nil {
		return
	}
	if d := &e.done[e.ackLane.index]; len(d.claims) > 0 {
		loop.Poke(d.wakes)
	}
}

// fetcherEnded notes that there will be no more claim calls.
func (e *executors) fetcherEnded() {
	e.mu.Lock()
	e.fetcherWaits = false
	e.mu.Unlock()
	e.leaveToFinishers()
}

// takeDone returns done claims of l for its finisher.
func (e *executors) takeDone(l *lane) []*Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.done[l.index].take()
}

// putDone puts claims back whose acknowledgement got no answer.
func (e *executors) putDone(l *lane, claims []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := &e.done[l.index]
	d.claims = append(claims, d.claims...)
}

// undone returns how many done claims of a lane no call has taken.
func (e *executors) undone(l *lane) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.done[l.index].claims)
}

// takeTally removes and returns what was counted of a lane's tasks.
func (e *executors) takeTally(l *lane) []talliedSecond {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tallies[l.index].take()
}
