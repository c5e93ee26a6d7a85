// Package lane is what a worker has in hand: a Lane is one queue as one worker sees it, and a Claim is one of its
// tasks, from the reply of Redis until Redis has answered how the task ended. It also has what handlers get and report:
// their contexts, the errors that say what becomes of a task, and progress.
package lane

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

// MaxUnconfirmed is how many endings of a lane Redis may not have confirmed. With so many the worker claims no more
// tasks there, because all of them would run again if this process died.
const MaxUnconfirmed = 5 * redisstore.MaxShelved

// MostLogged bounds the queues that a line of the log names. It counts all.
const MostLogged = 10

// Lane is one queue as one worker sees it: its claims and its heartbeat there.
type Lane struct {
	Store    *redisstore.Store
	Suspects *redisstore.Store // the queue's list of suspects as a queue
	Worker   string            // id
	Legacy   bool
	Index    int // position among the worker's lanes
	MaxRetry int // for tasks where neither the call nor the function sets it

	Finisher finisher // the lane's finisher

	Mu        sync.Mutex
	Batches   map[uint64]*Batch // those with claims that are not settled
	OpenCount int               // claims that are not settled
	Revoked   revocations       // canceled tasks that the worker knows of
	LastBatch uint64            // number of the latest batch; each attempt to claim raises it
	calling   []uint64          // batches whose claim call is under way, in order
	Epoch     uint64            // raised at the start and at the end of each registration: odd in between
	// ReplyLostAt is when a claim call last failed that may have run, or its claims were left to the heartbeat.
	ReplyLostAt time.Time

	// owned by the fetcher
	PendingLeft int // tasks that were still pending after the last claim
	Rest        Rest
	Mistyped    struct { // a key of the queue has another type than it should
		Trouble loop.Complaints
		Backoff loop.Backoff
	}
	HasSuspects bool // the queue seems to have suspects

	// UnsentMetrics are samples that no heartbeat could add to Redis yet. The heartbeat owns them, and Run when that
	// has ended.
	UnsentMetrics [][]redisstore.MetricsPart

	Reports progressSender // in a child process; nil: reports go to Redis

	Beat chan struct{} // asks for a heartbeat; shared by the queues of a slot; holds one element

	parked atomic.Pointer[[]string] // ids of parked tasks that this worker can run; nil: none

	Control Control

	AnyRevoked atomic.Bool // revoked has ids

	Unconfirmed    atomic.Int64 // endings that Redis has not confirmed
	EndingsRefused atomic.Bool  // Redis has answered the last call about ends of claims with an error

	// Confirmed is when the last heartbeat was sent that Redis has confirmed, by the monotonic and the wall clock; nil:
	// the worker is not registered.
	Confirmed atomic.Pointer[time.Time]
	// Unanswered: Redis has not confirmed the last heartbeat. Tasks go on as long as confirmed is fresh.
	Unanswered atomic.Bool
	// Refused: Redis has refused the last attempt to register the worker, because a key of the queue is of another
	// type.
	Refused atomic.Bool
	// Registered: Redis may know the worker.
	Registered atomic.Bool
	// Pulse is the value that the last registration gave the heartbeat in Redis. Each registration writes another one;
	// the worker stores it here after it has marked the claims that were lost before.
	Pulse atomic.Pointer[string]
}

// progressSender sends the progress reports of tasks to the parent process.
type progressSender interface {
	SendProgress(c *Claim, p wire.Progress) error
}

// finisher takes the endings of a lane's claims and reports them to Redis. Its methods never block.
type finisher interface {
	Add(e Ending)
	// Release gives claims back unchanged.
	Release(claims []*Claim)
	// CountLost publishes the loss of claims. The next call adds them to the counters of the day.
	CountLost(claims []*Claim)
	// Acknowledged settles claims that Redis has acknowledged. stood says which of them still belonged to this worker;
	// nil: all.
	Acknowledged(done []*Claim, stood []bool)
	// AckFailed takes back claims whose acknowledgement got no answer, to send it again.
	AckFailed(done []*Claim, err error)
}

// BeatNow asks for a heartbeat of this queue at once. It never blocks.
func (l *Lane) BeatNow() { loop.Poke(l.Beat) }

// Behind reports whether Redis has so many endings yet to confirm that no more tasks may be claimed.
func (l *Lane) Behind() bool { return l.Unconfirmed.Load() >= MaxUnconfirmed }

// Now returns the time by Redis's clock.
func (l *Lane) Now() time.Time { return l.Store.Now() }

// New returns a lane of a worker.
func New(s *redisstore.Store, worker string, legacy bool) *Lane {
	l := &Lane{
		Store: s, Suspects: s.Suspects(), Worker: worker, Legacy: legacy, Batches: map[uint64]*Batch{},
	}
	l.Beat = make(chan struct{}, 1)
	l.Control.Poked = make(chan struct{}, 1)
	l.Control.Version.Store(-1)
	return l
}

// Fresh reports whether the heartbeat cannot have expired in Redis: the last confirmed one is younger than its life,
// less a margin.
func (l *Lane) Fresh(life time.Duration) bool { return l.FreshAt(time.Now(), life) }

// FreshAt is fresh at now, the present time. Both clocks must agree, because the monotonic one stands still while a
// virtual machine is suspended.
func (l *Lane) FreshAt(now time.Time, life time.Duration) bool {
	confirmed := l.Confirmed.Load()
	if confirmed == nil || l.Refused.Load() {
		return false
	}
	limit := life - life/5
	return now.Sub(*confirmed) < limit && now.UnixNano()-confirmed.UnixNano() < int64(limit)
}

// Claim claims tasks as call says, and acknowledges done in the same call. It never uses a batch number twice, whether
// the call succeeds or not.
func (l *Lane) Claim(
	ctx context.Context, call redisstore.ClaimCall, done []*Claim,
) (claims []*Claim, left int, err error) {
	done, call.Ended = l.PrepareAcks(done)
	l.Mu.Lock()
	l.LastBatch++
	number, epoch := l.LastBatch, l.Epoch
	l.calling = append(l.calling, number)
	l.Mu.Unlock()
	call.Worker, call.Batch, call.Legacy = l.Worker, number, l.Legacy
	take := l.Store.Claim
	switch {
	case call.Parked != nil:
		take = l.Store.Unpark
	case call.Suspects:
		take = l.Suspects.Claim
	}
	got, err := take(ctx, call)
	if err == nil || errors.Is(err, redisstore.ErrNoHeartbeat) || errors.Is(err, redisstore.ErrBatchUsed) ||
		errors.Is(err, redisstore.ErrQueuePaused) {
		l.Finisher.Acknowledged(done, got.Stood)
	} else {
		l.Finisher.AckFailed(done, err)
	}
	b := NewBatch(l, number, got.Messages)
	b.Version, b.Suspects = got.Version, call.Suspects
	l.Mu.Lock()
	defer l.Mu.Unlock()
	l.calling = slices.DeleteFunc(l.calling, func(n uint64) bool { return n == number })
	if err != nil {
		if redisstore.MayHaveRun(err) {
			l.ReplyLostAt = time.Now()
		}
		return nil, 0, err
	}
	l.NoteVersion(got.Version)
	if epoch%2 != 0 || epoch != l.Epoch {
		// The heartbeat had expired. These claims may be older than the registration, and a sweeper may have given them
		// to other workers. The next heartbeat gives back those that this worker still has.
		l.ReplyLostAt = time.Now()
		l.BeatNow()
		return nil, got.Left, nil
	}
	if b.open > 0 {
		l.Batches[number] = b
		l.OpenCount += b.open
	}
	return b.Claims, got.Left, nil
}

// PrepareAcks returns the claims among done that are not lost, and what Redis needs to acknowledge them. It settles the
// lost ones. It reuses the memory of done.
func (l *Lane) PrepareAcks(done []*Claim) ([]*Claim, redisstore.Ended) {
	var e redisstore.Ended
	if len(done) == 0 {
		return nil, e
	}
	// Read the pulse before the marks: as long as Redis has this pulse, claims that are not marked as lost stand.
	if pulse := l.Pulse.Load(); pulse != nil {
		e.Pulse = *pulse
	}
	e.Tokens = make([]string, 0, len(done))
	l.Mu.Lock()
	defer l.Mu.Unlock()
	kept := done[:0]
	var lost []*Claim
	for _, c := range done {
		if c.Lost.Load() {
			l.settleLocked(c)
			lost = append(lost, c)
			continue
		}
		kept = append(kept, c)
		e.Tokens = append(e.Tokens, c.Token)
	}
	e.Batches = l.noteSentLocked(kept)
	if len(lost) > 0 {
		l.Finisher.CountLost(lost)
	}
	return kept, e
}

// NoteSent notes that a call reports how claims ended. It returns the batches that have no other claims to report.
func (l *Lane) NoteSent(claims []*Claim) []uint64 {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.noteSentLocked(claims)
}

func (l *Lane) noteSentLocked(claims []*Claim) (numbers []uint64) {
	for _, c := range claims {
		c.Batch.Unsent--
		if c.Batch.Unsent == 0 {
			numbers = append(numbers, c.Batch.Number)
		}
	}
	return numbers
}

// NoteUnsent undoes NoteSent after a call without an answer.
func (l *Lane) NoteUnsent(claims []*Claim) {
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

// SettleLost settles a claim that is lost.
func (l *Lane) SettleLost(c *Claim) {
	l.Settle(c)
	l.Finisher.CountLost([]*Claim{c})
}

func (l *Lane) settleLocked(c *Claim) {
	if c.settled {
		return
	}
	c.settled = true
	l.OpenCount--
	c.Batch.open--
	if c.Batch.open == 0 {
		delete(l.Batches, c.Batch.Number)
	}
}

// NextEpoch notes that a registration begins or is over.
func (l *Lane) NextEpoch() {
	l.Mu.Lock()
	l.Epoch++
	l.Mu.Unlock()
}

// OpenClaims returns all claims that are not settled.
func (l *Lane) OpenClaims() []*Claim {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	claims := make([]*Claim, 0, l.OpenCount)
	for _, b := range l.Batches {
		for _, c := range b.Claims {
			if !c.settled {
				claims = append(claims, c)
			}
		}
	}
	return claims
}

// Count returns the number of claims that are not settled, whether a claim call is under way, and whether the reply of
// one was lost in the last ten minutes.
func (l *Lane) Count() (known int, calling, unclear bool) {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return l.OpenCount, len(l.calling) > 0, !l.ReplyLostAt.IsZero() && time.Since(l.ReplyLostAt) < 10*time.Minute
}

// Lose marks a claim as lost and cancels its handler. It reports whether the claim was open and not marked before.
func (l *Lane) Lose(c *Claim) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if c.Lost.Load() || c.settled {
		return false
	}
	c.Lost.Store(true)
	if c.Cancel != nil {
		c.Cancel(ErrLost)
	}
	return true
}

// HandlerStarts notes that the handler of a claim starts. It returns false if the handler must not start: the claim is
// lost or the task was canceled. cancel is nil if the handler takes no context.
func (l *Lane) HandlerStarts(c *Claim, cancel context.CancelCauseFunc) bool {
	if cancel == nil {
		return !c.Lost.Load() && !c.Canceled.Load()
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if c.Lost.Load() || c.Canceled.Load() {
		return false
	}
	c.Cancel = cancel
	return true
}

// HandlerReturned notes that the handler has returned, and reports whether the claim was lost meanwhile.
func (l *Lane) HandlerReturned(c *Claim) (lost bool) {
	if c.Fn.TakesCtx {
		l.Mu.Lock()
		c.Cancel = nil
		l.Mu.Unlock()
	}
	return c.Lost.Load()
}

// Newest returns the greatest batch number up to which no claim call is under way.
func (l *Lane) Newest() uint64 {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if len(l.calling) > 0 {
		return l.calling[0] - 1
	}
	return l.LastBatch
}

// UnknownTokens returns those tokens of this worker in Redis that this process does not know, because the replies of
// their claims were lost. until is what Newest returned before the tokens were read; tokens of later batches are left
// out.
func (l *Lane) UnknownTokens(tokens []string, until uint64) []string {
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

// IsOpen reports whether a claim is not settled.
func (l *Lane) IsOpen(c *Claim) bool {
	l.Mu.Lock()
	defer l.Mu.Unlock()
	return !c.settled
}

// Find returns the open claim with a token, or nil. l.mu is held.
func (l *Lane) Find(token string) *Claim {
	number, i, ok := redisstore.ParseToken(token)
	b := l.Batches[number]
	if !ok || b == nil || i < 1 || i > len(b.Claims) || b.Claims[i-1].settled {
		return nil
	}
	return b.Claims[i-1]
}

// InHand returns the number of claims that are not settled. Those that have ended do not count where Redis refuses
// the calls: they may stay for ever.
func InHand(lanes []*Lane) (n int) {
	for _, l := range lanes {
		known, _, _ := l.Count()
		if l.EndingsRefused.Load() {
			known -= int(l.Unconfirmed.Load())
		}
		n += max(known, 0)
	}
	return n
}

// ReleaseTokens gives back claims whose replies were lost. It counts no death. released is called with the number of
// those of each call.
func (l *Lane) ReleaseTokens(ctx context.Context, tokens []string, released func(n int)) error {
	for page := range slices.Chunk(tokens, redisstore.MaxTokens) {
		if _, err := l.Store.Release(ctx, l.Worker, nil, page, l.Store, true); err != nil {
			return err
		}
		released(len(page))
	}
	return nil
}

// Where returns those of some lanes for which a condition holds, and their stores.
func Where(lanes []*Lane, holds func(*Lane) bool) (some []*Lane, stores []*redisstore.Store) {
	for _, l := range lanes {
		if holds(l) {
			some, stores = append(some, l), append(stores, l.Store)
		}
	}
	return some, stores
}
