package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// Claim is a task that this worker has claimed. It exists from the reply of Redis until Redis has answered how the task
// ended. Hundreds are made at once and the garbage collector pays for their size: one-byte fields stand together.
type Claim struct {
	lane  *lane
	batch *batch
	token string
	raw   []byte // the message as Redis holds it
	msg   wire.Message
	fn    *function.Function // nil: not registered here

	// started is when an executor took the task. It is written before the claim is stored in executors.slots.
	started time.Time
	// context is that of the handler while it runs, if it takes one.
	context  context.Context
	cancel   context.CancelCauseFunc  // set while a handler that takes a context runs; protected by lane.mu
	reporter atomic.Pointer[reporter] // nil: the task has not reported progress

	canceled atomic.Bool // the task was cancelled while it ran
	lost     atomic.Bool // another worker may have the task; written with lane.mu held
	// settled: Redis has answered how the claim ended, or the claim is lost. Protected by lane.mu.
	settled bool
	// suspicion is how many worker deaths count against this task, as of the claim.
	suspicion uint8
	// lockFreed: the task has freed its lock at its start, and its id is not reserved either.
	lockFreed bool
	// ran: the handler was called and has returned, and the claim was not lost; outcome says how it ends. Both are
	// written by the executor that runs it.
	ran     bool
	outcome lifecycle.Outcome
	// maybeEnded: a call that ends the claim got no answer, so it may have run. Only the caller of Redis uses it.
	maybeEnded bool
	// stuck: the handler does not return; its executor ends with it. Protected by executors.mu while it runs.
	stuck bool
}

// Queue returns the name of the queue that the task was claimed from.
func (c *Claim) Queue() string { return c.lane.store.Name }

// Message returns the task's message.
func (c *Claim) Message() *wire.Message { return &c.msg }

// Function returns the function of the task, nil if it is not registered here.
func (c *Claim) Function() *function.Function { return c.fn }

// MaxRetry returns how often the task may be retried. The call's setting wins over the function's, and that over the
// worker's.
func (c *Claim) MaxRetry() int {
	switch {
	case c.msg.Meta.HasMaxRetry:
		return c.msg.Meta.MaxRetry
	case c.fn.Policy.MaxRetry != nil:
		return *c.fn.Policy.MaxRetry
	}
	return c.lane.maxRetry
}

// large returns the size of a message that is too large to be read, 0 if the message was read.
func (c *Claim) large() int { return c.batch.sizes[c] }

// parse parses the message.
func (c *Claim) parse() (wire.Message, error) {
	if size := c.large(); size > 0 {
		return wire.Message{}, redisstore.TooLarge(size)
	}
	return wire.Parse(c.raw, wire.WorkerLimits)
}

// needsComplete reports whether a successful task must end by complete.lua, because it leaves something behind, and not
// by a mere acknowledgement.
func (c *Claim) needsComplete() bool {
	return c.msg.Meta.Extra.Keeps() || c.lock() != "" || c.reporter.Load() != nil || c.canceled.Load()
}

// lock returns the lock of the task that must be freed when it ends, "" for none. The script that frees it also frees
// the task's id.
func (c *Claim) lock() string {
	x := c.msg.Meta.Extra
	if x == nil || c.lockFreed {
		return ""
	}
	return x.Lock
}
