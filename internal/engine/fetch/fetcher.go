// Package fetch claims tasks: a Fetcher decides when to claim, from which queue and how many, while its waiters block
// on notify lists. The Receiver gives the executors those tasks that can run here, and ends the claims of all others.
package fetch

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
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

// Fetcher claims tasks for free executors. While there are none to claim, its waiters block on the notify lists.
type Fetcher struct {
	*Receiver
	Plan     Order
	Waiters  []*Waiter
	Wakes    chan WakeUp
	Life     time.Duration // of a heartbeat
	Patience time.Duration // the first suspectState.Patience: lane.ShortestPatience, but in tests

	Queues   []queueState
	Order    []int       // of queues in the present round
	later    int         // how many of the last queues wait for that of an earlier one, in strict order
	acksWait bool        // done claims of the queue that was claimed from last wait for the next claim call
	InFlight int         // claim calls under way
	Returned chan Flight // claim calls that are over
	Suspects suspectState
	trouble  loop.Complaints // with claims
	waits    loop.Complaints // with waits
}

// queueState is what the fetcher knows of a queue.
type queueState struct {
	HasTasks  bool      // it seems to have tasks
	wasPaused bool      // it was paused when last looked at
	Mend      bool      // its notify list seems to lack notifications: the next claim adds them
	behind    bool      // Redis has not confirmed too many of its endings
	EmptyAt   time.Time // when it was last found empty
	Waiter    *Waiter   // trouble on one slot does not delay the others
}

// Run claims tasks until ctx ends.
func (f *Fetcher) Run(ctx context.Context) {
	f.Prepare()
	f.FindSuspects(ctx)
	for ctx.Err() == nil {
		f.step(ctx)
	}
	for f.InFlight > 0 {
		f.callReturned(ctx, <-f.Returned)
	}
	if f.Suspects.Lone != nil && !f.Suspects.Started {
		f.putBackLone(lifecycle.OutcomeRelease)
	}
	f.Exec.FetcherEnded()
}

// Prepare makes what Run needs for each queue.
func (f *Fetcher) Prepare() {
	n := len(f.Lanes)
	f.Order, f.Queues, f.Returned = make([]int, n), make([]queueState, n), make(chan Flight, MaxInFlight)
	for _, w := range f.Waiters {
		for _, i := range w.Lanes {
			f.Queues[i] = queueState{Waiter: w, HasTasks: true} // look once before the first wait
		}
	}
}

// step claims tasks, or waits until it may be able to.
func (f *Fetcher) step(ctx context.Context) {
	f.CheckBacklog()
	room, pause := f.claimBudget()
	switch {
	case f.Suspects.Lone != nil:
		f.HandleLone(ctx)
	case f.InFlight > 0 && (room == 0 || f.InFlight == MaxInFlight):
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
func (f *Fetcher) claimBudget() (int, time.Duration) {
	if !f.Owner.MayClaim() {
		lane.GiveBack(f.Exec.TakeBack(nil))
		return 0, 0
	}
	n, wait, back := f.Exec.ClaimBudget()
	lane.GiveBack(back)
	return n, wait
}

// claimOrWait claims at most room tasks. If no queue seems to have any, it waits for tasks, at most for pause.
func (f *Fetcher) claimOrWait(ctx context.Context, room int, pause time.Duration) {
	found, later := f.anyToClaim()
	if found {
		f.Round(ctx, room)
		f.poll(ctx)
		return
	}
	if f.InFlight == 0 {
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
func (f *Fetcher) waitForRoom(ctx context.Context, pause time.Duration) {
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
func (f *Fetcher) leaveToFinishers() {
	f.Exec.LeaveToFinishers()
	f.acksWait = false
}

// anyToClaim reports whether there is a queue to claim from now. If not, it returns the time until there may be one, 0
// if unknown.
func (f *Fetcher) anyToClaim() (found bool, later time.Duration) {
	now := time.Now()
	for i := range f.Queues {
		if f.Paused(i) || !f.Queues[i].HasTasks && !f.Lanes[i].HasParked() {
			continue
		}
		wait := f.notBefore(i).Sub(now)
		if wait <= 0 && f.Lanes[i].Fresh(f.Life) {
			return true, 0
		}
		if wait > 0 && (later == 0 || wait < later) {
			later = wait
		}
	}
	for _, w := range f.Waiters {
		if wait := w.NoClaimsBefore.Sub(now); wait > 0 && (later == 0 || wait < later) {
			later = wait
		}
	}
	if wait := f.Suspects.NoneBefore.Sub(now); wait > 0 &&
		slices.ContainsFunc(f.Lanes, func(l *lane.Lane) bool { return l.HasSuspects }) && (later == 0 || wait < later) {
		later = wait
	}
	return false, later
}

// CheckBacklog marks queues with too many unconfirmed endings. In strict order the worker claims nothing from later
// queues then, because that queue may have tasks; but it does if Redis does not answer for it, or refuses the calls.
func (f *Fetcher) CheckBacklog() {
	f.later = 0
	for i, l := range f.Lanes {
		f.Queues[i].behind = l.Behind()
		if f.Queues[i].behind && !l.EndingsRefused.Load() && f.later == 0 && f.Plan.Weights == nil && l.Fresh(f.Life) &&
			!time.Now().Before(f.notBefore(i)) {
			f.later = len(f.Lanes) - 1 - i
		}
	}
}

// Paused reports whether nothing may be claimed from queue i: it waits for an earlier queue, it is paused, or it has
// too many unconfirmed endings. After the latter two it is looked at once, because no waiter has blocked on its notify
// list.
func (f *Fetcher) Paused(i int) bool {
	if i >= len(f.Lanes)-f.later {
		return true
	}
	switch paused := f.Lanes[i].QueuePaused() || f.Queues[i].behind; {
	case paused:
		f.Queues[i].wasPaused = true
	case f.Queues[i].wasPaused:
		f.Queues[i].wasPaused, f.Queues[i].HasTasks = false, true
	}
	return f.Queues[i].wasPaused
}

// arrange computes the order of queues for one round.
func (f *Fetcher) arrange() {
	f.Plan.Reweigh(func(i int) int { return int(f.Lanes[i].Control.Weight.Load()) })
	f.Plan.Arrange(f.Order)
}

// notBefore returns the time before which the fetcher does not claim from queue i.
func (f *Fetcher) notBefore(i int) time.Time {
	if rest := f.Lanes[i].RestsUntil(); rest.After(f.Queues[i].Waiter.NoClaimsBefore) {
		return rest
	}
	return f.Queues[i].Waiter.NoClaimsBefore
}

// Round claims from the queues in order until no more tasks fit.
func (f *Fetcher) Round(ctx context.Context, room int) {
	f.Probe(ctx)
	f.arrange()
	for _, i := range f.Order {
		if room <= 0 || ctx.Err() != nil {
			return
		}
		parked := f.Lanes[i].HasParked()
		if f.Paused(i) || !f.Queues[i].HasTasks && !parked {
			continue
		}
		// Redis refuses claims without a heartbeat, and a server that does not answer would delay the others for
		// seconds.
		if time.Now().Before(f.notBefore(i)) || !f.Lanes[i].Fresh(f.Life) {
			continue
		}
		if parked {
			room -= f.claimParked(ctx, i, room)
		}
		if room > 0 && f.Queues[i].HasTasks {
			room -= f.claimQueue(ctx, i, room, 0)
			if f.Queues[i].HasTasks && f.Plan.Weights == nil {
				return // the claim ended early, such as before large messages: later queues wait
			}
		}
	}
}

// Probe looks at queues that were found empty a while ago, with one request for each slot. A claim from each of them
// would delay those that have tasks by as many round trips.
func (f *Fetcher) Probe(ctx context.Context) {
	now := time.Now()
	for _, w := range f.Waiters {
		var lanes []int
		var stores []*redisstore.Store
		for j, i := range w.Lanes {
			if !f.Paused(i) && !f.Queues[i].HasTasks && now.Sub(f.Queues[i].EmptyAt) >= probeInterval &&
				!now.Before(f.notBefore(i)) &&
				f.Lanes[i].Fresh(f.Life) {
				f.Queues[i].EmptyAt = now
				lanes, stores = append(lanes, i), append(stores, w.Stores[j])
			}
		}
		if len(lanes) == 0 {
			continue
		}
		todos, err := redisstore.Check(context.WithoutCancel(ctx), w.Link.Src, stores)
		if todos == nil && err != nil {
			w.NoClaimsBefore = now.Add(w.claims.Next())
			continue
		}
		for k, i := range lanes {
			f.Queues[i].HasTasks = todos[k].Pending > 0 || todos[k].Unknown // a claim shows it
		}
	}
}

// startWaits lets the waiters block on all queues that are neither paused nor at rest nor refused. A waiter blocks only
// if the heartbeats of all its queues that are not refused are fresh: Redis would refuse to claim what it finds.
func (f *Fetcher) startWaits(ctx context.Context) {
	rests := func(i int) bool {
		return f.Paused(i) || f.Lanes[i].Refused.Load() || time.Now().Before(f.Lanes[i].RestsUntil())
	}
	stale := func(i int) bool { return !f.Lanes[i].Refused.Load() && !f.Lanes[i].Fresh(f.Life) }
	for _, w := range f.Waiters {
		if time.Now().Before(w.NoClaimsBefore) || slices.ContainsFunc(w.Lanes, stale) {
			continue
		}
		if w.Blocking {
			if err := w.Renew(ctx, rests, f.Worker); err != nil && ctx.Err() == nil {
				f.Log.Trouble(&f.waits, "cannot wait for tasks; trying again", err)
				w.NoClaimsBefore = time.Now().Add(w.backoff.Next())
			}
			continue
		}
		w.Blocking = true
		f.arrange()
		w.BlockOn <- w.WaitOn(f.Order, rests, f.TakesSuspects(time.Now()), f.Worker)
	}
}

// block waits until there may be something to do. It reports whether it has waited for the whole pause; 0 is no bound.
func (f *Fetcher) block(ctx context.Context, pause time.Duration) (timedOut bool) {
	var expired <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case wake := <-f.Wakes:
		f.HandleWake(ctx, wake)
	case fl := <-f.Returned:
		f.callReturned(ctx, fl)
	case <-f.Exec.Changed:
	case <-expired:
		return true
	case <-ctx.Done():
	}
	return false
}

// poll handles wake-ups and replies that have arrived, without waiting for more.
func (f *Fetcher) poll(ctx context.Context) {
	for {
		select {
		case wake := <-f.Wakes:
			f.HandleWake(ctx, wake)
		case fl := <-f.Returned:
			f.callReturned(ctx, fl)
		default:
			return
		}
	}
}

// HandleWake does what follows from a wake-up.
func (f *Fetcher) HandleWake(ctx context.Context, wake WakeUp) {
	f.CheckBacklog()
	if wake.Waiter != nil {
		wake.Waiter.Blocking = false
		if wake.Err == nil && wake.Waiter.Recovered(wake, time.Now()) {
			wake.Waiter.backoff.Reset()
			f.Log.Relief(&f.waits, "waiting for tasks again")
		}
	}
	switch {
	case wake.Err != nil:
		if ctx.Err() == nil {
			f.Log.Trouble(&f.waits, "cannot wait for tasks; trying again", wake.Err)
			wake.Waiter.Failed(wake.Err, time.Now())
			for _, i := range wake.Waiter.Lanes {
				f.Queues[i].HasTasks = true // a notification may have been lost with the reply
				f.Lanes[i].BeatNow()        // which shows whether Redis is there, and on which server
			}
			if redisstore.IsWrongType(wake.Err) {
				f.Owner.PokeMovers() // this wait does not notice when something is due earlier, on any of its queues
			}
		}
	case wake.Due:
		f.Owner.PokeMovers()
	case wake.Lane < 0:
	case wake.Suspects && wake.Held == 0:
		f.Lanes[wake.Lane].HasSuspects = true
	case wake.Suspects:
		most := 0
		if room, _ := f.claimBudget(); room > 0 && !f.Paused(wake.Lane) && f.TakesSuspects(time.Now()) {
			most = 1
		}
		f.ClaimSuspect(ctx, wake.Lane, most, wake.Held)
	case wake.Held > 0:
		// The claim call uses up the notification, or puts it back if the executors have no room any more.
		room, _ := f.claimBudget()
		if f.Suspects.Lone != nil || f.Paused(wake.Lane) || time.Now().Before(f.Lanes[wake.Lane].RestsUntil()) {
			room = 0
		}
		f.claimQueue(ctx, wake.Lane, room, wake.Held)
		// Let the executor that this has woken run now, and not after the fetcher has sent the next wait.
		runtime.Gosched()
	default:
		f.Queues[wake.Lane].HasTasks, f.Queues[wake.Lane].Mend = true, true
	}
}

// Nudge notes that a queue has pending tasks or suspects, with or without notifications. It never blocks.
func (f *Fetcher) Nudge(lane int, suspects bool) {
	select {
	case f.Wakes <- WakeUp{Lane: lane, Suspects: suspects}:
	default:
	}
}

// Wake makes the fetcher look again. It never blocks.
func (f *Fetcher) Wake() { f.Exec.WakeFetcher() }

// MendAfterStop puts back notifications that BLPOP may have taken when the stop of the worker cut off a wait. The
// fetcher and the waiters have ended.
func (f *Fetcher) MendAfterStop() {
	// One second for all queues, because the stop of the worker waits for this.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, w := range f.Waiters {
		if !w.Blocking {
			continue
		}
		for _, i := range w.Lanes {
			// if this fails, another worker mends the list later
			_, _, _ = f.Lanes[i].Claim(ctx, redisstore.ClaimCall{Mend: true}, nil)
		}
	}
}
