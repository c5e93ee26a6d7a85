package engine

import (
	"context"
	"errors"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// MostFlying is how many claim calls are under way at a time: while Redis carries out one, the worker unpacks the
// other.
const MostFlying = 2

// Flight is one claim call of the fetcher.
type Flight struct {
	lane   int // position
	room   int // tasks asked for
	claims []*Claim
	left   int // pending after it
	parked bool
	err    error

	suspects bool // of suspects
}

// claim takes at most room tasks of one queue. It returns how many of them are to run here, or, if that is not known
// yet, how many may be.
func (f *Fetcher) claim(ctx context.Context, i, room, held int) int {
	l := f.Lanes[i]
	// A claim is not cut off when the worker stops: its reply says what has to be given back.
	kept := context.WithoutCancel(ctx)
	call := redisstore.ClaimCall{Most: room, Held: held, Mend: f.Mend[i]}
	done := f.Exec.Serve(l)
	f.serving = true
	fl := Flight{lane: i, room: room}
	f.Exec.Expect(room)
	if !f.ahead(i, room) || held > 0 || call.Mend {
		fl.claims, fl.left, fl.err = l.Claim(kept, call, done)
		return f.conclude(ctx, fl)
	}
	f.Flying++
	l.left -= room
	go func() {
		fl.claims, fl.left, fl.err = l.Claim(kept, call, done)
		f.Landed <- fl
	}()
	return room
}

// ahead says whether the fetcher goes on while a claim is under way: the queue has more than that one takes. A lone
// executor gets its tasks one call after the other, so that it runs them in the order of the queue.
func (f *Fetcher) ahead(i, room int) bool {
	return f.Exec.N > 1 && f.Lanes[i].left >= 2*room
}

// land takes the answer of a call that was under way.
func (f *Fetcher) land(ctx context.Context, fl Flight) {
	f.Flying--
	f.conclude(ctx, fl)
}

// conclude takes the answer of a call. It returns how many tasks are to run here.
func (f *Fetcher) conclude(ctx context.Context, fl Flight) (kept int) {
	i := fl.lane
	defer f.Exec.Arrived(fl.room)
	if !f.answered(fl) {
		return 0
	}
	if fl.parked {
		return f.receive(ctx, fl.claims) // nothing was learnt of the pending ones
	}
	f.Mend[i] = false
	f.Lanes[i].left = fl.left
	// On a legacy queue tasks may be left that have no notification: they are another's.
	f.Hot[i] = fl.left > 0 && (len(fl.claims) > 0 || fl.room == 0)
	if !f.Hot[i] {
		f.Probed[i] = time.Now()
	}
	return f.receive(ctx, fl.claims)
}

// answered says whether a claim call has brought an answer, and sees to what has gone wrong if it has not.
func (f *Fetcher) answered(fl Flight) bool {
	i := fl.lane
	switch {
	case errors.Is(fl.err, redisstore.ErrNoHeartbeat):
		f.Lanes[i].Beat()
		f.Of[i].Until = time.Now().Add(20 * time.Millisecond)
		return false
	case errors.Is(fl.err, redisstore.ErrBatchUsed):
		f.log.With("queue", f.Lanes[i].Store.Name).Error("a batch number was used before; going on with the next")
		return false
	case errors.Is(fl.err, redisstore.ErrQueuePaused):
		f.Lanes[i].RestWhilePaused()
		f.Hot[i] = true
		return false
	case fl.err != nil:
		f.log.With("queue", f.Lanes[i].Store.Name).Trouble(&f.trouble, "cannot claim tasks; trying again", fl.err)
		f.Of[i].Until = time.Now().Add(f.Of[i].claims.Next())
		f.Hot[i] = true
		return false
	}
	f.log.Relief(&f.trouble, "claiming tasks again")
	f.Of[i].claims.Reset()
	return true
}
