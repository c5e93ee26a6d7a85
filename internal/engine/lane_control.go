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
	paused    atomic.Bool  // claim nothing
	readOften atomic.Bool  // there is something whose end must not be missed
	weight    atomic.Int32 // in place of the configured one; 0: none
	poke      chan struct{}

	trouble loop.Complaints
	reading sync.Mutex         // one look at a time, so that none is overtaken by an older one
	last    redisstore.Control // what it found
	version atomic.Int64       // of last; -1: there was none yet
	reads   atomic.Int64       // moves on with every look
	since   atomic.Int64       // when the worker has registered first, ms by Redis's clock; 0: not yet
}

// pokeControl asks for a look at the control hash.
func (l *lane) pokeControl() {
	select {
	case l.control.poke <- struct{}{}:
	default:
	}
}

// noteVersion notes the version of the control hash that Redis has now.
func (l *lane) noteVersion(version int64) {
	if version != l.control.version.Load() {
		l.pokeControl()
	}
}

// pausedRest is how long a queue is left alone whose control hash must be looked at.
const pausedRest = 20 * time.Millisecond

// queueRest says how long a queue is left alone.
type queueRest struct {
	until time.Time
	looks int64 // if not 0: it is over when as many looks at the control hash have come, or more
}

// restWhilePaused leaves the lane alone, whose queue was found paused, until the worker has looked at the control hash,
// and asks for that. What that look finds holds: the queue may have been resumed already. A look that was under way may
// be older, and then the next claim is refused again.
func (l *lane) restWhilePaused() {
	l.rest = queueRest{until: time.Now().Add(pausedRest), looks: l.control.reads.Load() + 1}
	l.pokeControl()
}

// restsUntil returns the time before which the lane is left alone.
func (l *lane) restsUntil() time.Time {
	if l.rest.looks != 0 && l.control.reads.Load() >= l.rest.looks {
		return time.Time{}
	}
	return l.rest.until
}

// queuePaused says whether the lane's queue is paused, as far as is known.
func (l *lane) queuePaused() bool { return l.control.paused.Load() }
