package delayed

import (
	"time"

	"github.com/godelayed/delayed/state"
)

// TaskInfo is what is known of a task that waits, is archived, is completed or has reported its progress. Fields that
// are not known are zero. Times are in milliseconds, by Redis's clock, except EnqueuedAt.
type TaskInfo struct {
	ID       string
	State    state.Task
	Function string // its path
	// Due is when a scheduled or retrying task is due, when a parked one is archived, when an archived or completed one
	// is deleted.
	Due         time.Time
	EnqueuedAt  time.Time // by the producer's clock
	Began       time.Time // when the successful run of a completed task began
	At          time.Time // when it failed, was parked, was completed or reported its progress
	FirstFailed time.Time // zero if it has not failed
	// Reason says why the task is where it is: failed, not failed, snoozed, arguments, expired, undecodable, too large,
	// unknown function, unknown fields, python, "extended python on a queue for plain ones", deaths, parked too long,
	// by hand, moving, completed, dropped, canceled or active.
	Reason string
	Error  string // the text of its last error, up to 4 KiB
	Stack  string // of its last panic, up to 4 KiB
	// Attempts is Task.Attempt of the last run if the Reason is failed, not failed, snoozed, arguments, completed or
	// dropped, so that run counts whether it failed or not. It is the number of runs that failed and were followed by a
	// retry if the Reason is expired, canceled or active, and what it was before if the Reason is by hand or moving.
	// Otherwise it is 0.
	Attempts    int
	Deaths      int    // see Task.Deaths
	Worker      string // id of the worker that had it last
	Done, Total int64  // of its last report by Progress
	Note        string // of the same report
	// Task has the arguments, headers and options of the task. It can be enqueued, as another task. It is nil if the
	// message is not kept or cannot be read, and in a TaskInfo that was an argument: it does not travel.
	Task *Task `msgpack:"-"`
}
