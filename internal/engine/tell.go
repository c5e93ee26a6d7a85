package engine

import (
	"errors"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/wire"
)

// tell tells listeners of what has happened to a claimed task; e says what and why. It never blocks. A nil worker has
// no listeners.
func (w *Worker) tell(c *Claim, e Event) {
	if w == nil || !w.listened() {
		return
	}
	e.Queue, e.Claim = c.Lane.Store.Name, c
	w.Emit(e)
}

// tellStart tells listeners that a handler is about to be called.
func (w *Worker) tellStart(c *Claim) {
	e := Event{Kind: KindTaskStarted}
	if at := c.Msg.Meta.EnqueuedAt; at > 0 {
		e.Wait = max(c.Lane.now().Sub(time.UnixMilli(at)), 0)
	}
	w.tell(c, e)
}

// tellEnd tells listeners how a run has ended whose handler returned err, and what becomes of the task: end, or nothing
// more if it is done.
func (w *Worker) tellEnd(c *Claim, err error, end *Ending, done bool) {
	if !w.listened() {
		return
	}
	took := time.Since(c.started)
	if err == nil {
		w.tell(c, Event{Kind: KindTaskDone, Duration: took})
		return
	}
	if end.Tally == TallyFailed {
		if wraps[*function.PanicError](err) {
			w.tell(c, Event{Kind: KindTaskPanicked, Duration: took, Err: err})
		}
		if wraps[*TimeoutError](err) {
			w.tell(c, Event{Kind: KindTaskTimedOut, Duration: took, Err: err})
		}
		w.tell(c, Event{Kind: KindTaskFailed, Duration: took, Err: err})
	}
	e := Event{Duration: took, Err: err}
	switch {
	case !done && end.Outcome == OutcomePark:
		return // park has told it
	case done || end.Outcome == OutcomeComplete:
		e.Kind = KindTaskDropped
	case end.Outcome == OutcomeRetry:
		e.Kind, e.Wait = KindTaskRetried, end.Wait
	case end.Outcome == OutcomeArchive:
		e.Kind, e.Reason = KindTaskArchived, end.reason
	case end.Outcome == OutcomeSnooze:
		e.Kind, e.Wait, e.Err = KindTaskSnoozed, end.Wait, nil
	default:
		e.Kind = KindTaskReleased
	}
	w.tell(c, e)
}

// tellSwept tells listeners of a task that the sweeper archives; msg is nil if the message is not read.
func (w *Worker) tellSwept(queue string, msg *wire.Message, reason string, err error) {
	if !w.listened() {
		return
	}
	w.Emit(Event{Kind: KindTaskArchived, Queue: queue, Message: msg, Reason: reason, Err: err})
}

// wraps says whether err wraps a T. An error whose methods panic, as that of a nil pointer may, wraps nothing.
func wraps[T error](err error) (ok bool) {
	defer func() { _ = recover() }()
	var target T
	return errors.As(err, &target)
}
