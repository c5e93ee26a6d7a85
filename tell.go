package delayed

import (
	"errors"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/wire"
)

// tell tells listeners of what has happened to a claimed task; e says what and why. It never blocks. A nil worker has
// no listeners.
func (w *Worker) tell(c *claim, e Event) {
	if w == nil || !w.listened() {
		return
	}
	e.Queue = c.lane.store.Name
	if c.msg.Path != "" {
		e.Task = taskOf(c)
	}
	w.emit(e)
}

// tellStart tells listeners that a handler is about to be called.
func (w *Worker) tellStart(c *claim) {
	e := Event{Kind: EventTaskStarted}
	if at := c.msg.Meta.EnqueuedAt; at > 0 {
		e.Wait = max(c.lane.now().Sub(time.UnixMilli(at)), 0)
	}
	w.tell(c, e)
}

// tellEnd tells listeners how a run has ended whose handler returned err, and what becomes of the task: end, or nothing
// more if it is done.
func (w *Worker) tellEnd(c *claim, err error, end *ending, done bool) {
	if !w.listened() {
		return
	}
	took := time.Since(c.started)
	if err == nil {
		w.tell(c, Event{Kind: EventTaskDone, Duration: took})
		return
	}
	if end.tally == tallyFailed {
		if wraps[*function.PanicError](err) {
			w.tell(c, Event{Kind: EventTaskPanicked, Duration: took, Err: err})
		}
		if wraps[*timeoutError](err) {
			w.tell(c, Event{Kind: EventTaskTimedOut, Duration: took, Err: err})
		}
		w.tell(c, Event{Kind: EventTaskFailed, Duration: took, Err: err})
	}
	e := Event{Duration: took, Err: err}
	switch {
	case !done && end.outcome == outcomePark:
		return // park has told it
	case done || end.outcome == outcomeComplete:
		e.Kind = EventTaskDropped
	case end.outcome == outcomeRetry:
		e.Kind, e.Wait = EventTaskRetried, end.wait
	case end.outcome == outcomeArchive:
		e.Kind, e.Reason = EventTaskArchived, end.reason
	case end.outcome == outcomeSnooze:
		e.Kind, e.Wait, e.Err = EventTaskSnoozed, end.wait, nil
	default:
		e.Kind = EventTaskReleased
	}
	w.tell(c, e)
}

// tellSwept tells listeners of a task that the sweeper archives; msg is nil if the message is not read.
func (w *Worker) tellSwept(queue string, msg *wire.Message, reason string, err error) {
	if !w.listened() {
		return
	}
	e := Event{Kind: EventTaskArchived, Queue: queue, Reason: reason, Err: err}
	if msg != nil {
		e.Task = sweptTask(queue, msg)
	}
	w.emit(e)
}

// wraps says whether err wraps a T. An error whose methods panic, as that of a nil pointer may, wraps nothing.
func wraps[T error](err error) (ok bool) {
	defer func() { _ = recover() }()
	var target T
	return errors.As(err, &target)
}
