package delayed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Errors of registering and calling functions.
var (
	// ErrFunction is wrapped by every error about a function that cannot be registered or enqueued: a closure without a
	// name, a method value, a parameter of a type that cannot be an argument, two functions under one path, a wrong
	// option of Func, or an option that the function cannot have, such as Group without a slice to grow.
	ErrFunction = function.ErrFunction

	// ErrArguments is wrapped by every error about arguments that do not fit the function, whose details are in an
	// *ArgumentError, and about wrong options of Queue.With. Wrong options of Func wrap ErrFunction. Exception: a wrong
	// Unique, UniqueKey, UntilStart or OnConflict given to Func is reported by Delay, and wraps ErrArguments.
	ErrArguments = function.ErrArguments
)

// Errors of enqueueing tasks, and of asking about and controlling them. A task is enqueued as a whole or not at all;
// only ErrUnknown leaves open which of the two. Of several tasks, *BatchError says which are enqueued.
var (
	// ErrUnknown means that the outcome is unknown, because the connection broke after the request was sent: the task
	// may or may not have been enqueued, canceled or whatever was asked for. Enqueueing it again can run it twice. With
	// a TaskID it cannot while the first task exists or is kept; TaskID says when an id is free again. Questions that
	// change nothing, such as Ref.State, do not return it. One exception: when fewer replicas than
	// QueueConfig.WaitReplicas have confirmed a task, the task is enqueued but may be lost in a fail-over.
	ErrUnknown = redisstore.ErrUnknown

	// ErrFull means that Redis refuses writes because its memory or its disk is full. Nothing was enqueued.
	ErrFull = redisstore.ErrFull

	// ErrDuplicate means that a task with the same id, or with the same lock of Unique, exists already. The error is a
	// *DuplicateError, which names that task.
	ErrDuplicate = redisstore.ErrDuplicate

	// ErrNoID means that Redis cannot be asked about a task because its message carries no id.
	ErrNoID = redisstore.ErrNoID

	// ErrNoResult means that there is no result to wait for or to return: the task was enqueued without KeepResult and
	// Retention, the function returns nothing, or what it returned is not of the type that Await was asked for.
	ErrNoResult = errors.New("delayed: no result")

	// ErrNotArchived means that a task cannot be run again, because it is not archived, or that it cannot be deleted,
	// because it is not archived and neither KeepResult nor Retention keeps anything of it.
	ErrNotArchived = errors.New("delayed: task is not archived")
	// ErrEnded means that a task cannot be canceled because it has ended.
	ErrEnded = errors.New("delayed: task has ended")

	// ErrClosed is wrapped by the errors of a second Run of a Worker, Sweeper or Scheduler, of Worker.Use and
	// Worker.OnEvent after Run was called, of Worker.Register and Worker.RegisterMethods after Run has returned, and of
	// everything that uses a Redis handle after its Close, every Run included.
	ErrClosed = redisstore.ErrClosed
)

// Causes of a handler's context: context.Cause(ctx) is one of these when the worker canceled it.
var (
	// ErrLost means that the worker lost its claim: Redis did not hear its heartbeat for too long, and another worker
	// may run the task now. Whatever the handler returns is discarded.
	ErrLost = lane.ErrLost

	// ErrCanceled means that the task was canceled by Ref.Cancel, or replaced by a later one. Whatever error the
	// handler returns, the task is not tried again. The *TaskError that Ref.Wait returns wraps it too.
	ErrCanceled = lane.ErrCanceled

	// ErrTimeout means that the handler has run for as long as its Timeout or Deadline allows. What it returns then
	// still counts: nil is success. The error that WorkerConfig.IsFailure and BackoffFunc get wraps it, whatever the
	// handler returned.
	ErrTimeout = lane.ErrTimeout

	// ErrShutdown means that the worker is stopping and that the grace period is over. If the handler of a task then
	// returns an error, the task is given back.
	ErrShutdown = lane.ErrShutdown
)

// ArgumentError names the argument that does not fit. errors.Is(err, ErrArguments) holds for it.
type ArgumentError struct {
	Func string // path of the function
	// Index is that of the argument, from 0, not counting a leading context; -1 if the number of arguments is wrong.
	// The text of the error counts from 1.
	Index int
	Want  string // what the function takes
	Got   string // what was found
}

// Error implements error.
func (e *ArgumentError) Error() string { return (*function.ArgumentError)(e).Error() }

// Unwrap makes errors.Is(err, ErrArguments) true.
func (e *ArgumentError) Unwrap() error { return ErrArguments }

// public turns an error of encoding or decoding arguments into the exported one.
func public(err error) error {
	if e, ok := err.(*function.ArgumentError); ok { //nolint:errorlint // never wrapped
		return (*ArgumentError)(e)
	}
	return err
}

// misfit turns the error about a call that no worker takes into an exported one.
func misfit(path string, err error) error {
	var wrong *catalog.MisfitError
	if errors.As(err, &wrong) {
		want := wrong.Want
		if wrong.Index >= 0 {
			want += ", as in " + wrong.Function
		}
		return &ArgumentError{Func: path, Index: wrong.Index, Want: wire.OneLine(want), Got: wire.OneLine(wrong.Got)}
	}
	return fmt.Errorf("%w: %s: %s", ErrFunction, path, wire.OneLine(err.Error()))
}

// DuplicateError names the task that is in the way of a new one: it has the same id, or holds the same lock of Unique.
// errors.Is(err, ErrDuplicate) holds for it.
type DuplicateError struct {
	ID string // of the task that is in the way
}

// Error implements error.
func (e *DuplicateError) Error() string {
	return fmt.Sprintf("delayed: duplicate task: task %q has the id of the new one or holds its lock; wait until it "+
		"has ended, or choose what happens with OnConflict", e.ID)
}

// Unwrap makes errors.Is(err, ErrDuplicate) true.
func (e *DuplicateError) Unwrap() error { return ErrDuplicate }

// duplicate turns the store's error about a task that holds the id or lock into the exported one.
func duplicate(err error) error {
	if taken := (*redisstore.TakenError)(nil); errors.As(err, &taken) {
		return &DuplicateError{ID: taken.ID}
	}
	return err
}

// TaskError means that a task has ended without success: it is archived, or was dropped or canceled.
type TaskError struct {
	ID    string
	State state.Task // where it is now
	// Reason is one of the reasons why a task is archived, or state.ReasonDropped or state.ReasonCanceled.
	Reason   state.Reason
	Text     string    // of its last error; "" if there was none
	Attempts int       // see TaskInfo.Attempts; 0 if nothing is kept of the task
	Deaths   int       // see Task.Deaths
	At       time.Time // when it ended
}

// Error implements error.
func (e *TaskError) Error() string {
	text := fmt.Sprintf("delayed: task %s is %s", e.ID, e.State)
	if string(e.Reason) != e.State.String() {
		text += " (" + string(e.Reason) + ")"
	}
	if e.Attempts > 0 {
		text += fmt.Sprintf(" after %d attempts", e.Attempts)
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return wire.OneLine(text)
}

// Is makes errors.Is(err, ErrCanceled) true for a task that was canceled.
func (e *TaskError) Is(target error) bool {
	return target == ErrCanceled && e.Reason == state.ReasonCanceled
}

// BatchError reports how far DelayMany came: the first Sent tasks are enqueued, the others are not. Exception: if Err
// wraps ErrUnknown, tasks that follow the first Sent may be enqueued as well.
type BatchError struct {
	Sent int   // number of tasks that are enqueued for certain, counted from the first
	Err  error // why the next one is not
}

// Error implements error.
func (e *BatchError) Error() string {
	return fmt.Sprintf("delayed: stopped after %d tasks: %v", e.Sent, e.Err)
}

// Unwrap returns the cause.
func (e *BatchError) Unwrap() error { return e.Err }

// batchError returns err, which DelayMany met after it had enqueued the tasks of refs, as a *BatchError.
func batchError(refs []*Ref, err error) error {
	if err == nil {
		return nil
	}
	if batch := (*BatchError)(nil); errors.As(err, &batch) {
		return err
	}
	return &BatchError{Sent: len(refs), Err: err}
}

// ofTask returns err as the error of a task of DelayMany; i counts from 0.
func ofTask(i int, err error) error { return fmt.Errorf("task %d: %w", i+1, err) }

// StillRunningError is returned by Worker.Run when handlers did not return although their contexts were canceled. Their
// claims stand until the process exits; then a sweeper gives the tasks back.
type StillRunningError struct {
	Funcs []string // paths of the functions, one for each running task
}

// Error implements error.
func (e *StillRunningError) Error() string { return (*lane.RunningError)(e).Error() }

// StuckError is returned by Worker.Run when more handlers than WorkerConfig.MaxStuck ignore that their contexts have
// ended: the worker has stopped because of them. Those that still run keep their claims until the process exits; then a
// sweeper gives their tasks back.
type StuckError struct {
	Funcs []string // paths of the functions, one for each handler
	IDs   []string // ids of their tasks in the same order, "" for tasks without an id
}

// Error implements error.
func (e *StuckError) Error() string { return (*lane.StuckError)(e).Error() }

// publicEnd turns the error of a worker's end, which may be several joined ones, into exported ones.
func publicEnd(err error) error {
	_, translated := publicErrors(err)
	return translated
}

// publicErrors is publicEnd, and reports whether it has replaced anything. Errors are not compared for that: those of a
// Source may be of a type that Go cannot compare.
func publicErrors(err error) (replaced bool, translated error) {
	switch e := err.(type) { //nolint:errorlint // only errors.Join wraps these
	case *lane.RunningError:
		return true, (*StillRunningError)(e)
	case *lane.StuckError:
		return true, (*StuckError)(e)
	case interface{ Unwrap() []error }:
		all := slices.Clone(e.Unwrap())
		for i, one := range all {
			var this bool
			this, all[i] = publicErrors(one)
			replaced = replaced || this
		}
		if replaced {
			return true, errors.Join(all...)
		}
	}
	return false, err
}

// Errors of handles that no constructor has made. Methods that return no error panic with them.
var (
	errNilContext = errors.New("delayed: the context is nil: pass context.Background() where there is no other")
	errNoQueue    = errors.New("delayed: the *Queue is nil or zero: make it with NewQueue or OpenQueue")
)

// must panics with err unless it is nil, in functions that return no error.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// checkContext returns an error if there is no context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return errNilContext
	}
	return nil
}

// tooShort returns what was expected in place of a duration that was probably meant in another unit, such as
// Retention(60000), which is 60 µs; "" for others.
func tooShort(d time.Duration) (want string) {
	if d > 0 && d < time.Millisecond {
		return "at least 1ms, or a unit such as time.Second behind the number"
	}
	return ""
}

// checkDuration is tooShort for a field of a configuration.
func checkDuration(field string, d time.Duration) error {
	if want := tooShort(d); want != "" {
		return fmt.Errorf("delayed: %s is %v: expected %s", field, d, want)
	}
	return nil
}
