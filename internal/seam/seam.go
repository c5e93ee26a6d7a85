// Package seam is how package delayedtest reaches what package delayed keeps to itself. It is for these two only:
// delayed fills in the functions, and delayedtest calls them. What belongs to delayed travels as any, because this
// package cannot import it.
//
// Tests of users run the real code: delayedtest drives a Stepper, a worker without its goroutines, whose claim, call,
// decision and ends are those of every worker. A Source that is also a Listener gives messages their time and hears
// what was enqueued. Without a Listener that costs a nil check.
package seam

import (
	"context"
	"time"
)

// Listener is what a delayed.Source may be besides: queues that use it tell it of their tasks, and take the time from
// it.
type Listener interface {
	// Now returns the time that messages are stamped with.
	Now() time.Time
	// Enqueued is called when Redis has accepted tasks, in the goroutine that enqueues them. list is the key of their
	// pending list.
	Enqueued(list string)
}

// Filed is a task as Redis holds it.
type Filed struct {
	// pending, canceled (and still in the list of pending ones), active, scheduled, retry, aggregating, parked,
	// archived, completed
	State   string
	ID      string // under which it is filed; of pending and active tasks that of the message, which may have none
	Message []byte
	At      time.Time // when it is due, or deleted; zero for none
	Info    []byte    // a MessagePack map, or nothing
}

// Run is what became of one claimed task.
type Run struct {
	Queue   string
	Message []byte // as it was claimed
	Called  bool   // a function was called with it
	Err     error  // that it returned
	Failed  bool   // that counts as a failure
	Outcome string // done, retry, snoozed, archived, canceled, parked, released, forwarded, gathered
}

// Stepper runs a worker's tasks one at a time, in the goroutine that calls Step. Its methods may be called
// concurrently, and Step from within a task.
type Stepper interface {
	// Step runs the next pending task; what is due becomes pending first. nil means that none is pending: then wait is
	// the time until one is due by Redis's clock, negative for none.
	Step(ctx context.Context) (run *Run, wait time.Duration, err error)
	// Look makes due tasks pending, fires groups that are due, and makes parked tasks pending whose functions the
	// worker knows.
	Look(ctx context.Context) error
	// Sweep takes the tasks of all workers without a heartbeat from them, without waiting for further signs of their
	// death, and deletes what is too old.
	Sweep(ctx context.Context) error
	// Beat must be called after Redis's time was moved.
	Beat(ctx context.Context) error
	// Stop ends the contexts of tasks that run, as a worker does that must stop.
	Stop()
	// Close takes the worker's leave. No task must run any more.
	Close() error
}

// Filled in by package delayed.
var (
	// Locate returns the source that the handle of a *delayed.Queue was made of, its prefix, and the name of the queue.
	Locate func(queue any) (source any, prefix, name string)

	// List returns all tasks of a *delayed.Queue: pending ones in the order in which they will be claimed, others by
	// time.
	List func(ctx context.Context, queue any) ([]Filed, error)

	// Match returns what tells whether a message is a call of fn with args, and the path of fn. An argument that wild
	// says yes to equals every other. fn is what Queue.Delay takes, or a *delayed.Task and no args.
	Match func(fn any, args []any, wild func(any) bool) (match func(message []byte) bool, path string, err error)

	// Args decodes the arguments of a message by the parameters of fn; ok is false if it is a message for another
	// function.
	Args func(fn any, message []byte) (args []any, ok bool, err error)

	// NewStepper returns a stepper for a *delayed.Worker that was not run yet.
	NewStepper func(ctx context.Context, worker any) (Stepper, error)

	// Tick lets a *delayed.Scheduler that was not run enqueue what is due.
	Tick func(ctx context.Context, scheduler any) error

	// Refusable reports whether a full Redis refuses a script, given by its text or its SHA-1.
	Refusable func(script string) bool
)
