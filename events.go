package delayed

import (
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// event is something that has happened in a worker.
type event struct {
	Kind  eventKind
	At    time.Time // by the clock of this process
	Queue string    // "" if it is about the worker as a whole

	// claim is that of the task that it is about. For a task that the sweeper has archived there is only its message.
	claim   *claim
	message *wire.Message

	Duration time.Duration // how long the handler ran
	Wait     time.Duration // until the task is tried again, or with kindTaskStarted since it was enqueued
	Reason   string
	Err      error
	Missed   int // events before this one that were dropped
}

// eventKind is the kind of an event.
type eventKind uint8

// The kinds of events, in the order of those of the public package.
const (
	kindTaskStarted eventKind = iota + 1
	kindTaskDone
	kindTaskFailed
	kindTaskPanicked
	kindTaskTimedOut
	kindTaskRetried
	kindTaskSnoozed
	kindTaskArchived
	kindTaskDropped
	kindTaskParked
	kindTaskForwarded
	kindTaskExpired
	kindTaskCanceled
	kindTaskLost
	kindTaskReleased
	kindTaskStuck
	kindWorkerStarted
	kindWorkerIdle
	kindWorkerPaused
	kindWorkerResumed
	kindWorkerQuiet
	kindWorkerStopping
	kindWorkerStopped
	kindHeartbeatLost
	kindHeartbeatRegained
	kindQueuePaused
	kindQueueResumed
	eventKinds // one more than the last
)
