package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// forwardPython returns the ending that forwards a Python task to the queue for them. It parks the task if there is no
// such queue, or if the workers there do not read its extended message.
func (r *receiver) forwardPython(ctx context.Context, c *Claim, now time.Time) ending {
	to := r.python
	if to == nil || to.SameQueue(c.lane.store) {
		return r.decider.park(c, state.ReasonPython, now)
	}
	if c.msg.Kind == wire.PyExtended {
		reads, err := r.readsExtended(ctx, to)
		if err != nil {
			return ending{claim: c, outcome: lifecycle.OutcomeRelease} // unknown: ask again after the next claim
		}
		if !reads {
			return r.decider.park(c, state.ReasonPlainPython, now)
		}
	}
	r.decider.events.emitFor(c, Event{Kind: event.TaskForwarded})
	return ending{claim: c, outcome: lifecycle.OutcomeForward}
}

// readsExtended reports whether workers of a queue for Python tasks read extended messages. A queue without a form has
// never had a Python task from this package or godelayed, so it gets the extended form; but a legacy one may have
// workers of keakon's delayed, which do not read it.
func (r *receiver) readsExtended(ctx context.Context, to *redisstore.Store) (bool, error) {
	form, err := to.Mode(ctx)
	if err == nil && form == "" && !r.legacy {
		form, err = to.SettleMode(ctx, redisstore.ExtendedForm)
	}
	return form == redisstore.ExtendedForm, err
}
