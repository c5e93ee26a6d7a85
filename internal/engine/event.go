package engine

import (
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/wire"
)

// Event is something that has happened in a worker.
type Event struct {
	Kind  event.Kind
	At    time.Time // by the clock of this process
	Queue string    // "" if it is about the worker as a whole

	// Claim is that of the task that it is about. For a task that the sweeper has archived there is only its message.
	Claim   *Claim
	Message *wire.Message

	Duration time.Duration // how long the handler ran
	Wait     time.Duration // until the task is tried again, or with event.TaskStarted since it was enqueued
	Reason   string
	Err      error
	Missed   int // events before this one that were dropped
}
