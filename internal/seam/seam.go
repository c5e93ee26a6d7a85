// Package seam gives packages delayedtest, inspect, semaphore and workermain access to internals of package delayed. It
// is for these only: delayed sets the functions, and they call them. Values of delayed's types are passed as any,
// because this package cannot import delayed.
//
// Tests of users run the real code: delayedtest drives a Stepper, a worker without its goroutines, which claims, calls
// and ends tasks as every worker does. A Source that is also a Listener sets the time of messages and learns which
// tasks were enqueued. Without a Listener that costs a nil check.
package seam

import (
	"context"
	"time"
)

// Listener is an interface that a delayed.Source may also have: its queues report their tasks to it, and take the time
// from it.
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
	ID      string // under which it is filed; of pending and active tasks the id in the message, if any
	Message []byte
	At      time.Time // when it is due, or deleted; zero for none
	Info    []byte    // a MessagePack map, or nothing
}

// Run is the outcome of one claimed task.
type Run struct {
	Queue   string
	Message []byte // as it was claimed
	Called  bool   // its function was called
	Err     error  // that the function returned
	Failed  bool   // Err counts as a failure
	Outcome string // done, retry, snoozed, archived, canceled, parked, released, forwarded, gathered
}

// Stepper runs a worker's tasks one at a time, in the goroutine that calls Step. Its methods may be called
// concurrently, and Step from within a task.
type Stepper interface {
	// Step makes due tasks pending and runs the next pending task. If none is pending, run is nil and wait is the time
	// until one is due by Redis's clock, negative for none.
	Step(ctx context.Context) (run *Run, wait time.Duration, err error)
	// Look makes due tasks pending, fires groups that are due, and makes parked tasks pending whose functions the
	// worker knows.
	Look(ctx context.Context) error
	// Sweep takes the tasks of all workers without a heartbeat, without waiting for further signs of their death, and
	// deletes what is too old.
	Sweep(ctx context.Context) error
	// Beat must be called after Redis's time was moved.
	Beat(ctx context.Context) error
	// Stop cancels the contexts of running tasks, as a stopping worker does.
	Stop()
	// Close unregisters the worker. No task may be running.
	Close() error
}

// Parts are the parts of a *delayed.Store.
type Parts struct {
	Source   any // that producers use
	Signals  any // Pub/Sub
	Registry any // of queues
	Prefix   string
	Where    string // address for people, without a password
}

// Filled in by package delayed.
var (
	// Locate returns the source that the handle of a *delayed.Queue was made of, its prefix, and the name of the queue.
	Locate func(queue any) (source any, prefix, name string)

	// Handle returns the parts of a *delayed.Store.
	Handle func(rdb any) (Parts, error)

	// Renew returns the message of a filed task as it is to be run: unless keep is true, without its failures and what
	// is over, as Ref.RunAgain does; with the arguments of call, a *delayed.Task, unless that is nil. It also returns
	// the id that the message carries, name if it carries none, and whether that is to be kept taken.
	Renew func(queue any, name string, old []byte, call any, keep bool) (message []byte, id string, own bool, err error)

	// List returns all tasks of a *delayed.Queue: pending ones in the order in which they will be claimed, others by
	// time.
	List func(ctx context.Context, queue any) ([]Filed, error)

	// Match returns a function that reports whether a message is a call of fn with args, and the path of fn. An
	// argument for which wild returns true equals every other. fn is what Queue.Delay takes, or a *delayed.Task without
	// args.
	Match func(fn any, args []any, wild func(any) bool) (match func(message []byte) bool, path string, err error)

	// Args decodes the arguments of a message by the parameters of fn; ok is false if it calls another function.
	Args func(fn any, message []byte) (args []any, ok bool, err error)

	// NewStepper returns a stepper for a *delayed.Worker that was not run yet.
	NewStepper func(ctx context.Context, worker any) (Stepper, error)

	// Functions describes what a *delayed.Worker has registered, sorted by path: a []function.Info.
	Functions func(worker any) any

	// Tick lets a *delayed.Scheduler that was not run enqueue what is due.
	Tick func(ctx context.Context, scheduler any) error

	// Refusable reports whether a full Redis refuses a script, given by its text or its SHA-1.
	Refusable func(script string) bool
)
