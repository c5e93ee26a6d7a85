package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// Lane is one queue as one worker sees it: its claims and its heartbeat there.
type Lane struct {
	Store    *redisstore.Store
	suspects *redisstore.Store // its pending list is that of the suspects
	worker   string            // id
	owner    *Worker
	legacy   bool
	Finisher *finisher

	// Done are claims that are done and that nobody has taken to acknowledge them; protected by Executors.Mu.
	Done []*Claim

	Mu      sync.Mutex
	Batches map[uint64]*batch // claimed and not settled
	Known   int               // claims in batches that are not settled
	revoked revocations       // cancelled tasks, as far as they are known
	Next    uint64            // number of the latest batch; moves on with every attempt
	calling []uint64          // batches whose claim call is under way
	Epoch   uint64            // moves on when a registration begins and when it is over: odd in between
	unclear time.Time         // when the reply of a claim was last lost or an error

	// owned by the fetcher
	left  int // pending after the last claim
	Rest  QueueRest
	Apart bool // it has suspects, as far as is known

	Beat func() // asks for a heartbeat of this queue now

	Parked parkedTasks // found for this worker

	Control laneControl

	anyRevoked atomic.Bool // revoked has ids

	// Confirmed is when the last heartbeat that Redis confirmed was sent, by monotonic and by wall clock; nil: not
	// registered.
	Confirmed atomic.Pointer[time.Time]
	// registered: Redis may know the worker.
	registered atomic.Bool
	// Pulse is the value that the heartbeat has in Redis since the last registration. Each registration has another
	// one, and it is stored after the claims that were lost before are marked.
	Pulse atomic.Pointer[string]
}

// now returns the time by Redis's clock.
func (l *Lane) now() time.Time { return l.Store.Now() }

func NewLane(s *redisstore.Store, worker string, legacy bool) *Lane {
	l := &Lane{Store: s, suspects: s.Suspects(), worker: worker, legacy: legacy, Batches: map[uint64]*batch{}}
	l.Control.Poke = make(chan struct{}, 1)
	l.Control.Version.Store(-1)
	return l
}

// Fresh says whether Redis surely has not let the heartbeat expire: the last confirmed one is younger than life, less a
// margin.
func (l *Lane) Fresh(life time.Duration) bool { return l.FreshAt(time.Now(), life) }

// FreshAt is fresh at a time that was read just now. Both clocks must agree, because the monotonic one stands still
// while a virtual machine is suspended.
func (l *Lane) FreshAt(now time.Time, life time.Duration) bool {
	confirmed := l.Confirmed.Load()
	if confirmed == nil {
		return false
	}
	limit := life - life/5
	return now.Sub(*confirmed) < limit && now.UnixNano()-confirmed.UnixNano() < int64(limit)
}

// Claim takes what call asks for, and acknowledges done in the same call. Whatever becomes of it, its batch number is
// never used again.
func (l *Lane) Claim(
	ctx context.Context, call redisstore.ClaimCall, done []*Claim,
) (claims []*Claim, left int, err error) {
	done, call.Ended = l.Ending(done)
	l.Mu.Lock()
	l.Next++
	number, epoch := l.Next, l.Epoch
	l.calling = append(l.calling, number)
	l.Mu.Unlock()
	call.Worker, call.Batch, call.Legacy = l.worker, number, l.legacy
	take := l.Store.Claim
	switch {
	case call.Parked != nil:
		take = l.Store.Unpark
	case call.Suspects:
		take = l.suspects.Claim
	}
	got, err := take(ctx, call)
	if err == nil || errors.Is(err, redisstore.ErrNoHeartbeat) || errors.Is(err, redisstore.ErrBatchUsed) ||
		errors.Is(err, redisstore.ErrQueuePaused) {
		l.Finisher.acknowledged(done, got.Stood)
	} else {
		l.Finisher.unanswered(done, err)
	}
	b := NewBatch(l, number, got.Messages)
	b.version, b.suspects = got.Version, call.Suspects
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.calling = slices.DeleteFunc(l.calling, func(n uint64) bool { return n == number })
	if err != nil {
		if redisstore.MayHaveRun(err) {
			l.unclear = time.Now()
		}
		return nil, 0, err
	}
	l.versionIs(got.Version)
	if epoch%2 != 0 || epoch != l.Epoch {
		// The heartbeat had expired, and nobody knows whether these claims are older than the registration: a sweeper
		// may have given them to others. The next heartbeat gives back those that stand.
		l.unclear = time.Now()
		l.Beat()
		return nil, got.Left, nil
	}
	if b.Open > 0 {
		l.Batches[number] = b
		l.Known += b.Open
	}
	return b.Claims, got.Left, nil
}

// Ending prepares claims that are done for the call that ends them. It leaves out those that are lost, which it
// settles.
func (l *Lane) Ending(done []*Claim) ([]*Claim, redisstore.Ended) {
	var e redisstore.Ended
	if len(done) == 0 {
		return nil, e
	}
	// The value is read before the marks: under this value, whatever is not marked stands.
	if pulse := l.Pulse.Load(); pulse != nil {
		e.Pulse = *pulse
	}
	e.Tokens = make([]string, 0, len(done))
	l.Mu.Lock()
	defer l.Mu.Unlock()
	kept := done[:0]
	for _, c := range done {
		if c.Lost.Load() {
			l.settleLocked(c)
			l.owner.tell(c, Event{Kind: KindTaskLost})
			continue
		}
		kept = append(kept, c)
		e.Tokens = append(e.Tokens, c.Token)
	}
	e.Batches = l.finishedLocked(kept)
	if lost := len(done) - len(kept); lost > 0 {
		l.Finisher.CountLost(lost)
	}
	return kept, e
}

// finished notes that Redis is told how claims ended and returns the batches of which that was the last.
func (l *Lane) finished(claims []*Claim) []uint64 {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.finishedLocked(claims)
}

func (l *Lane) finishedLocked(claims []*Claim) (numbers []uint64) {
	for _, c := range claims {
		c.Batch.Unsent--
		if c.Batch.Unsent == 0 {
			numbers = append(numbers, c.Batch.Number)
		}
	}
	return numbers
}

// Reopen takes back what finished noted, after a call without an answer.
func (l *Lane) Reopen(claims []*Claim) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, c := range claims {
		c.Batch.Unsent++
	}
}

// Settle notes that Redis has answered how claims ended, or that they are lost.
func (l *Lane) Settle(claims ...*Claim) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	for _, c := range claims {
		l.settleLocked(c)
	}
}

func (l *Lane) settleLocked(c *Claim) {
	if c.Settled {
		return
	}
	c.Settled = true
	l.Known--
	c.Batch.Open--
	if c.Batch.Open == 0 {
		delete(l.Batches, c.Batch.Number)
	}
}

// Register notes that a registration begins or is over.
func (l *Lane) Register() {
	l.Mu.Lock()
	l.Epoch++
	l.Mu.Unlock()
}

// Open returns all claims that are not settled.
func (l *Lane) Open() []*Claim {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	claims := make([]*Claim, 0, l.Known)
	for _, b := range l.Batches {
		for _, c := range b.Claims {
			if !c.Settled {
				claims = append(claims, c)
			}
		}
	}
	return claims
}

// Count returns the number of claims that are not settled, whether a claim call is under way, and whether a reply was
// lost lately.
func (l *Lane) Count() (known int, calling, unclear bool) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.Known, len(l.calling) > 0, !l.unclear.IsZero() && time.Since(l.unclear) < 10*time.Minute
}

// Lose marks a claim as lost and cancels its handler. It answers whether that was news.
func (l *Lane) Lose(c *Claim) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if c.Lost.Load() || c.Settled {
		return false
	}
	c.Lost.Store(true)
	if c.Cancel != nil {
		c.Cancel(ErrLost)
	}
	return true
}

// Begin notes that the handler of a claim starts; false means that the claim is lost already, or the task cancelled.
// cancel is nil if the handler takes no context.
func (l *Lane) Begin(c *Claim, cancel context.CancelCauseFunc) bool {
	if cancel == nil {
		return !c.Lost.Load() && !c.canceled.Load()
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if c.Lost.Load() || c.canceled.Load() {
		return false
	}
	c.Cancel = cancel
	return true
}

// End notes that the handler has returned, and answers whether the claim was lost meanwhile.
func (l *Lane) End(c *Claim) (lost bool) {
	if c.Fn.TakesCtx {
		l.Mu.Lock()
		c.Cancel = nil
		l.Mu.Unlock()
	}
	return c.Lost.Load()
}

// Newest returns the number of the latest batch up to which all claim calls are over, with or without a reply.
func (l *Lane) Newest() uint64 {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if len(l.calling) > 0 {
		return l.calling[0] - 1 // they are in order
	}
	return l.Next
}

// Strangers returns those of the tokens that Redis holds for this worker and that this process does not know: the
// replies of their claims were lost. until is what newest returned before the tokens were read; later batches are not
// judged.
func (l *Lane) Strangers(tokens []string, until uint64) []string {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	var unknown []string
	for _, token := range tokens {
		if number, _, ok := redisstore.ParseToken(token); ok && number <= until && l.Find(token) == nil {
			unknown = append(unknown, token)
		}
	}
	return unknown
}

// unsettled says whether Redis has not answered yet how a claim ended.
func (l *Lane) unsettled(c *Claim) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return !c.Settled
}

// Find returns the open claim with a token, or nil. l.mu is held.
func (l *Lane) Find(token string) *Claim {
	number, i, ok := redisstore.ParseToken(token)
	b := l.Batches[number]
	if !ok || b == nil || i < 1 || i > len(b.Claims) || b.Claims[i-1].Settled {
		return nil
	}
	return b.Claims[i-1]
}
