package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// batch is the reply of one claim call.
type batch struct {
	number uint64
	claims []*Claim
	at     time.Time // when the reply arrived
	// version is the version of the control hash when the tasks were claimed; 0: the hash did not exist.
	version int64
	// suspects: the tasks were claimed from the list of suspects.
	suspects bool
	// sizes has the sizes of messages that are too large to be read; raw of their claims is nil.
	sizes map[*Claim]int

	// protected by lane.mu
	open   int // claims that are not settled
	unsent int // claims whose end was not sent to Redis, or whose call has failed
}

// newBatch makes claims of the messages in a reply: a []byte, or an int64, the size of one that is too large.
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
