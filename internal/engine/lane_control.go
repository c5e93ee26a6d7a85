package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// laneControl is what a lane knows of the control hash of its queue.
type laneControl struct {
	paused    atomic.Bool   // the queue is paused: claim nothing
	readOften atomic.Bool   // a pause or an order stands: each heartbeat asks for the version, to notice its end
	weight    atomic.Int32  // replaces the configured weight; 0: none
	poke      chan struct{} // asks for a reading; holds one element
	turns     chan struct{} // shared by the queues of a slot: readings under way

	trouble loop.Complaints
	reading sync.Mutex         // held during a reading, so that an older one cannot overwrite a newer one
	last    redisstore.Control // what the last reading found
	version atomic.Int64       // of last; -1 before the first reading
	reads   atomic.Int64       // number of readings
	since   atomic.Int64       // when the worker registered first, in ms of Redis's clock; 0: not yet
}

// pokeControl makes the worker read the control hash soon.
func (l *lane) pokeControl() { loop.Poke(l.control.poke) }

// noteVersion makes the worker read the control hash if Redis has another version of it.
func (l *lane) noteVersion(version int64) {
	if version != l.control.version.Load() {
		l.pokeControl()
	}
}

// pausedRest is how long the fetcher leaves a queue alone while the worker reads its control hash.
const pausedRest = 20 * time.Millisecond

// queueRest says how long the fetcher leaves a queue alone.
type queueRest struct {
	until time.Time
	looks int64 // if not 0: the rest ends early, once laneControl.reads has reached this number
}

// restWhilePaused leaves a queue alone that Redis has reported as paused, until the worker has read the control hash,
// and asks for that. The queue may have been resumed already. If a reading was under way, it may be older than the
// pause; then Redis refuses the next claim again.
func (l *lane) restWhilePaused() {
	l.rest = queueRest{until: time.Now().Add(pausedRest), looks: l.control.reads.Load() + 1}
	l.pokeControl()
}

// restsUntil returns the time until which the fetcher leaves the lane alone.
func (l *lane) restsUntil() time.Time {
	if l.rest.looks != 0 && l.control.reads.Load() >= l.rest.looks {
		return time.Time{}
	}
	return l.rest.until
}

// queuePaused reports whether the last reading of the control hash found the queue paused.
func (l *lane) queuePaused() bool { return l.control.paused.Load() }
