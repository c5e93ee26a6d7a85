package delayed

import (
	"fmt"
	"time"
)

// State says where a task is.
type State uint8

const (
	// StateUnknown is that of a task which is pending or active, of one that is over and of which nothing is kept, and
	// of an id that never was one: pending and active tasks are not indexed by id, because that would cost every task
	// something.
	StateUnknown State = iota
	// StateScheduled is that of a task which waits for the time that In or At said.
	StateScheduled
	// StateRetry is that of a task which has failed and waits to be tried again.
	StateRetry
	// StateParked is that of a task which waits for a worker that knows its function, and all fields of its arguments.
	StateParked
	// StateArchived is that of a task which has failed for good.
	StateArchived
	// StateActive is that of a task which has reported its progress and has not ended.
	StateActive
	// StateCompleted is that of a task which has succeeded, as long as KeepResult or Retention says.
	StateCompleted
	// StateDropped is that of a task whose handler has returned Drop, as long as KeepResult or Retention says.
	StateDropped
	// StateAggregating is that of a task which waits in a Group. To find that out, the groups of the queue are read one
	// after the other. When the one call is made, its id is that of the first task, and of the others nothing is known
	// any more.
	StateAggregating
	// StateCanceled is that of a task which was cancelled, as long as KeepResult or Retention says.
	StateCanceled
)

var stateNames = [...]string{
	"unknown", "scheduled", "retry", "parked", "archived", "active", "completed", "dropped",
	"aggregating", "canceled",
}

// String returns the state as it is written in logs, such as "archived".
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", s)
}

// TaskInfo is what is known of a task that waits, is archived, is completed or has reported its progress. Fields of
// which nothing is known are zero. Times are in milliseconds, by Redis's clock, except EnqueuedAt.
type TaskInfo struct {
	ID       string
	State    State
	Function string // its path
	// Due is when a scheduled or retrying task is due, when a parked one is archived, when an archived or completed one
	// is deleted.
	Due         time.Time
	EnqueuedAt  time.Time // by the producer's clock
	Began       time.Time // the successful run of a completed task
	At          time.Time // when it failed, was parked, was completed or reported its progress
	FirstFailed time.Time // zero if it has not failed
	// why it is where it is: failed, snoozed, arguments, expired, undecodable, too large, unknown function, unknown
	// fields, deaths, parked too long, completed, …
	Reason      string
	Error       string // the text of its last error, up to 4 KiB
	Stack       string // of its last panic, up to 4 KiB
	Attempts    int    // runs that failed or succeeded
	Deaths      int    // how often a worker died that had it in hand
	Worker      string // id of the worker that had it last
	Done, Total int64  // what it has reported last by Progress
	Note        string // likewise
}
