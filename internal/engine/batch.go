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
	Lane  *Lane
	Batch *batch
	Token string
	Raw   []byte // the message as Redis holds it
	Msg   wire.Message
	Fn    *function.Function // nil: unknown here

	// started is when an executor took it. It is written before the executor shows it.
	started time.Time
	// context is that of the handler, once it runs and if it takes one.
	context  context.Context
	Cancel   context.CancelCauseFunc  // while a handler that takes a context runs; protected by Lane.Mu
	reporter atomic.Pointer[Reporter] // nil: it has not reported its progress

	canceled atomic.Bool // its task was cancelled while it ran
	Lost     atomic.Bool // another worker may have the task; written with Lane.Mu held
	// Settled: Redis has answered how it ended. Protected by Lane.Mu.
	Settled bool
	// Suspicion is how often a worker has died lately that had this task in hand.
	Suspicion uint8
	// freed: the lock has ended, and the id is nobody's to keep.
	freed bool
	// Unclear: Redis may have been told how it ended, but its answer is unknown. Owned by whoever tells it.
	Unclear bool
	// stuck: its handler was given up, and its executor ends with it. Protected by Executors.Mu while it runs.
	stuck bool
}

// batch is what one call of claim brought.
type batch struct {
	Number uint64
	Claims []*Claim
	At     time.Time // when the reply came
	// version is that of the control hash when the tasks were claimed; 0: there was none.
	version int64
	// suspects: the tasks come from the queue's suspects.
	suspects bool
	// sizes are those of messages that are too large to be read; their claims have no raw.
	sizes map[*Claim]int

	// protected by Lane.Mu
	Open   int // claims that are not settled
	Unsent int // claims whose end Redis has not been told, or whose telling failed
}

// NewBatch makes claims of messages, as Redis has sent them: each is a []byte.
func NewBatch(l *Lane, number uint64, messages []any) *batch {
	n := len(messages)
	b := &batch{Number: number, Claims: make([]*Claim, n), Open: n, Unsent: n}
	if n == 0 {
		return b
	}
	b.At = time.Now()
	list := make([]Claim, n)
	i := 0
	for token := range redisstore.TokensOf(number, n) {
		c := &list[i]
		c.Lane, c.Batch, c.Token = l, b, token
		if size, large := messages[i].(int64); large {
			if b.sizes == nil {
				b.sizes = map[*Claim]int{}
			}
			b.sizes[c] = int(size)
		} else {
			c.Raw, _ = messages[i].([]byte)
		}
		b.Claims[i] = c
		i++
	}
	return b
}

// Queue returns the name of the queue that the task was claimed from.
func (c *Claim) Queue() string { return c.Lane.Store.Name }

// Message returns the task's message.
func (c *Claim) Message() *wire.Message { return &c.Msg }

// Function returns the function of the task, nil if it is unknown here.
func (c *Claim) Function() *function.Function { return c.Fn }

// MaxRetry returns how often the task may be retried.
func (c *Claim) MaxRetry() int { return c.Lane.owner.maxRetry(c) }

// large is the size of a message that is too large to be read, 0 if it was read.
func (c *Claim) large() int { return c.Batch.sizes[c] }

// Parse reads the message.
func (c *Claim) Parse() (wire.Message, error) {
	if size := c.large(); size > 0 {
		return wire.Message{}, redisstore.TooLarge(size)
	}
	return wire.Parse(c.Raw, wire.WorkerLimits)
}
