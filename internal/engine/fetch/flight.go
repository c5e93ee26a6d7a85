package fetch

import (
	"context"
	"errors"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// MaxInFlight bounds the claim calls under way: while Redis runs one, the worker decodes the reply of the other.
const MaxInFlight = 2

// Flight is one claim call of the fetcher.
type Flight struct {
	lane   int // index
	asked  int // how many tasks the call asks for
	claims []*lane.Claim
	left   int  // tasks still pending after the call
	parked bool // the call claims parked tasks
	err    error

	suspects bool // the call claims suspects
}

// claimQueue claims at most room tasks of queue i. It returns how many of them will run here, or room if the reply has
// not come yet.
func (f *Fetcher) claimQueue(ctx context.Context, i, room, held int) int {
	l := f.Lanes[i]
	// Do not cancel a claim call when the worker stops: its reply says what to give back.
	kept := context.WithoutCancel(ctx)
	call := redisstore.ClaimCall{Most: room, Held: held, Mend: f.Queues[i].Mend}
	done := f.Exec.TakeForClaim(l)
	f.acksWait = true
	fl := Flight{lane: i, asked: room}
	f.Exec.AddClaiming(room)
	if !f.ahead(i, room) || held > 0 || call.Mend {
		fl.claims, fl.left, fl.err = l.Claim(kept, call, done)
		return f.takeReply(ctx, fl)
	}
	f.InFlight++
	l.PendingLeft -= room
	go func() {
		fl.claims, fl.left, fl.err = l.Claim(kept, call, done)
		f.Returned <- fl
	}()
	return room
}

// ahead reports whether the fetcher goes on while the claim call is under way: the queue has enough tasks for two
// calls. A worker with one executor makes one call at a time, so that it keeps the order of the queue.
func (f *Fetcher) ahead(i, room int) bool {
	return f.Exec.N > 1 && f.Lanes[i].PendingLeft >= 2*room
}

// callReturned handles the reply of a call that was in flight.
func (f *Fetcher) callReturned(ctx context.Context, fl Flight) {
	f.InFlight--
	f.takeReply(ctx, fl)
}

// takeReply handles the reply of a claim call, and returns how many tasks will run here.
func (f *Fetcher) takeReply(ctx context.Context, fl Flight) (kept int) {
	i := fl.lane
	defer f.Exec.AddClaiming(-fl.asked)
	if !f.checkReply(fl) {
		return 0
	}
	if fl.parked {
		return f.Receive(ctx, fl.claims) // the reply says nothing about pending tasks
	}
	f.Queues[i].Mend = false
	f.Lanes[i].PendingLeft = fl.left
	// On a legacy queue, pending tasks without a notification belong to another worker.
	f.Queues[i].HasTasks = fl.left > 0 && (len(fl.claims) > 0 || fl.asked == 0)
	if !f.Queues[i].HasTasks {
		f.Queues[i].EmptyAt = time.Now()
	}
	return f.Receive(ctx, fl.claims)
}

// checkReply reports whether a claim call has succeeded. If not, it logs the error and decides when to claim again.
func (f *Fetcher) checkReply(fl Flight) bool {
	i, l := fl.lane, f.Lanes[fl.lane]
	switch {
	case errors.Is(fl.err, redisstore.ErrNoHeartbeat):
		l.BeatNow()
		f.Queues[i].Waiter.NoClaimsBefore = time.Now().Add(20 * time.Millisecond)
		return false
	case errors.Is(fl.err, redisstore.ErrBatchUsed):
		f.logOf(l).Error("a batch number was used before; going on with the next")
		return false
	case errors.Is(fl.err, redisstore.ErrQueuePaused):
		l.RestWhilePaused()
		f.Queues[i].HasTasks = true
		return false
	case redisstore.IsWrongType(fl.err): // the other queues of its server are claimed from
		f.logOf(l).Trouble(&l.Mistyped.Trouble, "cannot claim tasks; trying again", fl.err)
		l.Rest = lane.Rest{Until: time.Now().Add(l.Mistyped.Backoff.Next())}
		f.Queues[i].HasTasks = true
		return false
	case fl.err != nil:
		f.logOf(l).Trouble(&f.trouble, "cannot claim tasks; trying again", fl.err)
		f.Queues[i].Waiter.NoClaimsBefore = time.Now().Add(f.Queues[i].Waiter.claims.Next())
		f.Queues[i].HasTasks = true
		return false
	}
	f.Log.Relief(&f.trouble, "claiming tasks again")
	f.Queues[i].Waiter.claims.Reset()
	if l.Mistyped.Backoff != (loop.Backoff{}) {
		f.logOf(l).Relief(&l.Mistyped.Trouble, "claiming tasks again")
		l.Mistyped.Backoff.Reset()
	}
	return true
}

// logOf returns the log for lines about one queue.
func (f *Fetcher) logOf(l *lane.Lane) loop.Journal { return f.Log.With("queue", l.Store.Name) }

// claimParked claims at most room parked tasks of queue i, and returns how many of them will run here.
func (f *Fetcher) claimParked(ctx context.Context, i, room int) (kept int) {
	fl := Flight{lane: i, asked: room, parked: true}
	f.Exec.AddClaiming(room)
	fl.claims, fl.err = f.Lanes[i].ClaimParked(context.WithoutCancel(ctx), room)
	if !f.Lanes[i].HasParked() {
		f.Owner.PokeMovers() // the mover may find more of them
	}
	kept = f.takeReply(ctx, fl)
	if len(fl.claims) > 0 {
		queue, function := f.Lanes[i].Store.Name, fl.claims[0].Msg.Path
		f.Lines.Log(loop.LineKey{Queue: queue, Reason: "unparked", Function: function}, func(n int) {
			f.Log.With("queue", queue).With("function",
				function).Counted(n).Info("claimed parked tasks: this worker can run them")
		})
	}
	return kept
}
