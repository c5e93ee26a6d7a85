package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// maxEndsWaiting is how many endings of a lane may wait until Redis is told. With so many the worker claims no more
// tasks there, because all of them would run again if this process died.
const maxEndsWaiting = 5 * redisstore.MaxShelved

// mostLogged bounds the queues that a line of the log names. It counts all.
const mostLogged = 10

// lane is one queue as one worker sees it: its claims and its heartbeat there.
type lane struct {
	store    *redisstore.Store
	suspects *redisstore.Store // the queue's list of suspects as a queue
	worker   string            // id
	legacy   bool
	index    int // position among the worker's lanes
	maxRetry int // for tasks where neither the call nor the function sets it

	ends endings // tells Redis how claims end: the lane's finisher

	mu        sync.Mutex
	batches   map[uint64]*batch // those with claims that are not settled
	openCount int               // claims that are not settled
	revoked   revocations       // cancelled tasks that the worker knows of
	lastBatch uint64            // number of the latest batch; each attempt to claim raises it
	calling   []uint64          // batches whose claim call is under way, in order
	epoch     uint64            // raised at the start and at the end of each registration: odd in between
	// replyLostAt is when a claim call last failed that may have run, or its claims were left to the heartbeat.
	replyLostAt time.Time

	// owned by the fetcher
	pendingLeft int // tasks that were still pending after the last claim
	rest        queueRest
	mistyped    struct { // a key of the queue has another type than it should
		trouble loop.Complaints
		backoff loop.Backoff
	}
	hasSuspects bool // the queue seems to have suspects

	// unconfirmed are samples that no heartbeat could add to Redis yet. The heartbeat owns them, and Run when that has
	// ended.
	unconfirmed [][]redisstore.MetricsPart

	reports progressSender // in a child process; nil: reports go to Redis

	beat chan struct{} // asks for a heartbeat; shared by the queues of a slot; holds one element

	parked parkedTasks // parked tasks that this worker can run

	control laneControl

	anyRevoked atomic.Bool // revoked has ids

	endsWaiting atomic.Int64 // endings that Redis has not been told
	endsRefused atomic.Bool  // Redis has answered the last call about ends of claims with an error

	// confirmed is when the last heartbeat was sent that Redis has confirmed, by the monotonic and the wall clock; nil:
	// the worker is not registered.
	confirmed atomic.Pointer[time.Time]
	// unanswered: Redis has not confirmed the last heartbeat. Tasks go on as long as confirmed is fresh.
	unanswered atomic.Bool
	// refused: Redis has refused the last attempt to register the worker, because a key of the queue is of another
	// type.
	refused atomic.Bool
	// registered: Redis may know the worker.
	registered atomic.Bool
	// pulse is the value that the last registration gave the heartbeat in Redis. Each registration writes another one;
	// the worker stores it here after it has marked the claims that were lost before.
	pulse atomic.Pointer[string]
}

// progressSender sends the progress reports of tasks to the parent process.
type progressSender interface {
	SendProgress(c *Claim, p wire.Progress) error
}

// endings is told how the claims of a lane end, and tells Redis. Its methods never block.
type endings interface {
	add(e ending)
	// release gives claims back unchanged.
	release(claims []*Claim)
	// countLost publishes the loss of claims. The next call adds them to the counters of the day.
	countLost(claims []*Claim)
	// acknowledged settles claims that Redis has acknowledged. stood says which of them still belonged to this worker;
	// nil: all.
	acknowledged(done []*Claim, stood []bool)
	// ackFailed takes back claims whose acknowledgement got no answer, to send it again.
	ackFailed(done []*Claim, err error)
}

// beatNow asks for a heartbeat of this queue at once. It never blocks.
func (l *lane) beatNow() { loop.Poke(l.beat) }

// behind reports whether so many endings wait for Redis to be told that no more tasks may be claimed.
func (l *lane) behind() bool { return l.endsWaiting.Load() >= maxEndsWaiting }

// now returns the time by Redis's clock.
func (l *lane) now() time.Time { return l.store.Now() }

func newLane(s *redisstore.Store, worker string, legacy bool) *lane {
	l := &lane{
		store: s, suspects: s.Suspects(), worker: worker, legacy: legacy, batches: map[uint64]*batch{},
	}
	l.beat = make(chan struct{}, 1)
	l.control.poke = make(chan struct{}, 1)
	l.control.version.Store(-1)
	return l
}

// fresh reports whether the heartbeat cannot have expired in Redis: the last confirmed one is younger than its life,
// less a margin.
func (l *lane) fresh(life time.Duration) bool { return l.freshAt(time.Now(), life) }

// freshAt is fresh at now, the present time. Both clocks must agree, because the monotonic one stands still while a
// virtual machine is suspended.
func (l *lane) freshAt(now time.Time, life time.Duration) bool {
	confirmed := l.confirmed.Load()
	if confirmed == nil || l.refused.Load() {
		return false
	}
	limit := life - life/5
	return now.Sub(*confirmed) < limit && now.UnixNano()-confirmed.UnixNano() < int64(limit)
}

// claim claims tasks as call says, and acknowledges done in the same call. It never uses a batch number twice, whether
// the call succeeds or not.
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
		// The heartbeat had expired. These claims may be older than the registration, and a sweeper may have given them
		// to other workers. The next heartbeat gives back those that this worker still has.
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

// prepareAcks returns the claims among done that are not lost, and what Redis needs to acknowledge them. It settles the
// lost ones. It reuses the memory of done.
func (l *lane) prepareAcks(done []*Claim) ([]*Claim, redisstore.Ended) {
	var e redisstore.Ended
	if len(done) == 0 {
		return nil, e
	}
	// Read the pulse before the marks: as long as Redis has this pulse, claims that are not marked as lost stand.
	if pulse := l.pulse.Load(); pulse != nil {
		e.Pulse = *pulse
	}
	e.Tokens = make([]string, 0, len(done))
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := done[:0]
	var lost []*Claim
	for _, c := range done {
		if c.lost.Load() {
			l.settleLocked(c)
			lost = append(lost, c)
			continue
		}
		kept = append(kept, c)
		e.Tokens = append(e.Tokens, c.token)
	}
	e.Batches = l.noteSentLocked(kept)
	if len(lost) > 0 {
		l.ends.countLost(lost)
	}
	return kept, e
}

// noteSent notes that a call tells Redis how claims ended. It returns the batches that have no other claims left to
// tell of.
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

// noteUnsent undoes noteSent after a call without an answer.
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

// settleLost settles a claim that is lost.
func (l *lane) settleLost(c *Claim) {
	l.settle(c)
	l.ends.countLost([]*Claim{c})
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

// count returns the number of claims that are not settled, whether a claim call is under way, and whether the reply of
// one was lost in the last ten minutes.
func (l *lane) count() (known int, calling, unclear bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.openCount, len(l.calling) > 0, !l.replyLostAt.IsZero() && time.Since(l.replyLostAt) < 10*time.Minute
}

// lose marks a claim as lost and cancels its handler. It reports whether the claim was open and not marked before.
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

// handlerStarts notes that the handler of a claim starts. It returns false if the handler must not start: the claim is
// lost or the task was cancelled. cancel is nil if the handler takes no context.
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

// handlerReturned notes that the handler has returned, and reports whether the claim was lost meanwhile.
func (l *lane) handlerReturned(c *Claim) (lost bool) {
	if c.fn.TakesCtx {
		l.mu.Lock()
		c.cancel = nil
		l.mu.Unlock()
	}
	return c.lost.Load()
}

// newest returns the greatest batch number up to which no claim call is under way.
func (l *lane) newest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.calling) > 0 {
		return l.calling[0] - 1
	}
	return l.lastBatch
}

// unknownTokens returns those tokens of this worker in Redis that this process does not know, because the replies of
// their claims were lost. until is what newest returned before the tokens were read; tokens of later batches are left
// out.
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

// isOpen reports whether a claim is not settled.
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

// inHand returns the number of claims that are not settled. Those that have ended do not count where Redis refuses to
// be told: they may stay for ever.
func inHand(lanes []*lane) (n int) {
	for _, l := range lanes {
		known, _, _ := l.count()
		if l.endsRefused.Load() {
			known -= int(l.endsWaiting.Load())
		}
		n += max(known, 0)
	}
	return n
}

// maxRevoked bounds the ids of cancelled tasks that a lane keeps in memory. If there are more, the worker asks Redis
// about each batch of claims.
const maxRevoked = 1000

// revocations are ids of cancelled tasks that a lane knows.
type revocations struct {
	ids     map[string]bool
	partial bool // Redis has more ids
}

// noteRevoked replaces the ids that the lane knows. all: ids are all that Redis has.
func (l *lane) noteRevoked(ids []string, all bool) {
	known := make(map[string]bool, len(ids))
	for _, id := range ids {
		known[id] = true
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.revoked = revocations{known, !all}
	l.anyRevoked.Store(len(ids) > 0)
}

// noteCanceled adds the id of a cancelled task.
func (l *lane) noteCanceled(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.revoked.ids == nil {
		l.revoked.ids = map[string]bool{}
	}
	l.revoked.ids[id] = true
	l.anyRevoked.Store(true)
}

// forgetRevoked removes the id of a task that is not cancelled any more.
func (l *lane) forgetRevoked(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.revoked.ids, id)
	l.anyRevoked.Store(len(l.revoked.ids) > 0)
}

// isRevoked reports whether the lane knows that a task was cancelled.
func (l *lane) isRevoked(id string) bool {
	if !l.anyRevoked.Load() || id == "" {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.revoked.ids[id]
}

// cancelHandler notes that the task of a running handler was cancelled, and cancels its context.
func (l *lane) cancelHandler(c *Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.settled || c.canceled.Swap(true) {
		return
	}
	if c.cancel != nil {
		c.cancel(ErrCanceled)
	}
}
