package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Claim is a task that this worker has claimed: from the reply of Redis until Redis has answered how it ended. Hundreds
// are made at once, and the collector's work grows with their size: fields of one byte stand together.
type Claim struct {
	lane  *lane
	batch *batch
	token string
	raw   []byte // the message as Redis holds it
	msg   wire.Message
	fn    *function.Function // nil: unknown here

	// started is when an executor took it. It is written before the executor shows it.
	started time.Time
	// context is that of the handler, once it runs and if it takes one.
	context  context.Context
	cancel   context.CancelCauseFunc  // while a handler that takes a context runs; protected by lane.mu
	reporter atomic.Pointer[reporter] // nil: it has not reported its progress

	canceled atomic.Bool // its task was cancelled while it ran
	lost     atomic.Bool // another worker may have the task; written with lane.mu held
	// settled: Redis has answered how it ended. Protected by lane.mu.
	settled bool
	// suspicion is how often a worker has died lately that had this task in hand.
	suspicion uint8
	// lockFreed: the lock has ended, and the id is nobody's to keep.
	lockFreed bool
	// maybeEnded: Redis may have been told how it ended, but its answer is unknown. Owned by whoever tells it.
	maybeEnded bool
	// stuck: its handler was given up, and its executor ends with it. Protected by executors.mu while it runs.
	stuck bool
}

// Queue returns the name of the queue that the task was claimed from.
func (c *Claim) Queue() string { return c.lane.store.Name }

// Message returns the task's message.
func (c *Claim) Message() *wire.Message { return &c.msg }

// Function returns the function of the task, nil if it is unknown here.
func (c *Claim) Function() *function.Function { return c.fn }

// MaxRetry returns how often the task may be retried: the call decides, then the function, then the worker.
func (c *Claim) MaxRetry() int {
	switch {
	case c.msg.Meta.HasMaxRetry:
		return c.msg.Meta.MaxRetry
	case c.fn.Policy.MaxRetry != nil:
		return *c.fn.Policy.MaxRetry
	}
	return c.lane.maxRetry
}

// large is the size of a message that is too large to be read, 0 if it was read.
func (c *Claim) large() int { return c.batch.sizes[c] }

// parse reads the message.
func (c *Claim) parse() (wire.Message, error) {
	if size := c.large(); size > 0 {
		return wire.Message{}, redisstore.TooLarge(size)
	}
	return wire.Parse(c.raw, wire.WorkerLimits)
}

// needsComplete says whether a task that has succeeded leaves something behind, so that it is not only acknowledged.
func (c *Claim) needsComplete() bool {
	return c.msg.Meta.Extra.Keeps() || c.holdsLock() || c.reporter.Load() != nil || c.canceled.Load()
}

// holdsLock says whether the task may have something to give up when it ends.
func (c *Claim) holdsLock() bool {
	x := c.msg.Meta.Extra
	return x != nil && x.Lock != "" && !c.lockFreed
}
