// Package state names the states of tasks and of workers.
package state

import "fmt"

// Task says where a task is.
type Task uint8

const (
	// Unknown is that of a task which is pending or active, of one that is over and of which nothing is kept, and
	// of an id that never was one: pending and active tasks are not indexed by id, because that would cost every task
	// something.
	Unknown Task = iota
	// Scheduled is that of a task which waits for the time that In or At said.
	Scheduled
	// Retry is that of a task which has failed and waits to be tried again.
	Retry
	// Parked is that of a task which waits for a worker that knows its function, and all fields of its arguments.
	Parked
	// Archived is that of a task which has failed for good.
	Archived
	// Active is that of a task which has reported its progress and has not ended.
	Active
	// Completed is that of a task which has succeeded, as long as KeepResult or Retention says.
	Completed
	// Dropped is that of a task whose handler has returned Drop, as long as KeepResult or Retention says.
	Dropped
	// Aggregating is that of a task which waits in a Group. To find that out, the groups of the queue are read one
	// after the other. When the one call is made, its id is that of the first task, and of the others nothing is known
	// any more.
	Aggregating
	// Canceled is that of a task which was cancelled, as long as KeepResult or Retention says.
	Canceled
)

var taskNames = [...]string{
	"unknown", "scheduled", "retry", "parked", "archived", "active", "completed", "dropped",
	"aggregating", "canceled",
}

// String returns the state as it is written in logs, such as "archived".
func (s Task) String() string {
	if int(s) < len(taskNames) {
		return taskNames[s]
	}
	return fmt.Sprintf("state.Task(%d)", s)
}
