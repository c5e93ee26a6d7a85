package page

import (
	"fmt"
	"slices"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/state"
	"github.com/godelayed/delayed/web/internal/format"
)

// Happening is something that has happened to a task, or will.
type Happening struct {
	At     time.Time
	What   string
	Note   string
	Kind   string // a class: "good", "warn", "bad-state" or ""
	Worker string
	Error  string
	Stack  string
	Future bool
}

// reasons are words for Task.Reason.
var reasons = map[state.Reason]string{
	state.ReasonFailed:          "no retries are left, or its handler gave it up",
	state.ReasonArguments:       "its arguments do not fit the function",
	state.ReasonExpired:         "it was too late to start it",
	state.ReasonUndecodable:     "its bytes are not a message",
	state.ReasonTooLarge:        "its message is larger than workers read",
	state.ReasonDeaths:          "its worker died too often",
	state.ReasonByHand:          "by hand",
	state.ReasonMoving:          "on the way to another queue",
	state.ReasonParkedTooLong:   "no worker came that can run it",
	state.ReasonUnknownFunction: "no worker knows its function",
	state.ReasonUnknownFields:   "no worker knows all fields of its arguments",
}

// reasonOf returns the words for a reason, or the reason.
func reasonOf(reason state.Reason) string {
	if words, ok := reasons[reason]; ok {
		return words
	}
	return string(reason)
}

// Timeline returns what is known to have happened to a task and what will, in the order of time. Clocks differ, but a
// task is enqueued before anything else happens to it.
func Timeline(t *inspect.Task, now time.Time) []Happening {
	all := beginning(t)
	all = append(all, stage(t)...)
	all = slices.DeleteFunc(all, func(h Happening) bool { return h.At.IsZero() })
	first := 0
	if !t.EnqueuedAt.IsZero() {
		first = 1
	}
	slices.SortStableFunc(all[first:], func(a, b Happening) int { return a.At.Compare(b.At) })
	for i := range all {
		all[i].Future = all[i].At.After(now)
	}
	return all
}

// beginning is what happened before the task came to where it is.
func beginning(t *inspect.Task) []Happening {
	all := []Happening{{At: t.EnqueuedAt, What: "Enqueued"}}
	known := func(at time.Time) bool {
		return slices.ContainsFunc(t.Failures, func(f inspect.FailedAttempt) bool {
			return f.At.Sub(at).Abs() < time.Millisecond
		})
	}
	if !t.FirstFailed.IsZero() && !known(t.FirstFailed) && !t.FirstFailed.Equal(t.At) {
		all = append(all, Happening{At: t.FirstFailed, What: "Failed for the first time", Kind: "bad-state"})
	}
	for _, f := range t.Failures {
		all = append(all, Happening{
			At: f.At, What: fmt.Sprintf("Attempt %d failed", f.Attempt), Kind: "bad-state", Worker: f.Worker,
			Error: f.Error, Stack: f.Stack,
		})
	}
	failed := t.State == state.Retry || t.State == state.Archived && t.Reason == state.ReasonFailed
	if failed && !known(t.At) {
		all = append(all, Happening{
			At: t.At, What: "Failed", Kind: "bad-state", Worker: t.Worker, Error: t.Error, Stack: t.Stack,
		})
	}
	return all
}

// stage is what brought the task where it is, and what comes next.
func stage(t *inspect.Task) []Happening {
	var all []Happening
	switch t.State {
	case state.Active:
		all = []Happening{
			{At: t.Claimed, What: "Claimed", Worker: t.Worker, Kind: "good"},
			{At: t.Started, What: fmt.Sprintf("Attempt %d started", t.Attempt), Kind: "good"},
			{At: t.At, What: "Reported its progress", Note: t.Note},
		}
	case state.Scheduled:
		if t.Reason != "" {
			all = append(all, Happening{At: t.At, What: "Put off", Note: reasonOf(t.Reason), Worker: t.Worker})
		}
		all = append(all, Happening{At: t.Due, What: "Due"})
	case state.Retry:
		all = append(all, Happening{At: t.Due, What: fmt.Sprintf("Attempt %d is due", t.Attempt), Kind: "warn"})
	case state.Parked:
		all = []Happening{
			{At: t.At, What: "Parked", Note: reasonOf(t.Reason), Kind: "warn", Worker: t.Worker},
			{At: t.Due, What: "Archived, unless a worker comes that can run it", Kind: "bad-state"},
		}
	case state.Aggregating:
		all = []Happening{{At: t.Due, What: "Its group is combined", Note: t.Options.Group}}
	case state.Archived:
		all = []Happening{
			{At: t.At, What: "Archived", Note: reasonOf(t.Reason), Kind: "bad-state", Worker: t.Worker},
			{At: t.Due, What: "Deleted, or earlier if the archive is full"},
		}
	case state.Completed, state.Dropped, state.Canceled:
		kind := "good"
		if t.State != state.Completed {
			kind = "warn"
		}
		ended := Happening{At: t.At, What: map[state.Task]string{
			state.Completed: "Completed", state.Dropped: "Dropped by its handler", state.Canceled: "Canceled",
		}[t.State], Kind: kind, Worker: t.Worker}
		if !t.Began.IsZero() {
			ended.Note = "after " + format.Duration(t.At.Sub(t.Began))
		}
		all = []Happening{
			{At: t.Began, What: fmt.Sprintf("Attempt %d started", max(t.Attempt, 1)), Worker: t.Worker},
			ended,
			{At: t.Due, What: "Kept until then"},
		}
	default:
	}
	if t.State != state.Completed && t.State != state.Archived {
		all = append(all,
			Happening{At: t.Options.Expiry, What: "Too late to start", Kind: "warn"},
			Happening{At: t.Options.RetryUntil, What: "Not tried again from then on", Kind: "warn"},
			Happening{At: t.Options.Deadline, What: "Deadline", Kind: "warn"},
		)
	}
	return all
}
