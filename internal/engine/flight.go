package engine

import (
	"context"
	"errors"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// maxInFlight is how many claim calls are under way at a time: while Redis carries out one, the worker unpacks the
// other.
const maxInFlight = 2

// flight is one claim call of the fetcher.
type flight struct {
	lane   int // position
	asked  int // tasks asked for
	claims []*Claim
	left   int // pending after it
	parked bool
	err    error

	suspects bool // of suspects
}

// claimQueue takes at most room tasks of one queue. It returns how many of them are to run here, or, if that is not known
// yet, how many may be.
func (f *fetcher) claimQueue(ctx context.Context, i, room, held int) int {
	l := f.lanes[i]
	// A claim is not cut off when the worker stops: its reply says what has to be given back.
	kept := context.WithoutCancel(ctx)
	call := redisstore.ClaimCall{Most: room, Held: held, Mend: f.mend[i]}
	done := f.exec.takeForClaim(l)
	f.acksWait = true
	fl := flight{lane: i, asked: room}
	f.exec.beginClaim(room)
	if !f.ahead(i, room) || held > 0 || call.Mend {
		fl.claims, fl.left, fl.err = l.claim(kept, call, done)
		return f.takeReply(ctx, fl)
	}
	f.inFlight++
	l.pendingLeft -= room
	go func() {
		fl.claims, fl.left, fl.err = l.claim(kept, call, done)
		f.returned <- fl
	}()
	return room
}

// ahead says whether the fetcher goes on while a claim is under way: the queue has more than that one takes. A lone
// executor gets its tasks one call after the other, so that it runs them in the order of the queue.
func (f *fetcher) ahead(i, room int) bool {
	return f.exec.n > 1 && f.lanes[i].pendingLeft >= 2*room
}

// callReturned takes the answer of a call that was under way.
func (f *fetcher) callReturned(ctx context.Context, fl flight) {
	f.inFlight--
	f.takeReply(ctx, fl)
}

// takeReply takes the answer of a call. It returns how many tasks are to run here.
func (f *fetcher) takeReply(ctx context.Context, fl flight) (kept int) {
	i := fl.lane
	defer f.exec.endClaim(fl.asked)
	if !f.checkReply(fl) {
		return 0
	}
	if fl.parked {
		return f.receive(ctx, fl.claims) // nothing was learnt of the pending ones
	}
	f.mend[i] = false
	f.lanes[i].pendingLeft = fl.left
	// On a legacy queue tasks may be left that have no notification: they are another's.
	f.hasTasks[i] = fl.left > 0 && (len(fl.claims) > 0 || fl.asked == 0)
	if !f.hasTasks[i] {
		f.emptyAt[i] = time.Now()
	}
	return f.receive(ctx, fl.claims)
}

// checkReply says whether a claim call has brought an answer, and sees to what has gone wrong if it has not.
func (f *fetcher) checkReply(fl flight) bool {
	i := fl.lane
	switch {
	case errors.Is(fl.err, redisstore.ErrNoHeartbeat):
		f.lanes[i].beatNow()
		f.waiterOf[i].noClaimsBefore = time.Now().Add(20 * time.Millisecond)
		return false
	case errors.Is(fl.err, redisstore.ErrBatchUsed):
		f.log.With("queue", f.lanes[i].store.Name).Error("a batch number was used before; going on with the next")
		return false
	case errors.Is(fl.err, redisstore.ErrQueuePaused):
		f.lanes[i].restWhilePaused()
		f.hasTasks[i] = true
		return false
	case fl.err != nil:
		f.log.With("queue", f.lanes[i].store.Name).Trouble(&f.trouble, "cannot claim tasks; trying again", fl.err)
		f.waiterOf[i].noClaimsBefore = time.Now().Add(f.waiterOf[i].claims.Next())
		f.hasTasks[i] = true
		return false
	}
	f.log.Relief(&f.trouble, "claiming tasks again")
	f.waiterOf[i].claims.Reset()
	return true
}
