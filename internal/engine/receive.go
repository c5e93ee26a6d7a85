package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// receiver handles claimed tasks: it gives the executors those that can run here, and ends the claims of all others.
type receiver struct {
	worker   string // id
	lanes    []*lane
	exec     *executors
	registry *function.Registry
	decider  *decider
	python   *redisstore.Store // of the queue for Python tasks; nil: none
	legacy   bool
	log      loop.Journal
	lines    *loop.LineLimit // limits log lines about tasks
	owner    owner
}

// owner is the worker that a fetcher and its receiver work for.
type owner interface {
	// mayClaim reports whether the worker may claim tasks at all.
	mayClaim() bool
	// readControl reads the control hash of a lane and carries out what it says.
	readControl(ctx context.Context, l *lane) error
	// pokeMovers makes the movers of all queues look now for what is due.
	pokeMovers()
}

// receive makes those tasks ready that can run here, and parks, forwards or archives the others. It returns how many of
// them will run here. It blocks while it removes the mark of a suspect that does not run alone any more.
func (r *receiver) receive(ctx context.Context, claims []*Claim) (kept int) {
	if len(claims) == 0 {
		return 0
	}
	l := claims[0].lane
	if r.exec.loneTask() != nil || l.queuePaused() {
		giveBack(claims) // the claim call was already under way
		return 0
	}
	if claims = r.dropCanceled(ctx, claims); len(claims) == 0 {
		return 0
	}
	now := l.now()
	runnable := make([]*Claim, 0, len(claims)) // not claims[:0]: the batch uses that slice
	suspects := false
	for _, c := range claims {
		if r.canRun(ctx, c, now) {
			suspects = suspects || c.suspicion > 0
			runnable = append(runnable, c)
		}
	}
	if suspects {
		r.exec.stopAhead()
		if r.exec.loneTask() != nil {
			return 1 // it starts when the worker has no other task
		}
	}
	if len(runnable) == 0 {
		return 0
	}
	if !r.unmarkAlone(ctx) {
		giveBack(runnable)
		return 0
	}
	if suspects && inHand(r.lanes) == 1 {
		r.markAlone(ctx, runnable[0])
	}
	r.exec.add(runnable)
	if l.queuePaused() {
		giveBack(r.exec.takeBackOf(l)) // it was paused after the first check
	}
	return len(runnable)
}

// canRun parses the message of a claim and reports whether its task can run here. If not, it decides how the claim
// ends.
func (r *receiver) canRun(ctx context.Context, c *Claim, now time.Time) bool {
	ends := c.lane.ends
	var err error
	if c.msg, err = c.parse(); err != nil {
		ends.add(r.undecodable(c, err, now))
		return false
	}
	if c.msg.Python() {
		ends.add(r.forwardPython(ctx, c, now))
		return false
	}
	if x := c.msg.Meta.Extra; x != nil && x.Group != "" {
		// It was scheduled and is due now. A task that cannot join its group runs alone.
		if m, err := group.NewMember(c.raw); err == nil {
			ends.add(ending{claim: c, outcome: lifecycle.OutcomeGather, id: m.Group})
			return false
		}
	}
	if c.fn = r.registry.Lookup(c.msg.Path); c.fn == nil {
		ends.add(r.decider.park(c, state.ReasonUnknownFunction, now))
		return false
	}
	c.suspicion = suspicionOf(c, now)
	if c.suspicion >= minSuspectDeaths && !r.decider.isolation.holds(c) &&
		(!c.batch.suspects || !r.exec.admitSuspect(c)) {
		ends.add(ending{claim: c, outcome: lifecycle.OutcomeDefer})
		c.lane.hasSuspects = true
		return false
	}
	return true
}

// undecodable archives a message that cannot be parsed or is too large, byte for byte. Redis moves it, so this call
// does not contain it.
func (r *receiver) undecodable(c *Claim, err error, now time.Time) ending {
	id := wire.NewTaskID()
	s := c.lane.store
	info := wire.Info{Reason: state.ReasonUndecodable, Error: err.Error(), At: now, Worker: r.worker}
	if size := c.large(); size > 0 {
		info.Reason = state.ReasonTooLarge
		redisstore.LogTooLarge(r.log, r.lines, s.Name, id, size)
	} else {
		r.lines.Log(loop.LineKey{Queue: s.Name, Reason: string(info.Reason)}, func(n int) {
			r.log.With("queue", s.Name).With("id",
				id).Counted(n).WithError(err).Error("message archived: it cannot be decoded")
		})
	}
	r.decider.events.emitFor(c, Event{Kind: event.TaskArchived, Reason: info.Reason, Err: err})
	return ending{claim: c, outcome: lifecycle.OutcomeReject, wait: lifecycle.ArchivedLife, id: id, info: info.Encode()}
}

// dropCanceled ends the claims of one batch whose tasks were cancelled before, and returns the others. If Redis does
// not answer it gives all of them back. While the control hash does not exist it costs nothing, and it asks Redis only
// if the hash has changed.
func (r *receiver) dropCanceled(ctx context.Context, claims []*Claim) []*Claim {
	b := claims[0].batch
	if b.version == 0 {
		return claims
	}
	l := claims[0].lane
	for _, c := range claims {
		c.msg, _ = c.parse() // for the id; receive parses again and handles the error
	}
	revoked, err := r.canceledAmong(ctx, l, b.version, claims)
	if err != nil {
		r.log.With("queue", l.store.Name).Trouble(&l.control.trouble,
			"cannot ask Redis which tasks were canceled; giving them back", err)
		l.rest = queueRest{until: time.Now().Add(pausedRest)}
		giveBack(claims)
		return nil
	}
	kept := make([]*Claim, 0, len(claims))
	for i, c := range claims {
		if revoked != nil && revoked[i] {
			r.decider.cancelClaim(c, false)
			continue
		}
		kept = append(kept, c)
	}
	return kept
}

// canceledAmong reports for each claim whether its task was cancelled; nil: none was.
func (r *receiver) canceledAmong(ctx context.Context, l *lane, version int64, claims []*Claim) ([]bool, error) {
	if l.control.version.Load() != version {
		if err := r.owner.readControl(ctx, l); err != nil {
			return nil, err
		}
	}
	l.mu.Lock()
	known := l.revoked
	var revoked []bool
	for i, c := range claims {
		if id := c.msg.Meta.ID; id != "" && known.ids[id] {
			if revoked == nil {
				revoked = make([]bool, len(claims))
			}
			revoked[i] = true
		}
	}
	l.mu.Unlock()
	if !known.partial {
		return revoked, nil
	}
	ids := make([]string, len(claims))
	for i, c := range claims {
		ids[i] = c.msg.Meta.ID
	}
	return l.store.AreRevoked(ctx, ids)
}
