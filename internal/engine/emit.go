package engine

import (
	"errors"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// emitFor tells listeners what has happened to a claimed task. It fills in queue and claim.
func (l *listeners) emitFor(c *Claim, e Event) {
	if !l.any() {
		return
	}
	e.Queue, e.Claim = c.lane.store.Name, c
	l.emit(e)
}

// emitStart tells listeners that a handler is about to be called.
func (l *listeners) emitStart(c *Claim) {
	e := Event{Kind: event.TaskStarted}
	if at := c.msg.Meta.EnqueuedAt; at > 0 {
		e.Wait = max(c.lane.now().Sub(time.UnixMilli(at)), 0)
	}
	l.emitFor(c, e)
}

// emitEnd tells listeners that a handler has returned err, and what becomes of the task: done, or what end says.
func (l *listeners) emitEnd(c *Claim, err error, end *ending, done bool) {
	if !l.any() {
		return
	}
	took := time.Since(c.started)
	if err == nil {
		l.emitFor(c, Event{Kind: event.TaskDone, Duration: took})
		return
	}
	if !done && end.outcome.Failed() {
		if panicked(err) {
			l.emitFor(c, Event{Kind: event.TaskPanicked, Duration: took, Err: err})
		}
		if wraps[*timeoutError](err) {
			l.emitFor(c, Event{Kind: event.TaskTimedOut, Duration: took, Err: err})
		}
		l.emitFor(c, Event{Kind: event.TaskFailed, Duration: took, Err: err})
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
	l.emitFor(c, e)
}

// emitSwept tells listeners that the sweeper has archived a task; msg is nil if the message was not read.
func (l *listeners) emitSwept(queue string, msg *wire.Message, reason state.Reason, err error) {
	if !l.any() {
		return
	}
	l.emit(Event{Kind: event.TaskArchived, Queue: queue, Message: msg, Reason: reason, Err: err})
}

// wraps reports whether err wraps a T. If a method of err panics, as one of a nil pointer may, wraps returns false.
func wraps[T error](err error) (ok bool) {
	defer func() { _ = recover() }()
	var target T
	return errors.As(err, &target)
}
