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
)

// receiver takes what claim calls bring: it hands the executors what can run here and ends all else.
type receiver struct {
	worker   string // id
	lanes    []*lane
	exec     *executors
	registry *function.Registry
	runner   *runner
	python   *redisstore.Store // of the queue for Python tasks; nil: none
	legacy   bool
	log      loop.Journal
	lines    *loop.LineLimit // log lines about tasks

	// readControl reads the control hash of a lane and does what it says.
	readControl func(context.Context, *lane) error
}

// receive sorts claimed tasks: those that can run here become ready, the others are parked, handed on or archived. It
// blocks while Redis is told that a suspect is alone no longer. It returns how many tasks are to run here.
func (r *receiver) receive(ctx context.Context, claims []*Claim) (kept int) {
	if len(claims) == 0 {
		return 0
	}
	l := claims[0].lane
	if r.exec.loneTask() != nil || l.queuePaused() {
		giveBack(claims) // their call was under way when that came
		return 0
	}
	if claims = r.dropCanceled(ctx, claims); len(claims) == 0 {
		return 0
	}
	now, ends := l.now(), l.ends
	runnable := make([]*Claim, 0, len(claims)) // not claims[:0]: the batch holds on to that
	suspects := false
	for _, c := range claims {
		var err error
		if c.msg, err = c.parse(); err != nil {
			ends.add(r.undecodable(c, err, now))
			continue
		}
		if c.msg.Python() {
			ends.add(r.forwardPython(ctx, c, now))
			continue
		}
		if x := c.msg.Meta.Extra; x != nil && x.Group != "" {
			// It was scheduled, and is due now. One that cannot be gathered runs alone.
			if m, err := group.NewMember(c.raw); err == nil {
				ends.add(ending{claim: c, outcome: lifecycle.OutcomeGather, id: m.Group})
				continue
			}
		}
		if c.fn = r.registry.Lookup(c.msg.Path); c.fn == nil {
			ends.add(r.runner.park(c, parkedUnknown, now))
			continue
		}
		c.suspicion = suspicionOf(c, now)
		if c.suspicion >= minSuspectDeaths && (!c.batch.suspects || !r.exec.admitSuspect(c)) {
			ends.add(ending{claim: c, outcome: lifecycle.OutcomeDefer})
			l.hasSuspects = true
			continue
		}
		suspects = suspects || c.suspicion > 0
		runnable = append(runnable, c)
	}
	if suspects {
		r.exec.stopAhead()
		if r.exec.loneTask() != nil {
			return 1 // it starts when nothing else is in hand
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
		giveBack(r.exec.takeBackOf(l)) // it was not when we looked
	}
	return len(runnable)
}

// undecodable archives a message that is none, or is too large, as it is. Its bytes are not sent back.
func (r *receiver) undecodable(c *Claim, err error, now time.Time) ending {
	id := wire.NewTaskID()
	s := c.lane.store
	info := wire.Info{Reason: lifecycle.ReasonUndecodable, Error: err.Error(), At: now, Worker: r.worker}
	if size := c.large(); size > 0 {
		info.Reason = lifecycle.ReasonTooLarge
		redisstore.LogTooLarge(r.log, r.lines, s.Name, id, size)
	} else {
		r.lines.Log(loop.LineKey{Queue: s.Name, Reason: info.Reason}, func(n int) {
			r.log.With("queue", s.Name).With("id",
				id).Counted(n).WithError(err).Error("message archived: it cannot be decoded")
		})
	}
	r.runner.events.emitFor(c, Event{Kind: event.TaskArchived, Reason: info.Reason, Err: err})
	return ending{claim: c, outcome: lifecycle.OutcomeReject, wait: lifecycle.ArchivedLife, id: id, info: info.Encode()}
}
