package engine

import (
	"context"
	"errors"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// maxInFlight bounds the claim calls under way: while Redis runs one, the worker decodes the reply of the other.
const maxInFlight = 2

// flight is one claim call of the fetcher.
type flight struct {
	lane   int // index
	asked  int // how many tasks the call asks for
	claims []*Claim
	left   int  // tasks still pending after the call
	parked bool // the call claims parked tasks
	err    error

	suspects bool // the call claims suspects
}

// claimQueue claims at most room tasks of queue i. It returns how many of them will run here, or room if the reply has
// not come yet.
func (f *fetcher) claimQueue(ctx context.Context, i, room, held int) int {
	l := f.lanes[i]
	// Do not cancel a claim call when the worker stops: its reply says what to give back.
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

// ahead reports whether the fetcher goes on while the claim call is under way: the queue has enough tasks for two
// calls. A worker with one executor makes one call at a time, so that it keeps the order of the queue.
func (f *fetcher) ahead(i, room int) bool {
	return f.exec.n > 1 && f.lanes[i].pendingLeft >= 2*room
}

// callReturned handles the reply of a call that was in flight.
func (f *fetcher) callReturned(ctx context.Context, fl flight) {
	f.inFlight--
	f.takeReply(ctx, fl)
}

// takeReply handles the reply of a claim call, and returns how many tasks will run here.
func (f *fetcher) takeReply(ctx context.Context, fl flight) (kept int) {
	i := fl.lane
	defer f.exec.endClaim(fl.asked)
	if !f.checkReply(fl) {
		return 0
	}
	if fl.parked {
		return f.receiver.receive(ctx, fl.claims) // the reply says nothing about pending tasks
	}
	f.mend[i] = false
	f.lanes[i].pendingLeft = fl.left
	// On a legacy queue, pending tasks without a notification belong to another worker.
	f.hasTasks[i] = fl.left > 0 && (len(fl.claims) > 0 || fl.asked == 0)
	if !f.hasTasks[i] {
		f.emptyAt[i] = time.Now()
	}
	return f.receiver.receive(ctx, fl.claims)
}

// checkReply reports whether a claim call has succeeded. If not, it logs the error and decides when to claim again.
func (f *fetcher) checkReply(fl flight) bool {
	i, l := fl.lane, f.lanes[fl.lane]
	switch {
	case errors.Is(fl.err, redisstore.ErrNoHeartbeat):
		l.beatNow()
		f.waiterOf[i].noClaimsBefore = time.Now().Add(20 * time.Millisecond)
		return false
	case errors.Is(fl.err, redisstore.ErrBatchUsed):
		f.logOf(l).Error("a batch number was used before; going on with the next")
		return false
	case errors.Is(fl.err, redisstore.ErrQueuePaused):
		l.restWhilePaused()
		f.hasTasks[i] = true
		return false
	case redisstore.IsWrongType(fl.err): // the other queues of its server are claimed from
		f.logOf(l).Trouble(&l.mistyped.trouble, "cannot claim tasks; trying again", fl.err)
		l.rest = queueRest{until: time.Now().Add(l.mistyped.backoff.Next())}
		f.hasTasks[i] = true
		return false
	case fl.err != nil:
		f.logOf(l).Trouble(&f.trouble, "cannot claim tasks; trying again", fl.err)
		f.waiterOf[i].noClaimsBefore = time.Now().Add(f.waiterOf[i].claims.Next())
		f.hasTasks[i] = true
		return false
	}
	f.log.Relief(&f.trouble, "claiming tasks again")
	f.waiterOf[i].claims.Reset()
	if l.mistyped.backoff != (loop.Backoff{}) {
		f.logOf(l).Relief(&l.mistyped.trouble, "claiming tasks again")
		l.mistyped.backoff.Reset()
	}
	return true
}

// logOf returns the log for lines about one queue.
func (f *fetcher) logOf(l *lane) loop.Journal { return f.log.With("queue", l.store.Name) }

// claimParked claims at most room parked tasks of queue i, and returns how many of them will run here.
func (f *fetcher) claimParked(ctx context.Context, i, room int) (kept int) {
	fl := flight{lane: i, asked: room, parked: true}
	f.exec.beginClaim(room)
	fl.claims, fl.err = f.lanes[i].claimParked(context.WithoutCancel(ctx), room)
	if !f.lanes[i].parked.some.Load() {
		f.owner.pokeMovers() // the mover may find more of them
	}
	kept = f.takeReply(ctx, fl)
	if len(fl.claims) > 0 {
		queue, function := f.lanes[i].store.Name, fl.claims[0].msg.Path
		f.lines.Log(loop.LineKey{Queue: queue, Reason: "unparked", Function: function}, func(n int) {
			f.log.With("queue", queue).With("function",
				function).Counted(n).Info("claimed parked tasks: this worker can run them")
		})
	}
	return kept
}
