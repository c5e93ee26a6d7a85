package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// receive sorts claimed tasks: those that can run here become ready, the others are parked, handed on or archived. It
// blocks while Redis is told that a suspect is alone no longer. It returns how many tasks are to run here.
func (w *Worker) receive(ctx context.Context, claims []*Claim) (kept int) {
	if len(claims) == 0 {
		return 0
	}
	l := claims[0].lane
	if w.exec.loneTask() != nil || l.queuePaused() {
		w.giveBack(claims) // their call was under way when that came
		return 0
	}
	if claims = w.dropCanceled(ctx, claims); len(claims) == 0 {
		return 0
	}
	now, f := l.now(), l.finisher
	runnable := make([]*Claim, 0, len(claims)) // not claims[:0]: the batch holds on to that
	suspects := false
	for _, c := range claims {
		var err error
		if c.msg, err = c.parse(); err != nil {
			f.add(w.undecodable(c, err, now))
			continue
		}
		if c.msg.Python() {
			f.add(w.python(ctx, c, now))
			continue
		}
		if x := c.msg.Meta.Extra; x != nil && x.Group != "" {
			// It was scheduled, and is due now. One that cannot be gathered runs alone.
			if m, err := group.NewMember(c.raw); err == nil {
				f.add(ending{claim: c, outcome: outcomeGather, id: m.Group})
				continue
			}
		}
		if c.fn = w.registry.Lookup(c.msg.Path); c.fn == nil {
			f.add(w.park(c, parkedUnknown, now))
			continue
		}
		c.suspicion = suspicionOf(c, now)
		if c.suspicion >= minSuspectDeaths && (!c.batch.suspects || !w.exec.admit(c)) {
			f.add(ending{claim: c, outcome: outcomeDefer})
			l.hasSuspects = true
			continue
		}
		suspects = suspects || c.suspicion > 0
		runnable = append(runnable, c)
	}
	if suspects {
		w.exec.holdAhead()
		if w.exec.loneTask() != nil {
			return 1 // it starts when nothing else is in hand
		}
	}
	if len(runnable) == 0 {
		return 0
	}
	if !w.unmark(ctx) {
		w.giveBack(runnable)
		return 0
	}
	if suspects && w.inHand() == 1 {
		w.markAlone(ctx, runnable[0])
	}
	w.exec.add(runnable)
	if l.queuePaused() {
		w.giveBack(w.exec.takeBackOf(l)) // it was not when we looked
	}
	return len(runnable)
}

// undecodable archives a message that is none, or is too large, as it is. Its bytes are not sent back.
func (w *Worker) undecodable(c *Claim, err error, now time.Time) ending {
	id := wire.NewTaskID()
	s := c.lane.store
	info := wire.Info{Reason: lifecycle.ReasonUndecodable, Error: err.Error(), At: now, Worker: w.id}
	if size := c.large(); size > 0 {
		info.Reason = lifecycle.ReasonTooLarge
		redisstore.LogTooLarge(w.log, &w.lines, s.Name, id, size)
	} else {
		w.lines.Log(loop.LineKey{Queue: s.Name, Reason: info.Reason}, func(n int) {
			w.log.With("queue", s.Name).With("id",
				id).Counted(n).WithError(err).Error("message archived: it cannot be decoded")
		})
	}
	w.emitFor(c, Event{Kind: event.TaskArchived, Reason: info.Reason, Err: err})
	return ending{claim: c, outcome: outcomeArchive, wait: lifecycle.ArchivedLife, id: id, info: info.Encode()}
}
