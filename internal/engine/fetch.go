package engine

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

const (
	// maxAckWait is how long what is done waits to be acknowledged by the next claim.
	maxAckWait = 2 * time.Millisecond
	// probeInterval is how long a queue that was found empty is not looked at while others have tasks.
	probeInterval = 10 * time.Millisecond
)

// fetcher claims tasks for as many executors as are free, and blocks on the notify lists while there are none.
type fetcher struct {
	worker      string // id
	lanes       []*lane
	plan        Order
	waiters     []*waiter
	wakes       chan wakeUp
	exec        *executors
	claimBudget func() (int, time.Duration)
	receive     func(context.Context, []*Claim) (kept int)
	// startLone starts the lone task, mayClaim says whether the worker claims at all.
	startLone func(context.Context, *Claim)
	mayClaim  func() bool
	life      time.Duration // of a heartbeat
	patience  time.Duration // shortestPatience
	onDue     func()
	log       loop.Journal

	order     []int
	hasTasks  []bool      // the queue has tasks, as far as is known
	wasPaused []bool      // the queue was found paused
	mend      []bool      // its notify list seems to lack notifications
	emptyAt   []time.Time // when it was last found empty
	waiterOf  []*waiter   // of each queue: what goes wrong on one slot does not hold up the others
	acksWait  bool        // what is done on the queue claimed from last waits for the next claim to take it along
	inFlight  int         // calls under way
	returned  chan flight // calls that are over
	suspects  suspectState
	trouble   loop.Complaints // of claims
	waits     loop.Complaints // of waits
	lines     *loop.LineLimit // log lines about parked tasks that were claimed
}

// run claims tasks until ctx ends.
func (f *fetcher) run(ctx context.Context) {
	n := len(f.lanes)
	f.order, f.hasTasks, f.wasPaused, f.mend, f.emptyAt = make([]int, n), make([]bool, n), make([]bool, n), make([]bool, n),
		make([]time.Time, n)
	for i := range f.hasTasks {
		f.hasTasks[i] = true // look once before the first wait
	}
	f.waiterOf, f.returned = make([]*waiter, n), make(chan flight, maxInFlight)
	for _, w := range f.waiters {
		for _, i := range w.lanes {
			f.waiterOf[i] = w
		}
	}
	f.findSuspects(ctx)
	for ctx.Err() == nil {
		room, pause := f.claimBudget()
		if f.suspects.lone != nil {
			f.handleLone(ctx)
			continue
		}
		if f.inFlight > 0 && (room == 0 || f.inFlight == maxInFlight) {
			f.block(ctx, pause)
			continue
		}
		if room > 0 && f.claimSuspects(ctx) {
			f.poll(ctx)
			continue
		}
		if room > 0 {
			hot, later := f.anyToClaim()
			if hot {
				f.round(ctx, room)
				f.poll(ctx)
				continue
			}
			if f.inFlight == 0 {
				f.leaveToFinishers()
			}
			f.startWaits(ctx)
			if pause > 0 && (later == 0 || pause < later) {
				later = pause
			}
			f.block(ctx, later)
			continue
		}
		if f.acksWait && (pause == 0 || pause > maxAckWait) {
			if f.block(ctx, maxAckWait) {
				f.leaveToFinishers()
			}
			continue
		}
		f.leaveToFinishers()
		f.block(ctx, pause)
	}
	for f.inFlight > 0 {
		f.callReturned(ctx, <-f.returned)
	}
	if f.suspects.lone != nil && !f.suspects.started {
		f.putBackLone(lifecycle.OutcomeRelease)
	}
	f.exec.fetcherEnded()
	f.mendAfterStop() //nolint:contextcheck // ctx has ended
}

// leaveToFinishers leaves what is done to the finishers.
func (f *fetcher) leaveToFinishers() {
	f.exec.leaveToFinishers()
	f.acksWait = false
}

// anyToClaim says whether there is a queue to claim from now. If not, later is when there may be one, 0 if nobody knows.
func (f *fetcher) anyToClaim() (hot bool, later time.Duration) {
	now := time.Now()
	for i := range f.hasTasks {
		if f.paused(i) || !f.hasTasks[i] && !f.lanes[i].parked.some.Load() {
			continue
		}
		wait := f.notBefore(i).Sub(now)
		if wait <= 0 && f.lanes[i].fresh(f.life) {
			return true, 0
		}
		if wait > 0 && (later == 0 || wait < later) {
			later = wait
		}
	}
	for _, w := range f.waiters {
		if wait := w.noClaimsBefore.Sub(now); wait > 0 && (later == 0 || wait < later) {
			later = wait
		}
	}
	if wait := f.suspects.noneBefore.Sub(now); wait > 0 &&
		slices.ContainsFunc(f.lanes, func(l *lane) bool { return l.hasSuspects }) && (later == 0 || wait < later) {
		later = wait
	}
	return false, later
}

// paused says whether a queue is paused. One that is no longer is looked at, because nobody has waited for its
// notifications.
func (f *fetcher) paused(i int) bool {
	switch paused := f.lanes[i].queuePaused(); {
	case paused:
		f.wasPaused[i] = true
	case f.wasPaused[i]:
		f.wasPaused[i], f.hasTasks[i] = false, true
	}
	return f.wasPaused[i]
}

// arrange puts the queues into the order of one round.
func (f *fetcher) arrange() {
	f.plan.reweigh(func(i int) int { return int(f.lanes[i].control.weight.Load()) })
	f.plan.arrange(f.order)
}

// notBefore returns the time before which a queue is left alone.
func (f *fetcher) notBefore(i int) time.Time {
	if rest := f.lanes[i].restsUntil(); rest.After(f.waiterOf[i].noClaimsBefore) {
		return rest
	}
	return f.waiterOf[i].noClaimsBefore
}

// round claims from the queues in their order until there is no room.
func (f *fetcher) round(ctx context.Context, room int) {
	f.probe(ctx)
	f.arrange()
	for _, i := range f.order {
		if room <= 0 || ctx.Err() != nil {
			return
		}
		parked := f.lanes[i].parked.some.Load()
		if f.paused(i) || !f.hasTasks[i] && !parked {
			continue
		}
		// Without a heartbeat nothing can be claimed, and a server that does not answer would hold up the others for
		// seconds.
		if time.Now().Before(f.notBefore(i)) || !f.lanes[i].fresh(f.life) {
			continue
		}
		if parked {
			room -= f.claimParked(ctx, i, room)
		}
		if room > 0 && f.hasTasks[i] {
			room -= f.claimQueue(ctx, i, room, 0)
		}
	}
}

// probe looks at the queues that were found empty a while ago: one request for all of a slot, as a claim of each would
// let those that have tasks wait for as many round trips.
func (f *fetcher) probe(ctx context.Context) {
	now := time.Now()
	for _, w := range f.waiters {
		var lanes []int
		var stores []*redisstore.Store
		for j, i := range w.lanes {
			if !f.paused(i) && !f.hasTasks[i] && now.Sub(f.emptyAt[i]) >= probeInterval && !now.Before(f.notBefore(i)) &&
				f.lanes[i].fresh(f.life) {
				f.emptyAt[i] = now
				lanes, stores = append(lanes, i), append(stores, w.stores[j])
			}
		}
		if len(lanes) == 0 {
			continue
		}
		todos, err := redisstore.Check(context.WithoutCancel(ctx), w.link.Src, stores)
		if err != nil {
			w.noClaimsBefore = now.Add(w.claims.Next())
			continue
		}
		for k, i := range lanes {
			f.hasTasks[i] = todos[k].Pending > 0
		}
	}
}

// startWaits lets the waiters block on all queues that are neither paused nor at rest. Without a heartbeat, what they would
// take could not be claimed.
func (f *fetcher) startWaits(ctx context.Context) {
	rests := func(i int) bool { return f.paused(i) || time.Now().Before(f.lanes[i].restsUntil()) }
	for _, w := range f.waiters {
		if time.Now().Before(w.noClaimsBefore) ||
			slices.ContainsFunc(w.lanes, func(i int) bool { return !f.lanes[i].fresh(f.life) }) {
			continue
		}
		if w.blocking {
			if err := w.renew(ctx, rests, f.worker); err != nil && ctx.Err() == nil {
				f.log.Trouble(&f.waits, "cannot wait for tasks; trying again", err)
				w.noClaimsBefore = time.Now().Add(w.backoff.Next())
			}
			continue
		}
		w.blocking = true
		f.arrange()
		w.blockOn <- w.keys(f.order, rests, f.takesSuspects(time.Now()), f.worker)
	}
}

// block waits until there may be something to do, and says whether pause is over; 0 is no bound.
func (f *fetcher) block(ctx context.Context, pause time.Duration) (over bool) {
	var expired <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case wake := <-f.wakes:
		f.handleWake(ctx, wake)
	case fl := <-f.returned:
		f.callReturned(ctx, fl)
	case <-f.exec.changed:
	case <-expired:
		return true
	case <-ctx.Done():
	}
	return false
}

// poll handles what has come without waiting for more.
func (f *fetcher) poll(ctx context.Context) {
	for {
		select {
		case wake := <-f.wakes:
			f.handleWake(ctx, wake)
		case fl := <-f.returned:
			f.callReturned(ctx, fl)
		default:
			return
		}
	}
}

func (f *fetcher) handleWake(ctx context.Context, wake wakeUp) {
	if wake.waiter != nil {
		wake.waiter.blocking = false
		if wake.err == nil && wake.waiter.recovered(wake, time.Now()) {
			wake.waiter.backoff.Reset()
			f.log.Relief(&f.waits, "waiting for tasks again")
		}
	}
	switch {
	case wake.err != nil:
		if ctx.Err() == nil {
			f.log.Trouble(&f.waits, "cannot wait for tasks; trying again", wake.err)
			wake.waiter.failed(wake.err, time.Now())
			for _, i := range wake.waiter.lanes {
				f.hasTasks[i] = true // a notification may have been lost with the reply
			}
		}
	case wake.due:
		f.onDue()
	case wake.lane < 0:
	case wake.suspects && wake.held == 0:
		f.lanes[wake.lane].hasSuspects = true
	case wake.suspects:
		most := 0
		if room, _ := f.claimBudget(); room > 0 && !f.paused(wake.lane) && f.takesSuspects(time.Now()) {
			most = 1
		}
		f.claimSuspect(ctx, wake.lane, most, wake.held)
	case wake.held > 0:
		// The notification is spent on the queue that it came from, or given back, when there is no room any more.
		room, _ := f.claimBudget()
		if f.suspects.lone != nil || f.paused(wake.lane) || time.Now().Before(f.lanes[wake.lane].restsUntil()) {
			room = 0
		}
		f.claimQueue(ctx, wake.lane, room, wake.held)
		// The executor that this has woken goes first, or it would start behind the next wait that is about to be sent.
		runtime.Gosched()
	default:
		f.hasTasks[wake.lane], f.mend[wake.lane] = true, true
	}
}

// nudge tells the fetcher that a queue has pending tasks or suspects, whether or not it has notifications. It never
// blocks.
func (f *fetcher) nudge(lane int, suspects bool) {
	select {
	case f.wakes <- wakeUp{lane: lane, suspects: suspects}:
	default:
	}
}

// mendAfterStop puts back the notification that a cut-off wait may have taken.
func (f *fetcher) mendAfterStop() {
	// One second for all: handlers wait for the end of it.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, w := range f.waiters {
		if !w.blocking {
			continue
		}
		for _, i := range w.lanes {
			// if it fails, another worker's next look mends the list
			_, _, _ = f.lanes[i].claim(ctx, redisstore.ClaimCall{Mend: true}, nil)
		}
	}
}
