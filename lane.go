package delayed

import (
	"context"
	"strconv"
	"strings"
	"sync"
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

	// protected by lane.mu
	cancel  context.CancelCauseFunc // while the handler runs
	lost    bool                    // another worker may have the task
	settled bool                    // Redis has answered how it ended
}

// batch is what one call of claim brought.
type batch struct {
	number uint64
	claims []*claim
	open   int // claims that are not settled; protected by lane.mu
	ending int // scratch space of finished; protected by lane.mu
}

// lane is one queue as one worker sees it: its claims and its heartbeat there.
type lane struct {
	store  *store
	worker string // id
	legacy bool

	mu      sync.Mutex
	batches map[uint64]*batch // claimed and not settled
	known   int               // claims in batches that are not settled
	next    uint64            // number of the latest batch; moves on with every attempt
	calling bool              // a claim call is under way
	unclear time.Time         // when the reply of a claim was last lost or an error

	// owned by the fetcher
	left    int       // pending after the last claim
	refused int       // suspects given back to the end of the queue, since something else came
	rest    time.Time // nothing but suspects was found: no claims before

	beat func() // asks for a heartbeat of this queue now

	// confirmed is when the last heartbeat that Redis confirmed was sent, by monotonic and by wall clock; nil: not registered.
	confirmed atomic.Pointer[time.Time]
	skew      atomic.Int64 // Redis's clock less ours, ns, as the heartbeat finds it
}

// now returns the time by Redis's clock.
func (l *lane) now() time.Time { return time.Now().Add(time.Duration(l.skew.Load())) }

func newLane(s *store, worker string, legacy bool) *lane {
	return &lane{store: s, worker: worker, legacy: legacy, batches: map[uint64]*batch{}}
}

// fresh says whether Redis surely has not let the heartbeat expire: the last confirmed one is younger than life, less a margin.
// Both clocks must agree, because the monotonic one stands still while a virtual machine is suspended.
func (l *lane) fresh(life time.Duration) bool {
	confirmed := l.confirmed.Load()
	if confirmed == nil {
		return false
	}
	now := time.Now()
	limit := life - life/5
	return now.Sub(*confirmed) < limit && now.Round(0).Sub(confirmed.Round(0)) < limit
}

// claim takes up to most tasks. Whatever becomes of the call, its batch number is never used again.
func (l *lane) claim(ctx context.Context, most, held int, mend bool) (claims []*claim, left int, err error) {
	l.mu.Lock()
	l.next++
	number := l.next
	l.calling = true
	l.mu.Unlock()
	messages, left, err := l.store.claim(ctx, claimCall{
		worker: l.worker, batch: number, most: most, held: held, legacy: l.legacy, mend: mend,
	})
	b := &batch{number: number, open: len(messages)}
	if len(messages) > 0 {
		list := make([]claim, len(messages))
		b.claims = make([]*claim, len(messages))
		prefix := strconv.FormatUint(number, 10) + "-"
		for i, message := range messages {
			list[i] = claim{lane: l, batch: b, raw: message, token: prefix + strconv.Itoa(i+1)}
			b.claims[i] = &list[i]
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calling = false
	if err != nil {
		if mayHaveRun(err) {
			l.unclear = time.Now()
		}
		return nil, 0, err
	}
	if b.open > 0 {
		l.batches[number] = b
		l.known += b.open
	}
	l.left = left
	return b.claims, left, nil
}

// settle notes that Redis has answered how the claim ended, or that it is lost.
func (l *lane) settle(c *claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settleLocked(c)
}

func (l *lane) settleLocked(c *claim) {
	if c.settled {
		return
	}
	c.settled = true
	l.known--
	c.batch.open--
	if c.batch.open == 0 {
		delete(l.batches, c.batch.number)
	}
}

// finished returns the batches whose last open claims are all among endings.
func (l *lane) finished(endings []ending) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var numbers []uint64
	for i := range endings {
		b := endings[i].claim.batch
		b.ending++
		if b.ending == b.open {
			numbers = append(numbers, b.number)
		}
	}
	for i := range endings {
		endings[i].claim.batch.ending = 0
	}
	return numbers
}

// open returns all claims that are not settled.
func (l *lane) open() []*claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	claims := make([]*claim, 0, l.known)
	for _, b := range l.batches {
		for _, c := range b.claims {
			if !c.settled {
				claims = append(claims, c)
			}
		}
	}
	return claims
}

// count returns the number of claims that are not settled, whether a claim call is under way, and whether a reply was lost lately.
func (l *lane) count() (known int, calling, unclear bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.known, l.calling, !l.unclear.IsZero() && time.Since(l.unclear) < 10*time.Minute
}

// lose marks a claim as lost and cancels its handler. It answers whether that was news.
func (l *lane) lose(c *claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.lost || c.settled {
		return false
	}
	c.lost = true
	if c.cancel != nil {
		c.cancel(ErrLost)
	}
	return true
}

// isLost says whether a claim was lost.
func (l *lane) isLost(c *claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return c.lost
}

// begin notes that the handler of a claim starts; false means that the claim is lost already.
func (l *lane) begin(c *claim, cancel context.CancelCauseFunc) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.lost || c.settled {
		return false
	}
	c.cancel = cancel
	return true
}

// end notes that the handler has returned, and answers whether the claim was lost meanwhile.
func (l *lane) end(c *claim) (lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c.cancel = nil
	return c.lost
}

// newest returns the number of the latest batch whose claim call is over, with or without a reply.
func (l *lane) newest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calling {
		return l.next - 1
	}
	return l.next
}

// strangers returns those of the tokens that Redis holds for this worker and that this process does not know: the replies of their
// claims were lost. until is what newest returned before the tokens were read; later batches are not judged.
func (l *lane) strangers(tokens []string, until uint64) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var unknown []string
	for _, token := range tokens {
		if number, _, ok := parseToken(token); ok && number <= until && l.find(token) == nil {
			unknown = append(unknown, token)
		}
	}
	return unknown
}

// find returns the open claim with a token, or nil. l.mu is held.
func (l *lane) find(token string) *claim {
	number, i, ok := parseToken(token)
	b := l.batches[number]
	if !ok || b == nil || i < 1 || i > len(b.claims) || b.claims[i-1].settled {
		return nil
	}
	return b.claims[i-1]
}

// parseToken splits a token into the number of its batch and its place in it, from 1.
func parseToken(token string) (number uint64, place int, ok bool) {
	head, tail, _ := strings.Cut(token, "-")
	number, err1 := strconv.ParseUint(head, 10, 64)
	place, err2 := strconv.Atoi(tail)
	return number, place, err1 == nil && err2 == nil
}
