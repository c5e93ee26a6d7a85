package delayed

import (
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/state"
)

// Event is something that has happened in a worker; Worker.Listen subscribes to them. docs/HOOKS.md says when each kind
// comes and which fields it fills in; all others are zero.
type Event struct {
	// Kind says what has happened.
	Kind event.Kind
	// At is when it happened, by the clock of this process.
	At time.Time
	// Queue is the name of the queue that it is about, "" if it is about the worker as a whole.
	Queue string
	// Task is the task that it is about, nil if none.
	Task *Task
	// Duration is how long the handler ran.
	Duration time.Duration
	// Wait is how long the task waits until it is tried again, or with event.TaskStarted how long ago it was enqueued.
	Wait time.Duration
	// Reason says why, with the events TaskArchived, TaskParked, TaskStuck, WorkerStopping and WorkerStopped.
	Reason state.Reason
	// Err is the error that led to it.
	Err error
	// Missed is the number of events before this one that were dropped, because listeners had not kept up.
	Missed int
}

// publicEvent returns an event as listeners get it.
func publicEvent(e *engine.Event) Event {
	public := Event{
		Kind: e.Kind, At: e.At, Queue: e.Queue, Duration: e.Duration, Wait: e.Wait, Reason: e.Reason,
		Err: publicEnd(e.Err), Missed: e.Missed,
	}
	switch {
	case e.Claim != nil && e.Claim.Message().Path != "":
		public.Task = taskOf(e.Claim)
	case e.Message != nil:
		public.Task = sweptTask(e.Queue, e.Message)
	}
	return public
}
