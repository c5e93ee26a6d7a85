package engine

import (
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Event is something that has happened in a worker.
type Event struct {
	Kind  event.Kind
	At    time.Time // by the clock of this process
	Queue string    // "" if the event is about the worker as a whole

	// Claim is the task that the event is about. If the sweeper has archived it, there is only Message.
	Claim   *Claim
	Message *wire.Message

	Duration time.Duration // how long the handler ran
	Wait     time.Duration // until the task is tried again; with event.TaskStarted, since it was enqueued
	Reason   state.Reason
	Err      error
	Missed   int // events that were dropped before this one
}
