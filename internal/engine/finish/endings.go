package finish

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Succeed ends the claim of a successful task that leaves something behind. value is what its function returned, began
// when it was called.
func (d *Decider) Succeed(c *lane.Claim, value any, began, now time.Time) {
	info := wire.Info{
		Reason: state.ReasonCompleted, Function: c.Msg.Path, Attempts: c.Msg.Meta.Retried + 1,
		Deaths: c.Msg.Meta.Deaths, Began: began, At: now, Worker: d.Worker,
	}
	var err error
	if c.Msg.Meta.Extra.Keeps() {
		if info.Result, err = encodeResult(c, value); err != nil {
			// Do not retry: the function has succeeded, and its next result would not fit either.
			info.Error = err.Error()
		}
	}
	c.Lane.Finisher.Add(EndComplete(c, &info))
	if err != nil { // last, because a logger may end this goroutine
		c.Log(d.Log).WithError(err).Error("task succeeded, but its result cannot be kept")
	}
}

// encodeResult encodes what a function returned. A child process has done that already.
func encodeResult(c *lane.Claim, value any) ([]byte, error) {
	kept, ok := value.(child.KeptResult)
	switch {
	case !ok:
		return c.Fn.EncodeResult(value)
	case kept.Err != "":
		return nil, errors.New(kept.Err)
	}
	return kept.Encoded, nil
}

// EndComplete returns the ending of a task that is over. The ending frees the lock, and keeps info if the call asks for
// that.
func EndComplete(c *lane.Claim, info *wire.Info) lane.Ending {
	e := lane.Ending{Claim: c, Outcome: lifecycle.OutcomeComplete, ID: c.Msg.Meta.ID}
	x := c.Msg.Meta.Extra
	if !x.Keeps() || e.ID == "" {
		return e
	}
	if at := c.Msg.Meta.EnqueuedAt; at > 0 {
		info.Enqueued = time.UnixMilli(at)
	}
	info.Progress = c.LastReport()
	if x.Retention > 0 {
		info.Message = c.Raw
	}
	e.Wait, e.Info = wire.Milliseconds(max(x.KeepResult, x.Retention)), info.Encode()
	return e
}

// CanceledInfo returns what is kept of a canceled task.
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

// CancelClaim ends the claim of a canceled task. certain: the task counts as canceled, even if Redis does not know
// that it was.
func (d *Decider) CancelClaim(c *lane.Claim, certain bool) {
	d.Events.EmitFor(c, events.Event{Kind: event.TaskCanceled})
	c.Lane.Finisher.Add(d.Cancellation(c, certain))
	c.Log(d.Log).Info("task canceled") // last, because a logger may end this goroutine
}

// Cancellation returns the ending of a canceled task.
func (d *Decider) Cancellation(c *lane.Claim, certain bool) lane.Ending {
	info := CanceledInfo(&c.Msg, c.Lane.Now())
	info.Worker = d.Worker
	e := EndComplete(c, &info)
	e.Outcome, e.Certain = lifecycle.OutcomeCancel, certain
	return e
}

// lateCancellation returns the ending of a task that was to be retried or archived, when Redis has answered that it was
// canceled.
func (d *Decider) lateCancellation(c *lane.Claim) lane.Ending {
	d.Events.EmitFor(c, events.Event{Kind: event.TaskCanceled})
	return d.Cancellation(c, false)
}

// Park returns the ending that parks a task until a worker comes that can run it.
func (d *Decider) Park(c *lane.Claim, reason state.Reason, now time.Time, fields ...string) lane.Ending {
	id := c.Msg.Meta.ID
	if id == "" {
		id = wire.NewTaskID()
	}
	queue, path := c.Lane.Store.Name, c.Msg.Path
	d.Lines.Log(loop.LineKey{Queue: queue, Reason: string(reason), Function: path}, func(n int) {
		log := d.Log.With("queue", queue).With("function", path).With("id", id).Counted(n)
		if len(fields) > 0 {
			log = log.With("fields", strings.Join(fields, ", "))
		}
		log.Warn("task parked: this worker cannot run it (" + string(reason) + ")" + parkedAdvice[reason])
	})
	d.Events.EmitFor(c, events.Event{Kind: event.TaskParked, Reason: reason})
	info := wire.Info{Reason: reason, Function: c.Msg.Path, Fields: fields, At: now, Worker: d.Worker}
	if len(fields) > 0 {
		info.Error = unknownFieldsText(c.Msg.Path, fields)
	}
	return lane.Ending{
		Claim: c, Outcome: lifecycle.OutcomePark, Wait: lifecycle.ParkedLife, ID: id, Message: c.Raw,
		Info: info.Encode(),
	}
}

// parkedAdvice says in the log what to do, where more is needed than a worker that knows the function.
var parkedAdvice = map[state.Reason]string{
	state.ReasonPlainPython: ": the workers of WorkerConfig.PythonQueue break on extended messages; serve another " +
		"queue with godelayed's workers and name that, or have its producers open this queue as Legacy",
}

// unknownFieldsText returns the error of a task that is parked because of fields.
func unknownFieldsText(path string, fields []string) string {
	return fmt.Sprintf("delayed: %s: the structs of this worker lack fields of the task (argument.field): %s; run a "+
		"worker whose structs have them",
		path, strings.Join(fields, ", "))
}

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
