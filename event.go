package delayed

import (
	"time"

	"github.com/godelayed/delayed/internal/engine"
)

// Event is something that has happened in a worker; Worker.Listen subscribes to them. docs/HOOKS.md says when each kind
// comes and which fields it fills in; all others are zero.
type Event struct {
	// Kind says what has happened.
	Kind EventKind
	// At is when it happened, by the clock of this process.
	At time.Time
	// Queue is the name of the queue that it is about, "" if it is about the worker as a whole.
	Queue string
	// Task is the task that it is about, nil if none.
	Task *Task
	// Duration is how long the handler ran.
	Duration time.Duration
	// Wait is how long the task waits until it is tried again, or with EventTaskStarted how long ago it was enqueued.
	Wait time.Duration
	// Reason says why, in one of the words that docs/HOOKS.md lists for the kind.
	Reason string
	// Err is the error that led to it.
	Err error
	// Missed is the number of events before this one that were dropped, because listeners had not kept up.
	Missed int
}

// EventKind is the kind of an Event. More may be added: ignore those that you do not know.
type EventKind uint8

// The kinds of events.
const (
	EventTaskStarted       EventKind = iota + 1 // its handler is about to be called
	EventTaskDone                               // its handler returned nil
	EventTaskFailed                             // its handler failed; what becomes of the task follows
	EventTaskPanicked                           // its handler panicked; EventTaskFailed follows
	EventTaskTimedOut                           // its handler ran for too long; EventTaskFailed follows
	EventTaskRetried                            // it is tried again later
	EventTaskSnoozed                            // it runs again later, as its handler asked
	EventTaskArchived                           // it was archived: it is not tried again
	EventTaskDropped                            // it was dropped, as its handler asked
	EventTaskParked                             // it waits for a worker that knows its function, or its fields
	EventTaskForwarded                          // it was handed on to the queue for Python tasks
	EventTaskExpired                            // its time was over before it could start
	EventTaskCanceled                           // it was canceled
	EventTaskLost                               // another worker may run it: this one was believed dead
	EventTaskReleased                           // it goes back to its queue, as the worker stops
	EventTaskStuck                              // its handler has run for very long or ignores that it was told to stop
	EventWorkerStarted                          // Run was called
	EventWorkerIdle                             // all its queues are empty and no handler runs
	EventWorkerPaused                           // it claims no tasks until it is resumed
	EventWorkerResumed                          // it claims tasks again
	EventWorkerQuiet                            // it claims no tasks any more
	EventWorkerStopping                         // it stops
	EventWorkerStopped                          // it has stopped, and all its handlers have returned
	EventHeartbeatLost                          // Redis no longer knows, or cannot be told, that the worker lives
	EventHeartbeatRegained                      // Redis knows again that the worker lives
	EventQueuePaused                            // no worker claims tasks of the queue until it is resumed
	EventQueueResumed                           // workers claim tasks of the queue again
	publicKinds                                 // one more than the last
)

// publicEvent returns an event as listeners get it.
func publicEvent(e *engine.Event) Event {
	public := Event{
		Kind: EventKind(e.Kind), At: e.At, Queue: e.Queue, Duration: e.Duration, Wait: e.Wait, Reason: e.Reason,
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

// eventNames are the names of the kinds.
var eventNames = [publicKinds]string{
	EventTaskStarted: "task started", EventTaskDone: "task done", EventTaskFailed: "task failed",
	EventTaskPanicked: "task panicked",
	EventTaskTimedOut: "task timed out", EventTaskRetried: "task retried", EventTaskSnoozed: "task snoozed",
	EventTaskArchived: "task archived",
	EventTaskDropped:  "task dropped", EventTaskParked: "task parked", EventTaskForwarded: "task forwarded",
	EventTaskExpired:  "task expired",
	EventTaskCanceled: "task canceled", EventTaskLost: "task lost", EventTaskReleased: "task released",
	EventTaskStuck:     "task stuck",
	EventWorkerStarted: "worker started", EventWorkerIdle: "worker idle", EventWorkerPaused: "worker paused",
	EventWorkerResumed: "worker resumed",
	EventWorkerQuiet:   "worker quiet", EventWorkerStopping: "worker stopping", EventWorkerStopped: "worker stopped",
	EventHeartbeatLost: "heartbeat lost", EventHeartbeatRegained: "heartbeat regained",
	EventQueuePaused: "queue paused", EventQueueResumed: "queue resumed",
}

// String returns the name of the kind, such as "task started".
func (k EventKind) String() string {
	if k > 0 && k < publicKinds {
		return eventNames[k]
	}
	return "unknown event"
}
