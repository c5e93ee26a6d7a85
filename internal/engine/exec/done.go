package exec

import (
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// doneList has claims of one lane that are done, and that no call has acknowledged yet. Executors.Mu protects it.
type doneList struct {
	Claims []*lane.Claim
	wakes  chan<- struct{} // wakes the lane's finisher
}

// take removes and returns as many claims as one call may acknowledge.
func (d *doneList) take() []*lane.Claim {
	n := min(len(d.Claims), redisstore.MaxTokens)
	if n == 0 {
		return nil
	}
	taken := d.Claims[:n:n]
	if d.Claims = d.Claims[n:]; len(d.Claims) == 0 {
		d.Claims = make([]*lane.Claim, 0, n) // the old array would keep the taken claims in memory
	}
	return taken
}

// AddLane gives a lane its index and starts its list of done claims. It must be called before start.
func (e *Executors) AddLane(l *lane.Lane, wakes chan<- struct{}) {
	l.Index = len(e.Done)
	e.Done = append(e.Done, doneList{wakes: wakes})
	e.tallies = append(e.tallies, Tally{})
}

// TakeForClaim returns the done claims of l, which the fetcher acknowledges by its next claim call. The finisher of the
// lane that the fetcher claimed from before acknowledges what is left there.
func (e *Executors) TakeForClaim(l *lane.Lane) (done []*lane.Claim) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if e.AckLane != l {
		e.wakeFinisher()
	}
	e.AckLane = l
	return e.Done[l.Index].take()
}

// LeaveToFinishers lets the finishers acknowledge done claims, because no claim call follows soon.
func (e *Executors) LeaveToFinishers() {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.wakeFinisher()
	e.AckLane = nil
}

// wakeFinisher wakes the finisher of ackLane if that has done claims. e.mu is held.
func (e *Executors) wakeFinisher() {
	if e.AckLane == nil {
		return
	}
	if d := &e.Done[e.AckLane.Index]; len(d.Claims) > 0 {
		loop.Poke(d.wakes)
	}
}

// FetcherEnded notes that there will be no more claim calls.
func (e *Executors) FetcherEnded() {
	e.Mu.Lock()
	e.FetcherWaits = false
	e.Mu.Unlock()
	e.LeaveToFinishers()
}

// TakeDone returns done claims of l for its finisher.
func (e *Executors) TakeDone(l *lane.Lane) []*lane.Claim {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.Done[l.Index].take()
}

// PutDone puts claims back whose acknowledgement got no answer.
func (e *Executors) PutDone(l *lane.Lane, claims []*lane.Claim) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	d := &e.Done[l.Index]
	d.Claims = append(claims, d.Claims...)
}

// Undone returns how many done claims of a lane no call has taken.
func (e *Executors) Undone(l *lane.Lane) int {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return len(e.Done[l.Index].Claims)
}

// TakeTally removes and returns what was counted of a lane's tasks.
func (e *Executors) TakeTally(l *lane.Lane) []TalliedSecond {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.tallies[l.Index].Take()
}
