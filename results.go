package delayed

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Wait waits until the task has ended: nil if it has succeeded, a *TaskError if it has failed for good, or was dropped
// or canceled.
//
// The task must be enqueued with KeepResult or Retention, even if its function returns only an error. Without them Wait
// returns an error that wraps ErrNoResult, at once, if this process has got r by enqueueing the task. For any other Ref
// it cannot tell, and waits until ctx ends, as it does for an id that no task ever had and for a result that is kept no
// longer: give ctx a deadline.
//
// A Wait that begins after the end returns at once while the end is kept: of a task that has succeeded, was dropped or
// canceled for as long as KeepResult or Retention keeps it, of an archived one until it is deleted. A task that is
// canceled or replaced while it is pending or active ends when a worker has seen that, and Wait waits for it. Nothing
// is kept of a task that was replaced while it was scheduled, retrying or parked, nor of a canceled call of a Group: a
// Wait that begins later lasts until ctx ends.
//
// Waiting does not poll: all waits of a process share one connection, on which Redis publishes the end. While Redis is
// away, Wait goes on until ctx ends, and the error says so then. Other errors are those that Redis answers with, such
// as a refusal by its ACL, or a key of another type.
func (r *Ref) Wait(ctx context.Context) error {
	_, err := r.wait(ctx)
	return err
}

// Await waits as Ref.Wait does and returns what the function of the task has returned. Decoding is as strict as that of
// arguments: if the value is not a T the error wraps ErrNoResult and says what was expected and found. It also wraps
// ErrNoResult if the function has returned nothing. Fields of structs are matched by name: a field that T has and the
// value lacks is zero, and a field that the value has and T lacks is an error that wraps ErrNoResult.
//
//	n, err := delayed.Await[int](ctx, ref)
func Await[T any](ctx context.Context, ref *Ref) (T, error) {
	var value T
	if _, err := wire.CodecFor(reflect.TypeFor[T]()); err != nil {
		return value, fmt.Errorf("%w: a result cannot be of the type %v: %w", ErrNoResult, reflect.TypeFor[T](), err)
	}
	info, err := ref.wait(ctx)
	if err != nil {
		return value, err
	}
	err = decodeResult(&info, reflect.ValueOf(&value).Elem())
	return value, err
}

// decodeResult reads the result into a variable.
func decodeResult(i *wire.Info, dst reflect.Value) error {
	switch {
	case i.Result == nil && i.Error != "":
		return fmt.Errorf("%w: the task has succeeded, but what it returned could not be kept: %s", ErrNoResult,
			i.Error)
	case i.Result == nil:
		return fmt.Errorf("%w: %s has succeeded and returns nothing; call Ref.Wait", ErrNoResult, i.Function)
	}
	codec, err := wire.CodecFor(dst.Type())
	if err != nil {
		return fmt.Errorf("%w: a result cannot be of the type %v: %w", ErrNoResult, dst.Type(), err)
	}
	err = wire.Check(i.Result, wire.Default)
	var rest []byte
	if err == nil {
		rest, err = codec.Decode(i.Result, dst)
	}
	if err == nil && len(rest) > 0 {
		err = errors.New("more than one value")
	}
	if err != nil {
		dst.SetZero()
		return fmt.Errorf("%w: of %s as %v: %w; call Await with the type that the function returns", ErrNoResult,
			i.Function, dst.Type(), err)
	}
	return nil
}

// Messages about the end of a task of which nothing is kept; "ended" is the message for all others.
const (
	endedReplaced = "replaced" // by enlist.lua
	endedGathered = redisstore.EndGathered
)

// leftNothing returns the info for such a message; nil for others.
func leftNothing(how string) *wire.Info {
	switch how {
	case endedReplaced:
		return &wire.Info{Reason: state.ReasonCanceled, Error: "another task has taken its place", At: time.Now()}
	case endedGathered:
		return &wire.Info{Reason: state.ReasonCanceled, At: time.Now()}
	}
	return nil
}

// wait waits for the end of the task and returns its info.
func (r *Ref) wait(ctx context.Context) (wire.Info, error) {
	if r == nil || r.queue == nil || ctx == nil {
		return wire.Info{}, r.check(ctx)
	}
	switch {
	case r.id != "" && r.enqueuedHere() && !r.queue.options.kept:
		return wire.Info{}, fmt.Errorf("%w: task %s was enqueued without KeepResult or Retention, so nothing reports "+
			"its end: give one to Queue.With or to Func", ErrNoResult, r)
	case r.enqueuedHere() && r.queue.options.group != nil:
		return wire.Info{}, fmt.Errorf("%w: call %s is gathered with others, and one task is made of all: wait for "+
			"that one by its id, which is the first of theirs", ErrNoResult, r)
	}
	// If the task has ended already, no subscription is needed.
	info, ended, err := r.outcome(ctx)
	if ended || redisstore.Refused(err) {
		return info, err
	}
	signals := r.queue.signals
	//nolint:contextcheck // its connection serves others
	messages, unsubscribe := signals.SubscribeEnd(r.queue.store, r.id)
	defer unsubscribe()
	again := time.NewTicker(loop.Jitter(signals.Again, 0.2))
	defer again.Stop()
	for {
		select {
		case how := <-messages:
			if gone := leftNothing(how); gone != nil {
				return *gone, r.failure(state.Canceled, gone)
			}
		case <-again.C:
		case <-ctx.Done():
			if err == nil || errors.Is(err, ctx.Err()) {
				return wire.Info{}, fmt.Errorf("delayed: waiting for task %s: %w", r, context.Cause(ctx))
			}
			return wire.Info{}, fmt.Errorf("delayed: waiting for task %s: %w; Redis could not be asked: %w", r,
				context.Cause(ctx), err)
		}
		if info, ended, err = r.outcome(ctx); ended || redisstore.Refused(err) {
			return info, err
		}
	}
}

// outcome looks whether the task has ended: with its info, or with the error of its final failure. An error while ended
// is false means that Redis did not answer.
func (r *Ref) outcome(ctx context.Context) (info wire.Info, ended bool, err error) {
	found, err := r.readState(ctx, false)
	if err != nil {
		return wire.Info{}, false, err
	}
	if !found.Completed.IsZero() {
		if info = wire.ParseInfo(found.Result); !r.older(&info) {
			return info, true, r.failure(state.Dropped, &info)
		}
	}
	if !found.Archived.IsZero() {
		info = wire.ParseInfo(found.Info)
		return info, true, r.failure(state.Archived, &info)
	}
	return wire.Info{}, false, nil
}

// failure returns the error of a task that has ended; nil if it has succeeded.
func (r *Ref) failure(where state.Task, info *wire.Info) error {
	if info.Reason == state.ReasonCompleted {
		return nil
	}
	if info.Reason == state.ReasonCanceled {
		where = state.Canceled
	}
	return &TaskError{
		ID: r.id, State: where, Reason: info.Reason, Text: info.Error, Attempts: info.Attempts, Deaths: info.Deaths,
		At: info.At,
	}
}

// Progress reports how far a task is: done of total, in units of the handler's choice, and a note of up to 4 KiB; a
// negative number counts as 0. ctx is the context that the handler was given, or made of it. Others read the last
// report by Ref.Progress and Ref.Info while the task is active; it goes with the task's end, but stays with what
// KeepResult and Retention keep and with what is known of a task that has failed.
//
// It may be called as often as is convenient: at most ten reports a second reach Redis, and the last one always does.
// An error says that ctx is not a handler's context, that the task carries no id (ErrNoID), that it is another worker's
// by now (ErrLost), or that Redis did not answer; none of them needs to stop the handler.
func Progress(ctx context.Context, done, total int64, note string) error {
	c := lane.ClaimFromContext(ctx)
	if c == nil {
		return errors.New("delayed: Progress outside of a handler: pass the context that the handler was given")
	}
	return c.Report(ctx, wire.Progress{Done: done, Total: total, Note: note})
}

// Progress asks Redis what the task has reported last; zeros if it has not, or if it is pending or nothing is known of
// it any more. Errors are those of asking.
func (r *Ref) Progress(ctx context.Context) (done, total int64, note string, err error) {
	info, err := r.Info(ctx)
	return info.Done, info.Total, info.Note, err
}

// State asks Redis where the task is, except a pending one and most running ones. For these it returns state.Unknown,
// because they are not indexed by id; package inspect finds them. Only a running task that has called Progress is
// state.Active. A task that has ended and of which nothing is kept is state.Unknown, too. To learn of the end, enqueue
// the task with KeepResult or Retention and call Wait. Errors are those of asking.
func (r *Ref) State(ctx context.Context) (state.Task, error) {
	found, err := r.readState(ctx, false)
	if err != nil {
		return state.Unknown, err
	}
	where, _, _ := stateOf(&found)
	if where == state.Unknown {
		if _, waits, err := r.queue.store.Aggregating(ctx, r.id); err != nil {
			return state.Unknown, err
		} else if waits {
			return state.Aggregating, nil
		}
	}
	return where, nil
}

// Info asks Redis what is known of the task. Of pending tasks and most running ones, whose State is state.Unknown, that
// is nothing but the ID; package inspect finds them. Errors are those of asking.
func (r *Ref) Info(ctx context.Context) (TaskInfo, error) {
	found, err := r.readState(ctx, true)
	if err != nil {
		return TaskInfo{}, err
	}
	where, due, noted := stateOf(&found)
	info := wire.ParseInfo(noted)
	task := publicInfo(&info)
	task.ID, task.State, task.Due = r.id, where, due
	message := found.Message.Bytes
	if size := found.Message.Size; size > 0 && task.Reason == "" {
		task.Reason, task.Error = state.ReasonTooLarge, redisstore.TooLarge(size).Error()
	}
	if where == state.Unknown {
		var waits bool
		if message, waits, err = r.queue.store.Aggregating(ctx, r.id); err != nil {
			return TaskInfo{}, err
		}
		if waits {
			task.State = state.Aggregating
		}
	}
	if message == nil {
		message = info.Message
	}
	task.read(r.queue, message)
	return task, nil
}

// readState reads from Redis what is known of the task.
func (r *Ref) readState(ctx context.Context, message bool) (redisstore.Seen, error) {
	if err := r.check(ctx); err != nil {
		return redisstore.Seen{}, err
	}
	return r.queue.store.Look(ctx, r.id, message)
}

// placeStates maps the places where the store finds tasks to states.
var placeStates = map[string]state.Task{
	"scheduled": state.Scheduled, "retry": state.Retry, "parked": state.Parked, "archived": state.Archived,
	"completed": state.Completed, "active": state.Active,
}

// stateOf returns the state of a task that the store has read, with its time and its info.
func stateOf(s *redisstore.Seen) (where state.Task, due time.Time, info []byte) {
	place, due, info := s.Place()
	where = placeStates[place]
	if where == state.Completed {
		switch info := wire.ParseInfo(info); info.Reason {
		case state.ReasonDropped:
			where = state.Dropped
		case state.ReasonCanceled:
			where = state.Canceled
		default:
		}
	}
	return where, due, info
}

// read takes over the message of a task of q, if it can be read.
func (i *TaskInfo) read(q *Queue, message []byte) {
	msg, err := wire.Parse(message, wire.WorkerLimits)
	if err != nil {
		return
	}
	i.Task, i.Function = sweptTask(q.name, &msg), msg.Path
	if at := i.Task.EnqueuedAt(); !at.IsZero() {
		i.EnqueuedAt = at
	}
}

// publicInfo returns an info as users get it.
func publicInfo(i *wire.Info) TaskInfo {
	return TaskInfo{
		Function: i.Function, EnqueuedAt: i.Enqueued, Began: i.Began, At: i.At, FirstFailed: i.FirstFailed,
		Reason: i.Reason, Error: i.Error, Stack: i.Stack, Attempts: i.Attempts, Deaths: i.Deaths, Worker: i.Worker,
		Done: i.Progress.Done, Total: i.Progress.Total, Note: i.Progress.Note,
	}
}

// TaskInfo is what is known of a task that waits, is archived, is completed or has reported its progress. Fields that
// are not known are zero. Times are in milliseconds, by Redis's clock, except EnqueuedAt.
type TaskInfo struct {
	ID       string
	State    state.Task
	Function string // its path
	// Due is when a scheduled or retrying task is due, when a parked one is archived, when an archived or completed one
	// is deleted.
	Due         time.Time
	EnqueuedAt  time.Time    // by the producer's clock
	Began       time.Time    // when the successful run of a completed task began
	At          time.Time    // when it failed, was parked, was completed or reported its progress
	FirstFailed time.Time    // zero if it has not failed
	Reason      state.Reason // why the task is where it is
	Error       string       // the text of the error of its last run, up to 4 KiB; "" after Snooze, which is no failure
	Stack       string       // of the panic of its last run, up to 4 KiB
	// Attempts depends on Reason. Failed, not failed, snoozed, arguments, completed, dropped: Task.Attempt of the last
	// run. Expired, canceled, active: how many runs have failed before. By hand, moving: unchanged. Others: 0.
	Attempts    int
	Deaths      int    // see Task.Deaths
	Worker      string // id of the worker that had it last
	Done, Total int64  // of its last report by Progress
	Note        string // of the same report
	// Task has the arguments, headers and options of the task. It can be enqueued, as another task. It is nil if the
	// message is not kept or cannot be read. It is not encoded when a TaskInfo is itself an argument of a task.
	Task *Task `msgpack:"-"`
}
