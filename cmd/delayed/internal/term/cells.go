package term

import (
	"strconv"
	"time"

	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// StateStyle is the colour of tasks in a state.
func StateStyle(s state.Task) Style {
	switch s {
	case state.Archived:
		return Red
	case state.Retry, state.Parked:
		return Yellow
	case state.Active:
		return Green
	default:
		return Plain
	}
}

// DueName is what the due time of a task means in its state.
func DueName(s state.Task) string {
	switch s {
	case state.Archived, state.Completed, state.Dropped, state.Canceled:
		return "kept until"
	case state.Parked:
		return "archived"
	default:
		return "due"
	}
}

// Why is the reason for the state of a task, and its error; either may be empty.
func Why(reason state.Reason, err string) Cell {
	switch {
	case err != "" && reason != "" && reason != state.ReasonFailed:
		return C(string(reason)+": "+err, Red)
	case err != "":
		return C(err, Red)
	case reason != state.ReasonCompleted:
		return C(string(reason), Yellow)
	}
	return C("")
}

// The states whose tasks can be run now, archived, deleted, canceled, moved or edited, and rescheduled.
var (
	Runnable   = []state.Task{state.Scheduled, state.Retry, state.Parked, state.Archived}
	Archivable = []state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked}
	Deletable  = []state.Task{
		state.Pending, state.Scheduled, state.Retry, state.Parked, state.Aggregating, state.Archived, state.Completed,
	}
	Cancelable = []state.Task{
		state.Pending, state.Active, state.Scheduled, state.Retry, state.Parked, state.Aggregating,
	}
	Movable       = []state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived}
	Reschedulable = []state.Task{state.Pending, state.Scheduled, state.Retry}
)

// Seconds is a number of seconds as a duration.
func Seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// OptionTexts writes the options of a task as words, such as "timeout 1m00s".
func OptionTexts(o *document.Options) (texts []string) {
	add := func(name, value string) {
		if value != "" {
			texts = append(texts, name+" "+value)
		}
	}
	span := func(name string, seconds float64) {
		if seconds > 0 {
			add(name, Duration(Seconds(seconds)))
		}
	}
	moment := func(name string, t *time.Time) {
		if t != nil {
			add(name, t.Format(time.RFC3339))
		}
	}
	if o == nil {
		return nil
	}
	if o.MaxRetry != nil {
		add("max-retry", strconv.Itoa(*o.MaxRetry))
	}
	span("timeout", o.TimeoutSeconds)
	moment("deadline", o.Deadline)
	moment("expires", o.Expiry)
	moment("retry-until", o.RetryUntil)
	for _, s := range o.BackoffSeconds {
		span("backoff", s)
	}
	span("max-backoff", o.MaxBackoffSeconds)
	span("retention", o.RetentionSeconds)
	span("keep-result", o.KeepResultSeconds)
	add("lock", o.Lock)
	add("group", o.Group)
	return texts
}

// Condition is how a worker is, by the word of inspect.Worker.Condition.
func Condition(word string) Cell {
	switch word {
	case "dead":
		return C(word, Red)
	case "alive", "running":
		return C(word, Green)
	default:
		return C(word, Yellow)
	}
}

// Claims is how many tasks a worker has, and how many it may run at a time; 0 executors are unknown.
func Claims(claims, executors int) Cell {
	text := Number(claims)
	if executors > 0 {
		text += "/" + Number(executors)
	}
	if claims == 0 {
		return C(text, Dim)
	}
	return C(text, Green)
}
