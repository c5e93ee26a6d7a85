package delayed

import "errors"

var (
	// ErrUnknown says that the connection broke after the request was sent: the task may or may not have been enqueued,
	// cancelled or whatever was asked for. Of a queue with QueueConfig.Wait it may also say that too few replicas have
	// confirmed the task, which is enqueued then. Enqueueing it again can run it twice. No question that changes
	// nothing, as Ref.State, fails with it.
	ErrUnknown = errors.New("delayed: unknown whether Redis carried out the request")
	// ErrFull says that Redis refuses writes because its memory or its disk is full. Nothing was enqueued.
	ErrFull = errors.New("delayed: Redis refuses writes")
	// ErrNoID says that a task cannot be asked for because its message carries no id.
	ErrNoID = errors.New("delayed: task has no id")
	// ErrClosed is returned by a second Run of a Worker, Sweeper or Scheduler and by everything that uses a Redis
	// handle after its Close, every Run included.
	ErrClosed = errors.New("delayed: closed")
)

// ErrDuplicate is wrapped by *DuplicateError.
var ErrDuplicate = errors.New("delayed: such a task is there already")
