package delayed

import (
	"errors"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/wire"
)

// tell tells listeners of what has happened to a claimed task; e says what and why. It never blocks. A nil worker has
// no listeners.
func (w *worker) tell(c *claim, e event) {
	if w == nil || !w.listened() {
		return
	}
	e.Queue, e.claim = c.lane.store.Name, c
	w.emit(e)
}

// tellStart tells listeners that a handler is about to be called.
func (w *worker) tellStart(c *claim) {
	e := event{Kind: kindTaskStarted}
	if at := c.msg.Meta.EnqueuedAt; at > 0 {
		e.Wait = max(c.lane.now().Sub(time.UnixMilli(at)), 0)
	}
	w.tell(c, e)
}

// tellEnd tells listeners how a run has ended whose handler returned err, and what becomes of the task: end, or nothing
// more if it is done.
func (w *worker) tellEnd(c *claim, err error, end *ending, done bool) {
	if !w.listened() {
		return
	}
	took := time.Since(c.started)
	if err == nil {
		w.tell(c, event{Kind: kindTaskDone, Duration: took})
		return
	}
	if end.tally == tallyFailed {
		if wraps[*function.PanicError](err) {
			w.tell(c, event{Kind: kindTaskPanicked, Duration: took, Err: err})
		}
		if wraps[*timeoutError](err) {
			w.tell(c, event{Kind: kindTaskTimedOut, Duration: took, Err: err})
		}
		w.tell(c, event{Kind: kindTaskFailed, Duration: took, Err: err})
	}
	e := event{Duration: took, Err: err}
	switch {
	case !done && end.outcome == outcomePark:
		return // park has told it
	case done || end.outcome == outcomeComplete:
		e.Kind = kindTaskDropped
	case end.outcome == outcomeRetry:
		e.Kind, e.Wait = kindTaskRetried, end.wait
	case end.outcome == outcomeArchive:
		e.Kind, e.Reason = kindTaskArchived, end.reason
	case end.outcome == outcomeSnooze:
		e.Kind, e.Wait, e.Err = kindTaskSnoozed, end.wait, nil
	default:
		e.Kind = kindTaskReleased
	}
	w.tell(c, e)
}

// tellSwept tells listeners of a task that the sweeper archives; msg is nil if the message is not read.
func (w *worker) tellSwept(queue string, msg *wire.Message, reason string, err error) {
	if !w.listened() {
		return
	}
	w.emit(event{Kind: kindTaskArchived, Queue: queue, message: msg, Reason: reason, Err: err})
}

// wraps says whether err wraps a T. An error whose methods panic, as that of a nil pointer may, wraps nothing.
func wraps[T error](err error) (ok bool) {
	defer func() { _ = recover() }()
	var target T
	return errors.As(err, &target)
}
