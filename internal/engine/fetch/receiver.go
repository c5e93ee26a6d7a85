package fetch

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Receiver handles claimed tasks: it gives the executors those that can run here, and ends the claims of all others.
type Receiver struct {
	*finish.Decider
	Lanes    []*lane.Lane
	Exec     *exec.Executors
	Registry *function.Registry
	Python   *redisstore.Store // of the queue for Python tasks; nil: none
	Legacy   bool
	Owner    owner
	Alone    atomic.Pointer[lane.Claim] // is marked in Redis as this worker's only task
}

// owner is the worker that a fetcher and its receiver work for.
type owner interface {
	// MayClaim reports whether the worker may claim tasks at all.
	MayClaim() bool
	// ReadControl reads the control hash of a lane and carries out what it says.
	ReadControl(ctx context.Context, l *lane.Lane) error
	// PokeMovers makes the movers of all queues look now for what is due.
	PokeMovers()
}

// Receive makes those tasks ready that can run here, and parks, forwards or archives the others. It returns how many of
// them will run here. It blocks while it removes the mark of a suspect that does not run alone any more.
func (r *Receiver) Receive(ctx context.Context, claims []*lane.Claim) (kept int) {
	if len(claims) == 0 {
		return 0
	}
	l := claims[0].Lane
	if r.Exec.LoneTask() != nil || l.QueuePaused() {
		lane.GiveBack(claims) // the claim call was already under way
		return 0
	}
	if claims = r.dropCanceled(ctx, claims); len(claims) == 0 {
		return 0
	}
	now := l.Now()
	runnable := make([]*lane.Claim, 0, len(claims)) // not claims[:0]: the batch uses that slice
	suspects := false
	for _, c := range claims {
		if r.canRun(ctx, c, now) {
			suspects = suspects || c.Suspicion > 0
			runnable = append(runnable, c)
		}
	}
	if suspects {
		r.Exec.StopAhead()
		if r.Exec.LoneTask() != nil {
			return 1 // it starts when the worker has no other task
		}
	}
	if len(runnable) == 0 {
		return 0
	}
	if !r.unmarkAlone(ctx) {
		lane.GiveBack(runnable)
		return 0
	}
	if suspects && lane.InHand(r.Lanes) == 1 {
		r.markAlone(ctx, runnable[0])
	}
	r.Exec.Add(runnable)
	if l.QueuePaused() {
		lane.GiveBack(r.Exec.TakeBack(l)) // it was paused after the first check
	}
	return len(runnable)
}

// canRun parses the message of a claim and reports whether its task can run here. If not, it decides how the claim
// ends.
func (r *Receiver) canRun(ctx context.Context, c *lane.Claim, now time.Time) bool {
	var err error
	if c.Msg, err = c.Parse(); err != nil {
		c.Lane.Finisher.Add(r.undecodable(c, err, now))
		return false
	}
	if c.Msg.Python() {
		c.Lane.Finisher.Add(r.ForwardPython(ctx, c, now))
		return false
	}
	if x := c.Msg.Meta.Extra; x != nil && x.Group != "" {
		// It was scheduled and is due now. A task that cannot join its group runs alone.
		if m, err := group.NewMember(c.Raw); err == nil {
			c.Lane.Finisher.Add(lane.Ending{Claim: c, Outcome: lifecycle.OutcomeGather, ID: m.Group})
			return false
		}
	}
	if c.Fn = r.Registry.Lookup(c.Msg.Path); c.Fn == nil {
		c.Lane.Finisher.Add(r.Park(c, state.ReasonUnknownFunction, now))
		return false
	}
	c.Suspicion = lane.SuspicionOf(c, now)
	if c.Suspicion >= lane.MinSuspectDeaths && !r.Isolation.Holds(c) &&
		(!c.Batch.Suspects || !r.Exec.AdmitSuspect(c)) {
		c.Lane.Finisher.Add(lane.Ending{Claim: c, Outcome: lifecycle.OutcomeDefer})
		c.Lane.HasSuspects = true
		return false
	}
	return true
}

// undecodable archives a message that cannot be parsed or is too large, byte for byte. Redis moves it, so this call
// does not contain it.
func (r *Receiver) undecodable(c *lane.Claim, err error, now time.Time) lane.Ending {
	id := wire.NewTaskID()
	s := c.Lane.Store
	info := wire.Info{Reason: state.ReasonUndecodable, Error: err.Error(), At: now, Worker: r.Worker}
	if size := c.Large(); size > 0 {
		info.Reason = state.ReasonTooLarge
		redisstore.LogTooLarge(r.Log, r.Lines, s.Name, id, size)
	} else {
		r.Lines.Log(loop.LineKey{Queue: s.Name, Reason: string(info.Reason)}, func(n int) {
			r.Log.With("queue", s.Name).With("id",
				id).Counted(n).WithError(err).Error("message archived: it cannot be decoded")
		})
	}
	r.Events.EmitFor(c, events.Event{Kind: event.TaskArchived, Reason: info.Reason, Err: err})
	return lane.Ending{
		Claim: c, Outcome: lifecycle.OutcomeReject, Wait: lifecycle.ArchivedLife, ID: id, Info: info.Encode(),
	}
}

// dropCanceled ends the claims of one batch whose tasks were canceled before, and returns the others. If Redis does
// not answer it gives all of them back. While the control hash does not exist it costs nothing, and it asks Redis only
// if the hash has changed.
func (r *Receiver) dropCanceled(ctx context.Context, claims []*lane.Claim) []*lane.Claim {
	b := claims[0].Batch
	if b.Version == 0 {
		return claims
	}
	l := claims[0].Lane
	for _, c := range claims {
		c.Msg, _ = c.Parse() // for the id; receive parses again and handles the error
	}
	revoked, err := r.canceledAmong(ctx, l, b.Version, claims)
	if err != nil {
		r.Log.With("queue", l.Store.Name).Trouble(&l.Control.Trouble,
			"cannot ask Redis which tasks were canceled; giving them back", err)
		l.Rest = lane.Rest{Until: time.Now().Add(lane.PausedRest)}
		lane.GiveBack(claims)
		return nil
	}
	kept := make([]*lane.Claim, 0, len(claims))
	for i, c := range claims {
		if revoked != nil && revoked[i] {
			r.CancelClaim(c, false)
			continue
		}
		kept = append(kept, c)
	}
	return kept
}

// canceledAmong reports for each claim whether its task was canceled; nil: none was.
func (r *Receiver) canceledAmong(
	ctx context.Context, l *lane.Lane, version int64, claims []*lane.Claim,
) ([]bool, error) {
	if l.Control.Version.Load() != version {
		if err := r.Owner.ReadControl(ctx, l); err != nil {
			return nil, err
		}
	}
	l.Mu.Lock()
	known := l.Revoked
	var revoked []bool
	for i, c := range claims {
		if id := c.Msg.Meta.ID; id != "" && known.IDs[id] {
			if revoked == nil {
				revoked = make([]bool, len(claims))
			}
			revoked[i] = true
		}
	}
	l.Mu.Unlock()
	if !known.Partial {
		return revoked, nil
	}
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = c.Msg.Meta.ID
	}
	return l.Store.AreRevoked(ctx, ids)
}
