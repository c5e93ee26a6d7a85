package lane

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Claim is a task that this worker has claimed. It exists from the reply of Redis until Redis has answered how the task
// ended. Hundreds are made at once and the garbage collector pays for their size: one-byte fields stand together.
type Claim struct {
	Lane  *Lane
	Batch *Batch
	Token string
	Raw   []byte // the message as Redis holds it
	Msg   wire.Message
	Fn    *function.Function // nil: not registered here

	// Started is when an executor took the task. It is written before the claim is stored in Executors.Slots.
	Started time.Time
	// context is that of the handler while it runs, if it takes one.
	context  context.Context
	Cancel   context.CancelCauseFunc  // set while a handler that takes a context runs; protected by Lane.Mu
	Reporter atomic.Pointer[reporter] // nil: the task has not reported progress

	Canceled atomic.Bool // the task was canceled while it ran
	Lost     atomic.Bool // another worker may have the task; written with Lane.Mu held
	// settled: Redis has answered how the claim ended, or the claim is lost. Protected by Lane.Mu.
	settled bool
	// Suspicion is how many worker deaths count against this task, as of the claim.
	Suspicion uint8
	// LockFreed: the task has freed its lock at its start, and its id is not reserved either.
	LockFreed bool
	// Ran: the handler was called and has returned, and the claim was not lost; outcome says how it ends. Both are
	// written by the executor that runs it.
	Ran     bool
	Outcome lifecycle.Outcome
	// MaybeEnded: a call that ends the claim got no answer, so it may have run. Only the caller of Redis uses it.
	MaybeEnded bool
	// Stuck: the handler does not return; its executor ends with it. Protected by Executors.Mu while it runs.
	Stuck bool
}

// Queue returns the name of the queue that the task was claimed from.
func (c *Claim) Queue() string { return c.Lane.Store.Name }

// Log returns log with the fields of the task.
func (c *Claim) Log(log loop.Journal) loop.Journal {
	return log.With("queue", c.Lane.Store.Name).With("function", c.Msg.Path).With("id", c.Msg.Meta.ID)
}

// Message returns the task's message.
func (c *Claim) Message() *wire.Message { return &c.Msg }

// Function returns the function of the task, nil if it is not registered here.
func (c *Claim) Function() *function.Function { return c.Fn }

// MaxRetry returns how often the task may be retried. The call's setting wins over the function's, and that over the
// worker's.
func (c *Claim) MaxRetry() int {
	switch {
	case c.Msg.Meta.HasMaxRetry:
		return c.Msg.Meta.MaxRetry
	case c.Fn.Policy.MaxRetry != nil:
		return *c.Fn.Policy.MaxRetry
	}
	return c.Lane.MaxRetry
}

// Large returns the size of a message that is too large to be read, 0 if the message was read.
func (c *Claim) Large() int { return c.Batch.sizes[c] }

// Parse parses the message.
func (c *Claim) Parse() (wire.Message, error) {
	if size := c.Large(); size > 0 {
		return wire.Message{}, redisstore.TooLarge(size)
	}
	return wire.Parse(c.Raw, wire.WorkerLimits)
}

// NeedsComplete reports whether a successful task must end by complete.lua, because it leaves something behind, and not
// by a mere acknowledgement.
func (c *Claim) NeedsComplete() bool {
	return c.Msg.Meta.Extra.Keeps() || c.Lock() != "" || c.Reporter.Load() != nil || c.Canceled.Load()
}

// Lock returns the lock of the task that must be freed when it ends, "" for none. The script that frees it also frees
// the task's id.
func (c *Claim) Lock() string {
	x := c.Msg.Meta.Extra
	if x == nil || c.LockFreed {
		return ""
	}
	return x.Lock
}

// Batch is the reply of one claim call.
type Batch struct {
	Number uint64
	Claims []*Claim
	At     time.Time // when the reply arrived
	// Version is the version of the control hash when the tasks were claimed; 0: the hash did not exist.
	Version int64
	// Suspects: the tasks were claimed from the list of suspects.
	Suspects bool
	// sizes has the sizes of messages that are too large to be read; raw of their claims is nil.
	sizes map[*Claim]int

	// protected by Lane.Mu
	open   int // claims that are not settled
	Unsent int // claims whose end was not sent to Redis, or whose call has failed
}

// NewBatch makes claims of the messages in a reply: a []byte, or an int64, the size of one that is too large.
func NewBatch(l *Lane, number uint64, messages []any) *Batch {
	n := len(messages)
	b := &Batch{Number: number, Claims: make([]*Claim, n), open: n, Unsent: n}
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

// Ending says how a claim ends. A finisher sends it to Redis.
type Ending struct {
	Claim   *Claim
	Outcome lifecycle.Outcome
	Wait    time.Duration // until the task is due or expires; 0: it is completed and nothing is kept
	ID      string        // under which the task is filed
	Message []byte        // the message as it is filed; nil: as it was claimed
	Info    []byte        // what is kept of the task
	Reason  state.Reason  // for listeners
	Certain bool          // the task counts as canceled, even if Redis does not know that it was
}

// GiveBack releases claims whose tasks have not started.
func GiveBack(claims []*Claim) {
	if len(claims) == 0 {
		return
	}
	byLane := map[*Lane][]*Claim{}
	for _, c := range claims {
		byLane[c.Lane] = append(byLane[c.Lane], c)
	}
	for l, its := range byLane {
		l.Finisher.Release(its)
	}
}

// When a worker dies, one of its claimed tasks may be the cause; most often none is. So a death only makes its tasks
// suspects, and a task is archived only for deaths that happened while it was its worker's only task. The more deaths a
// task has shared with others, the fewer such tasks a worker takes at once, until one runs alone. This finds one poison
// task among k after about log k deaths.
//
// A task with one death runs like any other. A task with more waits in the queue's list of suspects, a pending list
// where it does not delay other tasks.

const (
	// MinSuspectDeaths is the number of deaths from which a task waits in the list of suspects.
	MinSuspectDeaths = 2
	// MaxQuarantined is the number of deaths of workers up to which a child process counts as safe for a suspect.
	MaxQuarantined = 2
	// ShortestPatience and LongestPatience bound how long a worker claims nothing and waits for its other tasks to end,
	// so that a suspect can run alone. After each such wait in vain the next one is twice as long.
	ShortestPatience = 2 * time.Second
	// LongestPatience is the longest such wait.
	LongestPatience = time.Minute
	// SettlePause is the time between two checks whether Redis knows how the other tasks have ended.
	SettlePause = 5 * time.Millisecond
)

// SuspectsHeld returns how many tasks with that many deaths or more a worker takes at once: a quarter of its executors
// for two deaths, a sixteenth for three, and so on. If that is 1, the task runs alone.
func SuspectsHeld(executors, deaths int) int {
	for ; deaths >= MinSuspectDeaths && executors > 1; deaths-- {
		executors /= 4
	}
	return max(executors, 1)
}

// WorkerDeaths returns how many of a task's deaths were those of workers with other tasks.
func WorkerDeaths(c *Claim) int64 {
	m := &c.Msg.Meta
	if m.Extra == nil {
		return int64(m.Deaths)
	}
	return int64(m.Deaths) - m.Extra.AloneDeaths
}

// SuspicionOf returns how many deaths count against a task now, at most 255.
func SuspicionOf(c *Claim, now time.Time) uint8 {
	m := &c.Msg.Meta
	if m.Deaths == 0 || now.UnixMilli()-m.DiedAt >= lifecycle.DeathLife.Milliseconds() {
		return 0
	}
	return uint8(min(m.Deaths, 255)) //nolint:gosec // within these bounds
}
