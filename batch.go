package delayed

import (
	"context"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// claim is a task that this worker has claimed: from the reply of Redis until Redis has answered how it ended.
type claim struct {
	lane  *lane
	batch *batch
	token string
	raw   []byte // the message as Redis holds it
	msg   wire.Message
	fn    *function // nil: unknown here
	// suspect: a worker died with this task in hand not long ago.
	suspect bool
	// freed: the lock has ended, and the id is nobody's to keep.
	freed bool
	// unclear: Redis may have been told how it ended, but its answer is unknown. Owned by whoever tells it.
	unclear bool

	// started is when an executor took it. It is written before the executor shows it.
	started time.Time
	// stuck: its handler was given up, and its executor ends with it. Protected by executors.mu while it runs.
	stuck bool
	// context is that of the handler, once it runs and if it takes one.
	context taskContext

	reporter atomic.Pointer[reporter] // nil: it has not reported its progress
	canceled atomic.Bool              // its task was cancelled while it ran
	lost     atomic.Bool              // another worker may have the task; written with lane.mu held

	// protected by lane.mu
	cancel  context.CancelCauseFunc // while a handler that takes a context runs
	settled bool                    // Redis has answered how it ended
}

// batch is what one call of claim brought.
type batch struct {
	number uint64
	claims []*claim
	at     time.Time // when the reply came
	// version is that of the control hash when the tasks were claimed; 0: there was none.
	version int64

	// protected by lane.mu
	open   int // claims that are not settled
	unsent int // claims whose end Redis has not been told, or whose telling failed
}

// newBatch makes claims of messages.
func newBatch(l *lane, number uint64, messages [][]byte) *batch {
	n := len(messages)
	b := &batch{number: number, claims: make([]*claim, n), open: n, unsent: n}
	if n == 0 {
		return b
	}
	b.at = time.Now()
	list := make([]claim, n)
	for i, token := range tokensOf(number, n) {
		list[i].lane, list[i].batch, list[i].raw, list[i].token = l, b, messages[i], token
		b.claims[i] = &list[i]
	}
	return b
}

// tokensOf returns the tokens of a batch of n claims. All of them are parts of one string.
func tokensOf(number uint64, n int) []string {
	tokens, ends := make([]string, n), make([]int, n)
	text := make([]byte, 0, 16*n)
	for i := range n {
		text = strconv.AppendUint(text, number, 10)
		text = append(text, '-')
		text = strconv.AppendInt(text, int64(i+1), 10)
		ends[i] = len(text)
	}
	all, start := string(text), 0
	for i, end := range ends {
		tokens[i], start = all[start:end], end
	}
	return tokens
}

// parseToken splits a token into the number of its batch and its place in it, from 1.
func parseToken(token string) (number uint64, place int, ok bool) {
	head, tail, _ := strings.Cut(token, "-")
	number, err1 := strconv.ParseUint(head, 10, 64)
	place, err2 := strconv.Atoi(tail)
	return number, place, err1 == nil && err2 == nil
}
