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

// SetParked replaces the ids of parked tasks that the mover has found for this worker. Other workers may find the same
// ones; the first to claim a task gets it.
func (l *Lane) SetParked(ids []string) {
	l.parked.Store(nil)
	if len(ids) > 0 {
		l.parked.Store(&ids)
	}
}

// HasParked reports whether there are such ids.
func (l *Lane) HasParked() bool { return l.parked.Load() != nil }

// ClaimParked claims at most n of the parked tasks that the mover has found. They do not become pending in between: a
// worker that does not know their functions would claim and park them again.
func (l *Lane) ClaimParked(ctx context.Context, n int) ([]*Claim, error) {
	found := l.parked.Swap(nil)
	if found == nil {
		return nil, nil
	}
	ids := *found
	claims, looked, err := l.Claim(ctx,
		redisstore.ClaimCall{Most: n, Parked: ids[:min(len(ids), redisstore.MaxUnparked)]}, nil)
	if err != nil {
		looked = 0
	}
	if ids = ids[looked:]; len(ids) > 0 {
		l.parked.CompareAndSwap(nil, &ids) // else the mover has found others since
	}
	return claims, err
}

// MaxRevoked bounds the ids of canceled tasks that a lane keeps in memory. If there are more, the worker asks Redis
// about each batch of claims.
const MaxRevoked = 1000

// revocations are ids of canceled tasks that a lane knows.
type revocations struct {
	IDs     map[string]bool
	Partial bool // Redis has more ids
}

// NoteRevoked replaces the ids that the lane knows. all: ids are all that Redis has.
func (l *Lane) NoteRevoked(ids []string, all bool) {
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.Revoked = revocations{known, !all}
	l.AnyRevoked.Store(len(ids) > 0)
}

// NoteCanceled adds the id of a canceled task.
func (l *Lane) NoteCanceled(id string) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if l.Revoked.IDs == nil {
		l.Revoked.IDs = map[string]bool{}
	}
	l.Revoked.IDs[id] = true
	l.AnyRevoked.Store(true)
}

// ForgetRevoked removes the id of a task that is not canceled any more.
func (l *Lane) ForgetRevoked(id string) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	delete(l.Revoked.IDs, id)
	l.AnyRevoked.Store(len(l.Revoked.IDs) > 0)
}

// IsRevoked reports whether the lane knows that a task was canceled.
func (l *Lane) IsRevoked(id string) bool {
	if !l.AnyRevoked.Load() || id == "" {
		return false
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Revoked.IDs[id]
}

// CancelHandler notes that the task of a running handler was canceled, and cancels its context.
func (l *Lane) CancelHandler(c *Claim) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if c.settled || c.Canceled.Swap(true) {
		return
	}
	if c.Cancel != nil {
		c.Cancel(ErrCanceled)
	}
}

// EachRevoked asks Redis which of some tasks were canceled, and calls do with their ids.
func EachRevoked(ctx context.Context, s *redisstore.Store, ids []string, do func(id string)) error {
	for page := range slices.Chunk(ids, MaxRevoked) {
		revoked, err := s.AreRevoked(ctx, page)
		if err != nil {
			return err
		}
		for i, id := range page {
			if revoked[i] {
				do(id)
			}
		}
	}
	return nil
}
