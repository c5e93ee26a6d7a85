package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// depthPatience is for how long a worker leaves a queue's depth to another worker that has noted it.
const depthPatience = 3 * redisstore.DepthStep

// laneDepth says when a worker next notes how many tasks are pending on a queue.
type laneDepth struct {
	next time.Time // not before; the zero value: now
	rest time.Time // even if nothing seems to be pending
	some bool      // some were pending when it last did so
}

// due reports whether to note the depth now.
func (d *laneDepth) due(at time.Time, waiting bool) bool {
	return !at.Before(d.next) && (waiting || !at.Before(d.rest))
}

// done takes the answer of Redis, whose clock shows now: how many tasks are pending, or -1 if another worker has noted
// that. A queue that becomes empty is noted in the next minute too, because of this minute only the peak is kept.
func (d *laneDepth) done(pending int64, at, now time.Time) {
	ms := now.UnixMilli()
	until := func(step time.Duration) time.Time {
		return at.Add(step - time.Duration(ms%step.Milliseconds())*time.Millisecond)
	}
	d.next = until(redisstore.DepthStep)
	switch {
	case pending < 0:
		d.next = d.next.Add(depthPatience - redisstore.DepthStep)
		d.rest = d.next
	case pending > 0:
		d.rest = d.next
	case d.some:
		d.rest = until(time.Minute)
	default:
		d.rest = d.next.Add(redisstore.DepthRest - redisstore.DepthStep)
	}
	d.some = pending > 0
}
