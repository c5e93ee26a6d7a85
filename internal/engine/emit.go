package engine

import (
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
)

// emitEnd tells listeners that a handler has returned err, and what becomes of the task: done, or what end says.
func (d *decider) emitEnd(c *Claim, err error, end *ending, done bool) {
	if !d.events.any() {
		return
	}
	took := time.Since(c.started)
	if err == nil {
		d.events.emitFor(c, Event{Kind: event.TaskDone, Duration: took})
		return
	}
	if !done && end.outcome.Failed() {
		if panicked(err) {
			d.events.emitFor(c, Event{Kind: event.TaskPanicked, Duration: took, Err: err})
		}
		if wraps[*timeoutError](err) {
			d.events.emitFor(c, Event{Kind: event.TaskTimedOut, Duration: took, Err: err})
		}
		d.events.emitFor(c, Event{Kind: event.TaskFailed, Duration: took, Err: err})
	}
	e := Event{Kind: event.TaskDropped, Duration: took, Err: err}
	if !done {
		kinds := lifecycle.Ends[end.outcome].Events
		e.Kind = kinds[len(kinds)-1]
	}
	switch e.Kind { //nolint:exhaustive // the others have no fields of their own
	case event.TaskParked:
		return // park has told listeners
	case event.TaskRetried:
		e.Wait = end.wait
	case event.TaskArchived:
		e.Reason = end.reason
	case event.TaskSnoozed:
		e.Wait, e.Err = end.wait, nil
	}
	d.events.emitFor(c, e)
}
