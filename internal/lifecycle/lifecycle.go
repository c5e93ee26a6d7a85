// Package lifecycle has the state machine of tasks, as tables: the states, the outcomes of claims and what each means,
// and all other changes of state. It also has what workers and sweepers must agree on: how long Redis keeps tasks. It
// knows neither Redis nor functions.
package lifecycle

import (
	"slices"

	"github.com/godelayed/delayed/event"
)

// State is where a task is. Package state has those that are public: pending and active tasks cannot be found by id.
type State string

// The states of a task.
const (
	StateNew         State = "new"         // it has not been enqueued yet
	StatePending     State = "pending"     // in its queue's list, or in that of the queue's suspects
	StateActive      State = "active"      // a worker has claimed it
	StateScheduled   State = "scheduled"   // it waits until it is due for the first time, or again after Snooze
	StateRetry       State = "retry"       // it waits until it is tried again
	StateParked      State = "parked"      // it waits for a worker that can run it
	StateArchived    State = "archived"    // it has failed for good
	StateAggregating State = "aggregating" // it waits in a group
	StateCompleted   State = "completed"   // it has succeeded, and Redis keeps its result or the task
	StateDropped     State = "dropped"     // its handler has dropped it, and Redis keeps that
	StateCanceled    State = "canceled"    // it was canceled, and Redis keeps that
	StateGone        State = "gone"        // Redis keeps nothing of it
)

// Outcome is how a claim ends.
type Outcome uint8

// The outcomes of claims.
const (
	OutcomeDone     Outcome = iota // succeeded, and only has to be acknowledged
	OutcomeComplete                // succeeded, and Redis keeps a result or frees a lock
	OutcomeDrop                    // its handler dropped it, and Redis keeps that or frees a lock
	OutcomeRetry                   // failed, and is tried again
	OutcomePostpone                // is tried again, but has not failed
	OutcomeArchive                 // failed for good
	OutcomeExpire                  // it was too late to start
	OutcomeReject                  // its message cannot be read
	OutcomeSnooze                  // runs again later, as its handler asked
	OutcomePark                    // this worker cannot run it
	OutcomeRelease                 // given back unchanged, to the front of the queue
	OutcomeDefer                   // given back unchanged, to the end of the queue's suspects
	OutcomeForward                 // forwarded to the queue for Python tasks
	OutcomeGather                  // was scheduled, and joins a group
	OutcomeCancel                  // its task was canceled
	Outcomes                       // the number of outcomes
)

// End says what an outcome means.
type End struct {
	Name     string // as delayedtest calls it
	To       State
	Script   string       // ends the claim
	Counters []string     // of the day; each such task raises them by one
	Events   []event.Kind // in this order; the last one says what becomes of the task
}

// Ends says what each outcome means.
var Ends = [Outcomes]End{
	OutcomeDone: {"done", StateGone, "ack", []string{"processed"}, []event.Kind{event.TaskDone}},
	OutcomeComplete: {
		"done", StateCompleted, "complete", []string{"processed"}, []event.Kind{event.TaskDone},
	},
	OutcomeDrop: {"done", StateDropped, "complete", []string{"processed"}, []event.Kind{event.TaskDropped}},
	OutcomeRetry: {
		"retry", StateRetry, "shelve",
		[]string{"processed", "failed", "retried"},
		[]event.Kind{event.TaskFailed, event.TaskRetried},
	},
	OutcomePostpone: {"retry", StateRetry, "shelve", []string{"retried"}, []event.Kind{event.TaskRetried}},
	OutcomeArchive: {
		"archived", StateArchived, "shelve",
		[]string{"processed", "failed", "archived"},
		[]event.Kind{event.TaskFailed, event.TaskArchived},
	},
	OutcomeExpire: {
		"archived", StateArchived, "shelve",
		[]string{"expired", "archived"},
		[]event.Kind{event.TaskExpired, event.TaskArchived},
	},
	OutcomeReject: {"archived", StateArchived, "shelve", []string{"archived"}, []event.Kind{event.TaskArchived}},
	OutcomeSnooze: {"snoozed", StateScheduled, "shelve", []string{"snoozed"}, []event.Kind{event.TaskSnoozed}},
	OutcomePark:   {"parked", StateParked, "shelve", []string{"parked"}, []event.Kind{event.TaskParked}},
	// Listeners get this event only if the handler was called.
	OutcomeRelease: {"released", StatePending, "release", nil, []event.Kind{event.TaskReleased}},
	OutcomeDefer:   {"deferred", StatePending, "release", nil, nil},
	OutcomeForward: {"forwarded", StatePending, "release", nil, []event.Kind{event.TaskForwarded}},
	OutcomeGather:  {"gathered", StateAggregating, "join", nil, nil},
	OutcomeCancel:  {"canceled", StateCanceled, "complete", []string{"canceled"}, []event.Kind{event.TaskCanceled}},
}

// Failed reports whether an outcome counts as a failure.
func (o Outcome) Failed() bool { return slices.Contains(Ends[o].Counters, "failed") }

// Move is a change of state other than the end of a living worker's claim.
type Move struct {
	From, To State
	Script   string
}

// Moves are all such changes, in the order of a task's life.
var Moves = []Move{
	{StateNew, StatePending, "enqueue"},        // Delay
	{StateNew, StatePending, "enlist"},         // Delay with an id, a lock or Front
	{StateNew, StateScheduled, "schedule"},     // In or At
	{StateNew, StateScheduled, "enlist"},       // In or At with an id or a lock, Debounce
	{StateNew, StateAggregating, "gather"},     // Gather
	{StateNew, StatePending, "tick"},           // a periodic entry is due
	{StateScheduled, StatePending, "move"},     // it is due
	{StateRetry, StatePending, "move"},         // it is due
	{StateActive, StatePending, "shelve"},      // it is retried or scheduled at once
	{StateAggregating, StatePending, "fire"},   // its group is due; one task replaces all
	{StatePending, StateActive, "claim"},       // a worker has room
	{StateParked, StateActive, "unpark"},       // a worker can run it
	{StateActive, StatePending, "sweep"},       // its worker has died
	{StateActive, StateArchived, "sweep"},      // its workers have died of it too often
	{StateScheduled, StateArchived, "condemn"}, // it is due, and too large
	{StateRetry, StateArchived, "condemn"},     // it is due, and too large
	{StateParked, StateArchived, "condemn"},    // it was parked for too long
	{StateArchived, StatePending, "rerun"},     // RunAgain
	{StateScheduled, StatePending, "rerun"},    // run by hand
	{StateRetry, StatePending, "rerun"},        // run by hand
	{StateParked, StatePending, "rerun"},       // run by hand
	{StatePending, StateArchived, "withdraw"},  // archived by hand
	{StatePending, StateScheduled, "withdraw"}, // rescheduled by hand
	{StatePending, StateGone, "withdraw"},      // deleted by hand
	{StateScheduled, StateArchived, "refile"},  // archived by hand
	{StateRetry, StateArchived, "refile"},      // archived by hand
	{StateParked, StateArchived, "refile"},     // archived by hand
	{StateScheduled, StateCanceled, "cancel"},  // Cancel
	{StateRetry, StateCanceled, "cancel"},      // Cancel
	{StateParked, StateCanceled, "cancel"},     // Cancel
	{StateScheduled, StateGone, "enlist"},      // another call replaces it, by Debounce or OnConflict
	{StateArchived, StateGone, "delete"},       // Delete
	{StateArchived, StateGone, "trim"},         // it was kept for long enough, or there are too many
	{StateCompleted, StateGone, "delete"},      // Delete
	{StateCompleted, StateGone, "expire"},      // it was kept for long enough
	{StateDropped, StateGone, "expire"},        // it was kept for long enough
	{StateCanceled, StateGone, "expire"},       // it was kept for long enough
}
