package lane

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Control is what a lane knows of the control hash of its queue.
type Control struct {
	Paused    atomic.Bool   // the queue is paused: claim nothing
	ReadOften atomic.Bool   // a pause or an order stands: each heartbeat asks for the version, to notice its end
	Weight    atomic.Int32  // replaces the configured weight; 0: none
	Poked     chan struct{} // asks for a reading; holds one element
	Turns     chan struct{} // shared by the queues of a slot: readings under way

	Trouble loop.Complaints
	Reading sync.Mutex         // held during a reading, so that an older one cannot overwrite a newer one
	Last    redisstore.Control // what the last reading found
	Version atomic.Int64       // of last; -1 before the first reading
	Reads   atomic.Int64       // number of readings
	Since   atomic.Int64       // when the worker registered first, in ms of Redis's clock; 0: not yet
}

// pokeControl makes the worker read the control hash soon.
func (l *Lane) pokeControl() { loop.Poke(l.Control.Poked) }

// NoteVersion makes the worker read the control hash if Redis has another version of it.
func (l *Lane) NoteVersion(version int64) {
	if version != l.Control.Version.Load() {
		l.pokeControl()
	}
}

// PausedRest is how long the fetcher leaves a queue alone while the worker reads its control hash.
const PausedRest = 20 * time.Millisecond

// Rest says how long the fetcher leaves a queue alone.
type Rest struct {
	Until time.Time
	looks int64 // if not 0: the rest ends early, once Control.Reads has reached this number
}

// RestWhilePaused leaves a queue alone that Redis has reported as paused, until the worker has read the control hash,
// and asks for that. The queue may have been resumed already. If a reading was under way, it may be older than the
// pause; then Redis refuses the next claim again.
func (l *Lane) RestWhilePaused() {
	l.Rest = Rest{Until: time.Now().Add(PausedRest), looks: l.Control.Reads.Load() + 1}
	l.pokeControl()
}

// RestsUntil returns the time until which the fetcher leaves the lane alone.
func (l *Lane) RestsUntil() time.Time {
	if l.Rest.looks != 0 && l.Control.Reads.Load() >= l.Rest.looks {
		return time.Time{}
	}
	return l.Rest.Until
}

// QueuePaused reports whether the last reading of the control hash found the queue paused.
func (l *Lane) QueuePaused() bool { return l.Control.Paused.Load() }

// parkedTasks are the ids of parked tasks that the mover has found for this worker. Other workers may find the same
// ones; the first to claim a task gets it.
type parkedTasks struct {
	Some atomic.Bool // ids is not empty

	mu  sync.Mutex // protects the following
	ids []string
}

// Set replaces the ids.
func (p *parkedTasks) Set(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = ids
	p.Some.Store(len(ids) > 0)
}

// Take removes and returns the first n ids, or fewer.
func (p *parkedTasks) Take(n int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	n = min(n, len(p.ids))
	taken := p.ids[:n:n]
	p.ids = p.ids[n:]
	p.Some.Store(len(p.ids) > 0)
	return taken
}

// putBack puts ids in front of the others.
func (p *parkedTasks) putBack(ids []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ids = slices.Concat(ids, p.ids)
	p.Some.Store(len(p.ids) > 0)
}

// ClaimParked claims at most n of the parked tasks that the mover has found. They do not become pending in between: a
// worker that does not know their functions would claim and park them again.
func (l *Lane) ClaimParked(ctx context.Context, n int) ([]*Claim, error) {
	ids := l.Parked.Take(redisstore.MaxUnparked)
	if len(ids) == 0 {
		return nil, nil
	}
	claims, looked, err := l.Claim(ctx, redisstore.ClaimCall{Most: n, Parked: ids}, nil)
	if err != nil {
		looked = 0
	}
	l.Parked.putBack(ids[looked:])
	return claims, err
}
