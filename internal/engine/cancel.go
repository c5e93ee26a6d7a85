package engine

import (
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// CanceledInfo returns what is kept of a cancelled task.
func CanceledInfo(m *wire.Message, now time.Time) wire.Info {
	info := wire.Info{
		Reason: state.ReasonCanceled, Function: m.Path, Attempts: m.Meta.Retried, Deaths: m.Meta.Deaths,
		At: now,
	}
	if at := m.Meta.EnqueuedAt; at > 0 {
		info.Enqueued = time.UnixMilli(at)
	}
	return info
}

// cancelClaim ends the claim of a cancelled task. certain: the task counts as cancelled, even if Redis does not know
// that it was.
func (d *decider) cancelClaim(c *Claim, certain bool) {
	d.events.emitFor(c, Event{Kind: event.TaskCanceled})
	c.lane.ends.add(d.cancellation(c, certain))
	d.logOf(c).Info("task canceled") // last, because a logger may end this goroutine
}

// cancellation returns the ending of a cancelled task.
func (d *decider) cancellation(c *Claim, certain bool) ending {
	info := CanceledInfo(&c.msg, c.lane.now())
	info.Worker = d.worker
	e := endComplete(c, &info)
	e.outcome, e.certain = lifecycle.OutcomeCancel, certain
	return e
}

// lateCancellation returns the ending of a task that was to be retried or archived, when Redis has answered that it was
// cancelled.
func (d *decider) lateCancellation(c *Claim) ending {
	d.events.emitFor(c, Event{Kind: event.TaskCanceled})
	return d.cancellation(c, false)
}
