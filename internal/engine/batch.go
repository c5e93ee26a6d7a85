package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// batch is what one call of claim brought.
type batch struct {
	number uint64
	claims []*Claim
	at     time.Time // when the reply came
	// version is that of the control hash when the tasks were claimed; 0: there was none.
	version int64
	// suspects: the tasks come from the queue's suspects.
	suspects bool
	// sizes are those of messages that are too large to be read; their claims have no raw.
	sizes map[*Claim]int

	// protected by lane.mu
	open   int // claims that are not settled
	unsent int // claims whose end Redis has not been told, or whose telling failed
}

// newBatch makes claims of messages, as Redis has sent them: each is a []byte.
func newBatch(l *lane, number uint64, messages []any) *batch {
	n := len(messages)
	b := &batch{number: number, claims: make([]*Claim, n), open: n, unsent: n}
	if n == 0 {
		return b
	}
	b.at = time.Now()
	list := make([]Claim, n)
	i := 0
	for token := range redisstore.TokensOf(number, n) {
		c := &list[i]
		c.lane, c.batch, c.token = l, b, token
		if size, large := messages[i].(int64); large {
			if b.sizes == nil {
				b.sizes = map[*Claim]int{}
			}
			b.sizes[c] = int(size)
		} else {
			c.raw, _ = messages[i].([]byte)
		}
		b.claims[i] = c
		i++
	}
	return b
}
