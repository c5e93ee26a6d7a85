package document

import (
	"strings"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/inspect"
)

// Event is something that has happened in a worker, or a number of events that were left out.
type Event struct {
	At       *time.Time `json:"at"` // by the clock of the worker's host
	Kind     string     `json:"kind"`
	Queue    string     `json:"queue"`
	Worker   string     `json:"worker"`
	ID       string     `json:"id,omitempty"`
	Function string     `json:"function,omitempty"` // path
	Attempt  int        `json:"attempt,omitempty"`  // 1 for the first
	Took     *float64   `json:"took_seconds,omitempty"`
	Wait     *float64   `json:"wait_seconds,omitempty"` // until it is tried again, or had to wait to start
	Reason   string     `json:"reason,omitempty"`
	Error    string     `json:"error,omitempty"` // the first 500 bytes
	// Missed is how many events of this worker and queue just before this one were too many to be published, or got
	// lost, whether they would have been shown or not. With kind "missed" the document has nothing else.
	Missed int `json:"missed"`
}

// KindMissed is the kind of a document about events that were left out before one that nobody wants to see.
const KindMissed = "missed"

// EventOf describes an event.
func EventOf(e *inspect.Event) Event {
	return Event{
		At: Stamp(e.At), Kind: e.Kind.String(), Queue: e.Queue, Worker: e.Worker, ID: e.ID, Function: e.Function,
		Attempt: e.Attempt, Reason: e.Reason, Error: e.Error, Missed: e.Missed, Took: Span(e.Took), Wait: Span(e.Wait),
	}
}

// MissedOf reports how many events were left out before one that nobody wants to see.
func MissedOf(e *inspect.Event) Event {
	return Event{At: Stamp(e.At), Kind: KindMissed, Queue: e.Queue, Worker: e.Worker, Missed: e.Missed}
}

// Span returns a duration as documents have it that may be unknown: nil for 0.
func Span(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	s := d.Seconds()
	return &s
}

// EventKinds returns the names of all kinds of events.
func EventKinds() (names []string) {
	for k := event.Kind(1); k.String() != event.Kind(0).String(); k++ {
		names = append(names, k.String())
	}
	return names
}

// KindMatches reports whether somebody who writes part means the kind with a name: "task failed" is meant by "failed",
// "task" and "task_failed".
func KindMatches(name, part string) bool {
	part = strings.ToLower(strings.NewReplacer("-", " ", "_", " ").Replace(strings.TrimSpace(part)))
	return part != "" && strings.Contains(name, strings.ReplaceAll(part, "cancelled", "canceled"))
}
