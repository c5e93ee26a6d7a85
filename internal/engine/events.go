package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// Event is something that has happened in a worker.
type Event struct {
	Kind  Kind
	At    time.Time // by the clock of this process
	Queue string    // "" if it is about the worker as a whole

	// Claim is that of the task that it is about. For a task that the sweeper has archived there is only its message.
	Claim   *Claim
	Message *wire.Message

	Duration time.Duration // how long the handler ran
	Wait     time.Duration // until the task is tried again, or with KindTaskStarted since it was enqueued
	Reason   string
	Err      error
	Missed   int // events before this one that were dropped
}

// Kind is the kind of an event.
type Kind uint8

// The kinds of events, in the order of those of the public package.
const (
	KindTaskStarted Kind = iota + 1
	KindTaskDone
	KindTaskFailed
	KindTaskPanicked
	KindTaskTimedOut
	KindTaskRetried
	KindTaskSnoozed
	KindTaskArchived
	KindTaskDropped
	KindTaskParked
	KindTaskForwarded
	KindTaskExpired
	KindTaskCanceled
	KindTaskLost
	KindTaskReleased
	KindTaskStuck
	KindWorkerStarted
	KindWorkerIdle
	KindWorkerPaused
	KindWorkerResumed
	KindWorkerQuiet
	KindWorkerStopping
	KindWorkerStopped
	KindHeartbeatLost
	KindHeartbeatRegained
	KindQueuePaused
	KindQueueResumed
)
