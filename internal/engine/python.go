package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// forwardPython hands a Python task on, or parks it: where there is no other queue, or where its workers do not read extended
// messages.
func (r *receiver) forwardPython(ctx context.Context, c *Claim, now time.Time) ending {
	to := r.python
	if to == nil || to.SameQueue(c.lane.store) {
		return r.runner.park(c, parkedPython, now)
	}
	if c.msg.Kind == wire.PyExtended {
		reads, err := r.readsExtended(ctx, to)
		if err != nil {
			return ending{claim: c, outcome: lifecycle.OutcomeRelease} // nobody knows: ask again with the next claim
		}
		if !reads {
			return r.runner.park(c, parkedPlain, now)
		}
	}
	r.runner.events.emitFor(c, Event{Kind: event.TaskForwarded})
	return ending{claim: c, outcome: lifecycle.OutcomeForward}
}

// readsExtended says whether a queue of Python tasks takes extended ones. One without a form had no Python task from us
// or from godelayed: it takes them from now on, but for a shared one, whose workers may be keakon's.
func (r *receiver) readsExtended(ctx context.Context, to *redisstore.Store) (bool, error) {
	form, err := to.Mode(ctx)
	if err == nil && form == "" && !r.legacy {
		form, err = to.SettleMode(ctx, redisstore.ExtendedForm)
	}
	return form == redisstore.ExtendedForm, err
}
