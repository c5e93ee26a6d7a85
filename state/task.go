// Package state names the states of tasks and of workers.
package state

import "fmt"

// Task is the state of a task.
type Task uint8

const (
	// Unknown means that the task is pending or active, it is over and nothing is kept of it, or there never was a task
	// with this id. Pending and active tasks are not indexed by id, because that would cost every task something.
	Unknown Task = iota
	// Scheduled means that the task waits for the time of In, At or Snooze.
	Scheduled
	// Retry means that the task waits to be tried again; in prose it is called retrying.
	Retry
	// Parked means that the task waits for a worker that knows its function, and all fields of its arguments.
	Parked
	// Archived means that the task does not run again by itself; a Reason is why.
	Archived
	// Active means that the task runs and has reported its progress.
	Active
	// Completed means that the task has succeeded, and KeepResult or Retention still keeps it.
	Completed
	// Dropped means that the task's handler has returned Drop, and KeepResult or Retention still keeps it.
	Dropped
	// Aggregating means that the call waits in a Group. To find that out, Ref.State reads the groups of the queue one
	// after the other. The combined call has the id of the first call; the others are Unknown then.
	Aggregating
	// Canceled means that the task was canceled, and KeepResult or Retention still keeps it.
	Canceled
	// Pending means that the task waits for a worker with room. Only package inspect reports it: see Unknown.
	Pending
)

var taskNames = [...]string{
	"unknown", "scheduled", "retry", "parked", "archived", "active", "completed", "dropped",
	"aggregating", "canceled", "pending",
}

// String returns the state as it is written in logs, such as "archived".
func (s Task) String() string {
	if int(s) < len(taskNames) {
		return taskNames[s]
	}
	return fmt.Sprintf("state.Task(%d)", s)
}
