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
	// maxAckWait is how long done claims wait for the next claim call, which acknowledges them.
	maxAckWait = 2 * time.Millisecond
	// probeInterval is how long the fetcher does not look again at a queue that it found empty, while others have
	// tasks.
	probeInterval = 10 * time.Millisecond
)

// fetcher claims tasks for free executors. While there are none to claim, its waiters block on the notify lists.
type fetcher struct {
	worker   string // id
	lanes    []*lane
	plan     Order
	waiters  []*waiter
	wakes    chan wakeUp
	exec     *executors
	receiver *receiver
	owner    owner
	life     time.Duration // of a heartbeat
	patience time.Duration // the first suspectState.patience: shortestPatience, but in tests
	log      loop.Journal

	order     []int       // of queues in the present round
	behind    []bool      // the worker was behind with telling Redis how the queue's tasks ended when last looked at
	later     int         // how many of the last queues wait for that of an earlier one, in strict order
	hasTasks  []bool      // the queue seems to have tasks
	wasPaused []bool      // the queue was paused when last looked at
	mend      []bool      // the notify list of the queue seems to lack notifications: the next claim adds them
	emptyAt   []time.Time // when the queue was last found empty
	waiterOf  []*waiter   // of each queue; trouble on one slot does not delay the others
	acksWait  bool        // done claims of the queue that was claimed from last wait for the next claim call
	inFlight  int         // claim calls under way
	returned  chan flight // claim calls that are over
	suspects  suspectState
	trouble   loop.Complaints // with claims
	waits     loop.Complaints // with waits
	lines     *loop.LineLimit // limits log lines about parked tasks that were claimed
}

// run claims tasks until ctx ends.
func (f *fetcher) run(ctx context.Context) {
	f.prepare()
	f.findSuspects(ctx)
	for ctx.Err() == nil {
		f.step(ctx)
	}
	for f.inFlight > 0 {
		f.callReturned(ctx, <-f.returned)
	}
	if f.suspects.lone != nil && !f.suspects.started {
		f.putBackLone(lifecycle.OutcomeRelease)
	}
	f.exec.fetcherEnded()
}

// prepare makes what run needs for each queue.
func (f *fetcher) prepare() {
	n := len(f.lanes)
	f.order, f.hasTasks, f.wasPaused, f.mend, f.emptyAt = make([]int, n), make([]bool, n), make([]bool, n),
		make([]bool, n), make([]time.Time, n)
	for i := range f.hasTasks {
		f.hasTasks[i] = true // look once before the first wait
	}
	f.behind = make([]bool, n)
	f.waiterOf, f.returned = make([]*waiter, n), make(chan flight, maxInFlight)
	for _, w := range f.waiters {
		for _, i := range w.lanes {
			f.waiterOf[i] = w
		}
	}
}

// step claims tasks, or waits until it may be able to.
func (f *fetcher) step(ctx context.Context) {
	f.lookBehind()
	room, pause := f.claimBudget()
	switch {
	case f.suspects.lone != nil:
		f.handleLone(ctx)
	case f.inFlight > 0 && (room == 0 || f.inFlight == maxInFlight):
		f.block(ctx, pause)
	case room == 0:
		f.waitForRoom(ctx, pause)
	case f.claimSuspects(ctx):
		f.poll(ctx)
	default:
		f.claimOrWait(ctx, room, pause)
	}
}

// claimBudget returns how many tasks may be claimed now, and how long to wait at most before it is asked again; 0 is no
// bound. A worker that may not claim gives back the tasks that have not started.
func (f *fetcher) claimBudget() (int, time.Duration) {
	if !f.owner.mayClaim() {
		giveBack(f.exec.takeBack())
		return 0, 0
	}
	n, wait, back := f.exec.claimBudget()
	giveBack(back)
	return n, wait
}

// claimOrWait claims at most room tasks. If no queue seems to have any, it waits for tasks, at most for pause.
func (f *fetcher) claimOrWait(ctx context.Context, room int, pause time.Duration) {
	found, later := f.anyToClaim()
	if found {
		f.round(ctx, room)
		f.poll(ctx)
		return
	}
	if f.inFlight == 0 {
		f.leaveToFinishers()
	}
	f.startWaits(ctx)
	if pause > 0 && (later == 0 || pause < later) {
		later = pause
	}
	f.block(ctx, later)
}

// waitForRoom waits until executors have room, at most for pause. If that takes longer than done claims may wait for
// the next claim call, the finishers acknowledge them.
func (f *fetcher) waitForRoom(ctx context.Context, pause time.Duration) {
	if f.acksWait && (pause == 0 || pause > maxAckWait) {
		if f.block(ctx, maxAckWait) {
			f.leaveToFinishers()
		}
		return
	}
	f.leaveToFinishers()
	f.block(ctx, pause)
}

// leaveToFinishers lets the finishers acknowledge done claims: no claim call follows soon.
func (f *fetcher) leaveToFinishers() {
	f.exec.leaveToFinishers()
	f.acksWait = false
}

// anyToClaim reports whether there is a queue to claim from now. If not, it returns the time until there may be one, 0
// if unknown.
func (f *fetcher) anyToClaim() (found bool, later time.Duration) {
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

// lookBehind looks whether the worker is behind with telling Redis how tasks of a queue ended. In strict order it
// claims nothing from later queues then, because that queue may have tasks; but it does if Redis does not answer for
// it, or refuses to be told.
func (f *fetcher) lookBehind() {
	f.later = 0
	for i, l := range f.lanes {
		f.behind[i] = l.behind()
		if f.behind[i] && !l.endsRefused.Load() && f.later == 0 && f.plan.Weights == nil && l.fresh(f.life) &&
			!time.Now().Before(f.notBefore(i)) {
			f.later = len(f.lanes) - 1 - i
		}
	}
}

// paused reports whether nothing may be claimed from queue i: it waits for an earlier queue, it is paused, or the
// worker is behind with telling Redis how its tasks ended. After the latter two it is looked at once, because no waiter
// has blocked on its notify list.
func (f *fetcher) paused(i int) bool {
	if i >= len(f.lanes)-f.later {
		return true
	}
	switch paused := f.lanes[i].queuePaused() || f.behind[i]; {
	case paused:
		f.wasPaused[i] = true
	case f.wasPaused[i]:
		f.wasPaused[i], f.hasTasks[i] = false, true
	}
	return f.wasPaused[i]
}

// arrange computes the order of queues for one round.
func (f *fetcher) arrange() {
	f.plan.reweigh(func(i int) int { return int(f.lanes[i].control.weight.Load()) })
	f.plan.arrange(f.order)
}

// notBefore returns the time before which the fetcher does not claim from queue i.
func (f *fetcher) notBefore(i int) time.Time {
	if rest := f.lanes[i].restsUntil(); rest.After(f.waiterOf[i].noClaimsBefore) {
		return rest
	}
	return f.waiterOf[i].noClaimsBefore
}

// round claims from the queues in order until no more tasks fit.
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
		// Redis refuses claims without a heartbeat, and a server that does not answer would delay the others for
		// seconds.
		if time.Now().Before(f.notBefore(i)) || !f.lanes[i].fresh(f.life) {
			continue
		}
		if parked {
			room -= f.claimParked(ctx, i, room)
		}
		if room > 0 && f.hasTasks[i] {
			room -= f.claimQueue(ctx, i, room, 0)
			if f.hasTasks[i] && f.plan.Weights == nil {
				return // the claim ended early, such as before large messages: later queues wait
			}
		}
	}
}

// probe looks at queues that were found empty a while ago, with one request for each slot. A claim from each of them
// would delay those that have tasks by as many round trips.
func (f *fetcher) probe(ctx context.Context) {
	now := time.Now()
	for _, w := range f.waiters {
		var lanes []int
		var stores []*redisstore.Store
		for j, i := range w.lanes {
			if !f.paused(i) && !f.hasTasks[i] && now.Sub(f.emptyAt[i]) >= probeInterval &&
				!now.Before(f.notBefore(i)) &&
				f.lanes[i].fresh(f.life) {
				f.emptyAt[i] = now
				lanes, stores = append(lanes, i), append(stores, w.stores[j])
			}
		}
		if len(lanes) == 0 {
			continue
		}
		todos, err := redisstore.Check(context.WithoutCancel(ctx), w.link.Src, stores)
		if todos == nil && err != nil {
			w.noClaimsBefore = now.Add(w.claims.Next())
			continue
		}
		for k, i := range lanes {
			f.hasTasks[i] = todos[k].Pending > 0 || todos[k].Unknown // a claim shows it
		}
	}
}

// startWaits lets the waiters block on all queues that are neither paused nor at rest nor refused. A waiter blocks only
// if the heartbeats of all its queues that are not refused are fresh: Redis would refuse to claim what it finds.
func (f *fetcher) startWaits(ctx context.Context) {
	rests := func(i int) bool {
		return f.paused(i) || f.lanes[i].refused.Load() || time.Now().Before(f.lanes[i].restsUntil())
	}
	stale := func(i int) bool { return !f.lanes[i].refused.Load() && !f.lanes[i].fresh(f.life) }
	for _, w := range f.waiters {
		if time.Now().Before(w.noClaimsBefore) || slices.ContainsFunc(w.lanes, stale) {
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
		w.blockOn <- w.waitOn(f.order, rests, f.takesSuspects(time.Now()), f.worker)
	}
}

// block waits until there may be something to do. It reports whether it has waited for the whole pause; 0 is no bound.
func (f *fetcher) block(ctx context.Context, pause time.Duration) (timedOut bool) {
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

// poll handles wake-ups and replies that have arrived, without waiting for more.
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
	f.lookBehind()
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
				f.lanes[i].beatNow() // which shows whether Redis is there, and on which server
			}
			if redisstore.IsWrongType(wake.err) {
				f.owner.pokeMovers() // this wait cannot tell when something is due earlier, on any of its queues
			}
		}
	case wake.due:
		f.owner.pokeMovers()
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
		// The claim call uses up the notification, or puts it back if the executors have no room any more.
		room, _ := f.claimBudget()
		if f.suspects.lone != nil || f.paused(wake.lane) || time.Now().Before(f.lanes[wake.lane].restsUntil()) {
			room = 0
		}
		f.claimQueue(ctx, wake.lane, room, wake.held)
		// Let the executor that this has woken run now, and not after the fetcher has sent the next wait.
		runtime.Gosched()
	default:
		f.hasTasks[wake.lane], f.mend[wake.lane] = true, true
	}
}

// nudge tells the fetcher that a queue has pending tasks or suspects, with or without notifications. It never blocks.
func (f *fetcher) nudge(lane int, suspects bool) {
	select {
	case f.wakes <- wakeUp{lane: lane, suspects: suspects}:
	default:
	}
}

// wake makes the fetcher look again. It never blocks.
func (f *fetcher) wake() { f.exec.wakeFetcher() }

// mendAfterStop puts back notifications that BLPOP may have taken when the stop of the worker cut off a wait. The
// fetcher and the waiters have ended.
func (f *fetcher) mendAfterStop() {
	// One second for all queues, because the stop of the worker waits for this.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, w := range f.waiters {
		if !w.blocking {
			continue
		}
		for _, i := range w.lanes {
			// if this fails, another worker mends the list later
			_, _, _ = f.lanes[i].claim(ctx, redisstore.ClaimCall{Mend: true}, nil)
		}
	}
}
