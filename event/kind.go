// Package event names what happens in a worker: the kinds of the events that delayed.Worker.OnEvent reports.
package event

// Kind is the kind of a delayed.Event. More may be added: ignore those that you do not know.
type Kind uint8

// The kinds of events.
const (
	TaskStarted       Kind = iota + 1 // its handler is about to be called
	TaskDone                          // its handler returned nil
	TaskFailed                        // its handler failed; what becomes of the task follows
	TaskPanicked                      // its handler panicked; TaskFailed follows
	TaskTimedOut                      // its handler ran for too long; TaskFailed follows
	TaskRetried                       // it is tried again later
	TaskSnoozed                       // it runs again later, as its handler asked
	TaskArchived                      // it was archived: it is not tried again
	TaskDropped                       // it was dropped, as its handler asked
	TaskParked                        // it waits for a worker that knows its function, or its fields
	TaskForwarded                     // it was handed on to the queue for Python tasks
	TaskExpired                       // its time was over before it could start
	TaskCanceled                      // it was canceled
	TaskLost                          // another worker may run it: this one was believed dead
	TaskReleased                      // it goes back to its queue, as the worker stops
	TaskStuck                         // its handler has run for very long or ignores that it must stop
	WorkerStarted                     // Run was called
	WorkerIdle                        // all its queues are empty and no handler runs
	WorkerPaused                      // it claims no tasks until it is resumed
	WorkerResumed                     // it claims tasks again
	WorkerQuiet                       // it claims no tasks any more
	WorkerStopping                    // it stops
	WorkerStopped                     // it has stopped, and all its handlers have returned
	HeartbeatLost                     // Redis no longer knows, or cannot be reached to confirm, that the worker lives
	HeartbeatRegained                 // Redis knows again that the worker lives
	QueuePaused                       // no worker claims tasks of the queue until it is resumed
	QueueResumed                      // workers claim tasks of the queue again
	kinds                             // one more than the last
)

// kindNames are the names of the kinds.
var kindNames = [kinds]string{
	TaskStarted: "task started", TaskDone: "task done", TaskFailed: "task failed",
	TaskPanicked: "task panicked",
	TaskTimedOut: "task timed out", TaskRetried: "task retried", TaskSnoozed: "task snoozed",
	TaskArchived: "task archived",
	TaskDropped:  "task dropped", TaskParked: "task parked", TaskForwarded: "task forwarded",
	TaskExpired:  "task expired",
	TaskCanceled: "task canceled", TaskLost: "task lost", TaskReleased: "task released",
	TaskStuck:     "task stuck",
	WorkerStarted: "worker started", WorkerIdle: "worker idle", WorkerPaused: "worker paused",
	WorkerResumed: "worker resumed",
	WorkerQuiet:   "worker quiet", WorkerStopping: "worker stopping", WorkerStopped: "worker stopped",
	HeartbeatLost: "heartbeat lost", HeartbeatRegained: "heartbeat regained",
	QueuePaused: "queue paused", QueueResumed: "queue resumed",
}

// String returns the name of the kind, such as "task started".
func (k Kind) String() string {
	if k > 0 && k < kinds {
		return kindNames[k]
	}
	return "unknown event"
}
