package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/redisstore"
)

// lane is one queue as one worker sees it: its claims and its heartbeat there.
type lane struct {
	store    *redisstore.Store
	suspects *redisstore.Store // its pending list is that of the suspects
	worker   string            // id
	legacy   bool
	index    int // among the worker's lanes
	maxRetry int // of tasks for which neither the call nor the function says it

	ends endings             // hears how claims end
	emit func(*Claim, Event) // tells listeners what has happened to a claim

	mu          sync.Mutex
	batches     map[uint64]*batch // claimed and not settled
	openCount   int               // claims in batches that are not settled
	revoked     revocations       // cancelled tasks, as far as they are known
	lastBatch   uint64            // number of the latest batch; moves on with every attempt
	calling     []uint64          // batches whose claim call is under way
	epoch       uint64            // moves on when a registration begins and when it is over: odd in between
	replyLostAt time.Time         // when the reply of a claim was last lost or an error

	// owned by the fetcher
	pendingLeft int // pending after the last claim
	rest        queueRest
	hasSuspects bool // it has suspects, as far as is known

	beatNow func() // asks for a heartbeat of this queue now

	parked parkedTasks // found for this worker

	control laneControl

	anyRevoked atomic.Bool // revoked has ids

	// confirmed is when the last heartbeat that Redis confirmed was sent, by monotonic and by wall clock; nil: not
	// registered.
	confirmed atomic.Pointer[time.Time]
	// registered: Redis may know the worker.
	registered atomic.Bool
	// pulse is the value that the heartbeat has in Redis since the last registration. Each registration has another
	// one, and it is stored after the claims that were lost before are marked.
	pulse atomic.Pointer[string]
}

// endings hears how the claims of a lane end, and tells Redis: the lane's finisher. Its methods never block.
type endings interface {
	add(e ending)
	// release gives claims back unchanged.
	release(claims []*Claim)
	// countLost adds n to the number of lost claims that the next call reports.
	countLost(n int)
	// acknowledged notes Redis's answer for claims that are done: which of them stood, nil for all.
	acknowledged(done []*Claim, stood []bool)
	// ackFailed puts claims back that are done and of which Redis could not be told.
	ackFailed(done []*Claim, err error)
}

// now returns the time by Redis's clock.
func (l *lane) now() time.Time { return l.store.Now() }

func newLane(s *redisstore.Store, worker string, legacy bool) *lane {
	l := &lane{
		store: s, suspects: s.Suspects(), worker: worker, legacy: legacy, batches: map[uint64]*batch{},
		emit: func(*Claim, Event) {},
	}
	l.control.poke = make(chan struct{}, 1)
	l.control.version.Store(-1)
	return l
}

// fresh says whether Redis surely has not let the heartbeat expire: the last confirmed one is younger than life, less a
// margin.
func (l *lane) fresh(life time.Duration) bool { return l.freshAt(time.Now(), life) }

// freshAt is fresh at a time that was read just now. Both clocks must agree, because the monotonic one stands still
// while a virtual machine is suspended.
func (l *lane) freshAt(now time.Time, life time.Duration) bool {
	confirmed := l.confirmed.Load()
	if confirmed == nil {
		return false
	}
	limit := life - life/5
	return now.Sub(*confirmed) < limit && now.UnixNano()-confirmed.UnixNano() < int64(limit)
}

// claim takes what call asks for, and acknowledges done in the same call. Whatever becomes of it, its batch number is
// never used again.
func (l *lane) claim(
	ctx context.Context, call redisstore.ClaimCall, done []*Claim,
) (claims []*Claim, left int, err error) {
	done, call.Ended = l.prepareAcks(done)
	l.mu.Lock()
	l.lastBatch++
	number, epoch := l.lastBatch, l.epoch
	l.calling = append(l.calling, number)
	l.mu.Unlock()
	call.Worker, call.Batch, call.Legacy = l.worker, number, l.legacy
	take := l.store.Claim
	switch {
	case call.Parked != nil:
		take = l.store.Unpark
	case call.Suspects:
		take = l.suspects.Claim
	}
	got, err := take(ctx, call)
	if err == nil || errors.Is(err, redisstore.ErrNoHeartbeat) || errors.Is(err, redisstore.ErrBatchUsed) ||
		errors.Is(err, redisstore.ErrQueuePaused) {
		l.ends.acknowledged(done, got.Stood)
	} else {
		l.ends.ackFailed(done, err)
	}
	b := newBatch(l, number, got.Messages)
	b.version, b.suspects = got.Version, call.Suspects
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calling = slices.DeleteFunc(l.calling, func(n uint64) bool { return n == number })
	if err != nil {
		if redisstore.MayHaveRun(err) {
			l.replyLostAt = time.Now()
		}
		return nil, 0, err
	}
	l.noteVersion(got.Version)
	if epoch%2 != 0 || epoch != l.epoch {
		// The heartbeat had expired, and nobody knows whether these claims are older than the registration: a sweeper
		// may have given them to others. The next heartbeat gives back those that stand.
		l.replyLostAt = time.Now()
		l.beatNow()
		return nil, got.Left, nil
	}
	if b.open > 0 {
		l.batches[number] = b
		l.openCount += b.open
	}
	return b.claims, got.Left, nil
}

// prepareAcks prepares claims that are done for the call that ends them. It leaves out those that are lost, which it
// settles.
func (l *lane) prepareAcks(done []*Claim) ([]*Claim, redisstore.Ended) {
	var e redisstore.Ended
	if len(done) == 0 {
		return nil, e
	}
	// The value is read before the marks: under this value, whatever is not marked stands.
	if pulse := l.pulse.Load(); pulse != nil {
		e.Pulse = *pulse
	}
	e.Tokens = make([]string, 0, len(done))
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := done[:0]
	for _, c := range done {
		if c.lost.Load() {
			l.settleLocked(c)
			l.emit(c, Event{Kind: event.TaskLost})
			continue
		}
		kept = append(kept, c)
		e.Tokens = append(e.Tokens, c.token)
	}
	e.Batches = l.noteSentLocked(kept)
	if lost := len(done) - len(kept); lost > 0 {
		l.ends.countLost(lost)
	}
	return kept, e
}

// noteSent notes that Redis is told how claims ended and returns the batches of which that was the last.
func (l *lane) noteSent(claims []*Claim) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.noteSentLocked(claims)
}

func (l *lane) noteSentLocked(claims []*Claim) (numbers []uint64) {
	for _, c := range claims {
		c.batch.unsent--
		if c.batch.unsent == 0 {
			numbers = append(numbers, c.batch.number)
		}
	}
	return numbers
}

// noteUnsent takes back what finished noted, after a call without an answer.
func (l *lane) noteUnsent(claims []*Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		c.batch.unsent++
	}
}

// settle notes that Redis has answered how claims ended, or that they are lost.
func (l *lane) settle(claims ...*Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range claims {
		l.settleLocked(c)
	}
}

func (l *lane) settleLocked(c *Claim) {
	if c.settled {
		return
	}
	c.settled = true
	l.openCount--
	c.batch.open--
	if c.batch.open == 0 {
		delete(l.batches, c.batch.number)
	}
}

// nextEpoch notes that a registration begins or is over.
func (l *lane) nextEpoch() {
	l.mu.Lock()
	l.epoch++
	l.mu.Unlock()
}

// openClaims returns all claims that are not settled.
func (l *lane) openClaims() []*Claim {
	l.mu.Lock()
	defer l.mu.Unlock()
	claims := make([]*Claim, 0, l.openCount)
	for _, b := range l.batches {
		for _, c := range b.claims {
			if !c.settled {
				claims = append(claims, c)
			}
		}
	}
	return claims
}

// count returns the number of claims that are not settled, whether a claim call is under way, and whether a reply was
// lost lately.
func (l *lane) count() (known int, calling, unclear bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.openCount, len(l.calling) > 0, !l.replyLostAt.IsZero() && time.Since(l.replyLostAt) < 10*time.Minute
}

// lose marks a claim as lost and cancels its handler. It answers whether that was news.
func (l *lane) lose(c *Claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.lost.Load() || c.settled {
		return false
	}
	c.lost.Store(true)
	if c.cancel != nil {
		c.cancel(ErrLost)
	}
	return true
}

// handlerStarts notes that the handler of a claim starts; false means that the claim is lost already, or the task cancelled.
// cancel is nil if the handler takes no context.
func (l *lane) handlerStarts(c *Claim, cancel context.CancelCauseFunc) bool {
	if cancel == nil {
		return !c.lost.Load() && !c.canceled.Load()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.lost.Load() || c.canceled.Load() {
		return false
	}
	c.cancel = cancel
	return true
}

// handlerReturned notes that the handler has returned, and answers whether the claim was lost meanwhile.
func (l *lane) handlerReturned(c *Claim) (lost bool) {
	if c.fn.TakesCtx {
		l.mu.Lock()
		c.cancel = nil
		l.mu.Unlock()
	}
	return c.lost.Load()
}

// newest returns the number of the latest batch up to which all claim calls are over, with or without a reply.
func (l *lane) newest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calling) > 0 {
		return l.calling[0] - 1 // they are in order
	}
	return l.lastBatch
}

// unknownTokens returns those of the tokens that Redis holds for this worker and that this process does not know: the
// replies of their claims were lost. until is what newest returned before the tokens were read; later batches are not
// judged.
func (l *lane) unknownTokens(tokens []string, until uint64) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var unknown []string
	for _, token := range tokens {
		if number, _, ok := redisstore.ParseToken(token); ok && number <= until && l.find(token) == nil {
			unknown = append(unknown, token)
		}
	}
	return unknown
}

// isOpen says whether Redis has not answered yet how a claim ended.
func (l *lane) isOpen(c *Claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !c.settled
}

// find returns the open claim with a token, or nil. l.mu is held.
func (l *lane) find(token string) *Claim {
	number, i, ok := redisstore.ParseToken(token)
	b := l.batches[number]
	if !ok || b == nil || i < 1 || i > len(b.claims) || b.claims[i-1].settled {
		return nil
	}
	return b.claims[i-1]
}

// inHand returns the number of claims of which Redis does not know how they ended.
func inHand(lanes []*lane) (n int) {
	for _, l := range lanes {
		known, _, _ := l.count()
		n += known
	}
	return n
}
