package finish

import (
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
)

// EmitEnd emits that a handler has returned err, and what becomes of the task: done, or what end says.
func (d *Decider) EmitEnd(c *lane.Claim, err error, end *lane.Ending, done bool) {
	if !d.Events.Any() {
		return
	}
	took := time.Since(c.Started)
	if err == nil {
		d.Events.EmitFor(c, events.Event{Kind: event.TaskDone, Duration: took})
		return
	}
	if !done && end.Outcome.Failed() {
		if child.Panicked(err) {
			d.Events.EmitFor(c, events.Event{Kind: event.TaskPanicked, Duration: took, Err: err})
		}
		if child.Wraps[*lane.TimeoutError](err) {
			d.Events.EmitFor(c, events.Event{Kind: event.TaskTimedOut, Duration: took, Err: err})
		}
		d.Events.EmitFor(c, events.Event{Kind: event.TaskFailed, Duration: took, Err: err})
	}
	e := events.Event{Kind: event.TaskDropped, Duration: took, Err: err}
	if !done {
		kinds := lifecycle.Ends[end.Outcome].Events
		e.Kind = kinds[len(kinds)-1]
	}
	switch e.Kind { //nolint:exhaustive // the others have no fields of their own
	case event.TaskParked:
		return // Park has emitted it
	case event.TaskRetried:
		e.Wait = end.Wait
	case event.TaskArchived:
		e.Reason = end.Reason
	case event.TaskSnoozed:
		e.Wait, e.Err = end.Wait, nil
	}
	d.Events.EmitFor(c, e)
}
