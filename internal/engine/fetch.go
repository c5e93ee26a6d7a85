package engine

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

const (
	// rideTime is how long what is done waits to be acknowledged by the next claim.
	rideTime = 2 * time.Millisecond
	// probeInterval is how long a queue that was found empty is not looked at while others have tasks.
	probeInterval = 10 * time.Millisecond
)

// Fetcher claims tasks for as many executors as are free, and blocks on the notify lists while there are none.
type Fetcher struct {
	worker  string // id
	Lanes   []*Lane
	plan    Order
	Waiters []*Waiter
	Wakes   chan WakeUp
	Exec    *Executors
	room    func() (int, time.Duration)
	receive func(context.Context, []*Claim) (kept int)
	// InHand returns the number of claims in hand, startLone starts the lone task, mayClaim says whether the worker
	// claims at all.
	InHand    func() int
	StartLone func(context.Context, *Claim)
	MayClaim  func() bool
	Life      time.Duration // of a heartbeat
	Patience  time.Duration // shortestPatience
	OnDue     func()
	log       loop.Journal

	Order    []int
	Hot      []bool      // the queue has tasks, as far as is known
	Held     []bool      // the queue was found paused
	Mend     []bool      // its notify list seems to lack notifications
	Probed   []time.Time // when it was last found empty
	Of       []*Waiter   // Of each queue: what goes wrong on one slot does not hold up the others
	serving  bool        // what is done on the queue claimed from last waits for the next claim to take it along
	Flying   int         // calls under way
	Landed   chan Flight // calls that are over
	Suspects suspectState
	trouble  loop.Complaints // of claims
	waits    loop.Complaints // of waits
	lines    *loop.LineLimit // log lines about parked tasks that were claimed
}

// Run claims tasks until ctx ends.
func (f *Fetcher) Run(ctx context.Context) {
	n := len(f.Lanes)
	f.Order, f.Hot, f.Held, f.Mend, f.Probed = make([]int, n), make([]bool, n), make([]bool, n), make([]bool, n),
		make([]time.Time, n)
	for i := range f.Hot {
		f.Hot[i] = true // look once before the first wait
	}
	f.Of, f.Landed = make([]*Waiter, n), make(chan Flight, MostFlying)
	for _, w := range f.Waiters {
		for _, i := range w.Lanes {
			f.Of[i] = w
		}
	}
	f.FindSuspects(ctx)
	for ctx.Err() == nil {
		room, pause := f.room()
		if f.Suspects.Lone != nil {
			f.HandleLone(ctx)
			continue
		}
		if f.Flying > 0 && (room == 0 || f.Flying == MostFlying) {
			f.block(ctx, pause)
			continue
		}
		if room > 0 && f.claimSuspects(ctx) {
			f.poll(ctx)
			continue
		}
		if room > 0 {
			hot, later := f.anyHot()
			if hot {
				f.Round(ctx, room)
				f.poll(ctx)
				continue
			}
			if f.Flying == 0 {
				f.leaveOff()
			}
			f.arm(ctx)
			if pause > 0 && (later == 0 || pause < later) {
				later = pause
			}
			f.block(ctx, later)
			continue
		}
		if f.serving && (pause == 0 || pause > rideTime) {
			if f.block(ctx, rideTime) {
				f.leaveOff()
			}
			continue
		}
		f.leaveOff()
		f.block(ctx, pause)
	}
	for f.Flying > 0 {
		f.land(ctx, <-f.Landed)
	}
	if f.Suspects.Lone != nil && !f.Suspects.Runs {
		f.dismissLone(OutcomeRelease)
	}
	f.Exec.retire()
	f.mendAfterStop() //nolint:contextcheck // ctx has ended
}

// leaveOff leaves what is done to the finishers.
func (f *Fetcher) leaveOff() {
	f.Exec.LeaveOff()
	f.serving = false
}

// anyHot says whether there is a queue to claim from now. If not, later is when there may be one, 0 if nobody knows.
func (f *Fetcher) anyHot() (hot bool, later time.Duration) {
	now := time.Now()
	for i := range f.Hot {
		if f.paused(i) || !f.Hot[i] && !f.Lanes[i].Parked.Some.Load() {
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
		if wait := w.Until.Sub(now); wait > 0 && (later == 0 || wait < later) {
			later = wait
		}
	}
	if wait := f.Suspects.Rest.Sub(now); wait > 0 &&
		slices.ContainsFunc(f.Lanes, func(l *Lane) bool { return l.Apart }) && (later == 0 || wait < later) {
		later = wait
	}
	return false, later
}

// paused says whether a queue is paused. One that is no longer is looked at, because nobody has waited for its
// notifications.
func (f *Fetcher) paused(i int) bool {
	switch paused := f.Lanes[i].QueuePaused(); {
	case paused:
		f.Held[i] = true
	case f.Held[i]:
		f.Held[i], f.Hot[i] = false, true
	}
	return f.Held[i]
}

// arrange puts the queues into the order of one round.
func (f *Fetcher) arrange() {
	f.plan.Reweigh(func(i int) int { return int(f.Lanes[i].Control.Weight.Load()) })
	f.plan.Arrange(f.Order)
}

// notBefore returns the time before which a queue is left alone.
func (f *Fetcher) notBefore(i int) time.Time {
	if rest := f.Lanes[i].RestsUntil(); rest.After(f.Of[i].Until) {
		return rest
	}
	return f.Of[i].Until
}

// Round claims from the queues in their order until there is no room.
func (f *Fetcher) Round(ctx context.Context, room int) {
	f.Probe(ctx)
	f.arrange()
	for _, i := range f.Order {
		if room <= 0 || ctx.Err() != nil {
			return
		}
		parked := f.Lanes[i].Parked.Some.Load()
		if f.paused(i) || !f.Hot[i] && !parked {
			continue
		}
		// Without a heartbeat nothing can be claimed, and a server that does not answer would hold up the others for
		// seconds.
		if time.Now().Before(f.notBefore(i)) || !f.Lanes[i].Fresh(f.Life) {
			continue
		}
		if parked {
			room -= f.claimParked(ctx, i, room)
		}
		if room > 0 && f.Hot[i] {
			room -= f.claim(ctx, i, room, 0)
		}
	}
}

// Probe looks at the queues that were found empty a while ago: one request for all of a slot, as a claim of each would
// let those that have tasks wait for as many round trips.
func (f *Fetcher) Probe(ctx context.Context) {
	now := time.Now()
	for _, w := range f.Waiters {
		var lanes []int
		var stores []*redisstore.Store
		for j, i := range w.Lanes {
			if !f.paused(i) && !f.Hot[i] && now.Sub(f.Probed[i]) >= probeInterval && !now.Before(f.notBefore(i)) &&
				f.Lanes[i].Fresh(f.Life) {
				f.Probed[i] = now
				lanes, stores = append(lanes, i), append(stores, w.Stores[j])
			}
		}
		if len(lanes) == 0 {
			continue
		}
		todos, err := redisstore.Check(context.WithoutCancel(ctx), w.Link.Src, stores)
		if err != nil {
			w.Until = now.Add(w.claims.Next())
			continue
		}
		for k, i := range lanes {
			f.Hot[i] = todos[k].Pending > 0
		}
	}
}

// arm lets the waiters block on all queues that are neither paused nor at rest. Without a heartbeat, what they would
// take could not be claimed.
func (f *Fetcher) arm(ctx context.Context) {
	rests := func(i int) bool { return f.paused(i) || time.Now().Before(f.Lanes[i].RestsUntil()) }
	for _, w := range f.Waiters {
		if time.Now().Before(w.Until) ||
			slices.ContainsFunc(w.Lanes, func(i int) bool { return !f.Lanes[i].Fresh(f.Life) }) {
			continue
		}
		if w.Blocking {
			if err := w.Renew(ctx, rests, f.worker); err != nil && ctx.Err() == nil {
				f.log.Trouble(&f.waits, "cannot wait for tasks; trying again", err)
				w.Until = time.Now().Add(w.backoff.Next())
			}
			continue
		}
		w.Blocking = true
		f.arrange()
		w.arm <- w.Keys(f.Order, rests, f.TakesSuspects(time.Now()), f.worker)
	}
}

// block waits until there may be something to do, and says whether pause is over; 0 is no bound.
func (f *Fetcher) block(ctx context.Context, pause time.Duration) (over bool) {
	var expired <-chan time.Time
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case wake := <-f.Wakes:
		f.Handle(ctx, wake)
	case fl := <-f.Landed:
		f.land(ctx, fl)
	case <-f.Exec.Changed:
	case <-expired:
		return true
	case <-ctx.Done():
	}
	return false
}

// poll handles what has come without waiting for more.
func (f *Fetcher) poll(ctx context.Context) {
	for {
		select {
		case wake := <-f.Wakes:
			f.Handle(ctx, wake)
		case fl := <-f.Landed:
			f.land(ctx, fl)
		default:
			return
		}
	}
}

func (f *Fetcher) Handle(ctx context.Context, wake WakeUp) {
	if wake.waiter != nil {
		wake.waiter.Blocking = false
		if wake.err == nil && wake.waiter.Recovered(wake, time.Now()) {
			wake.waiter.backoff.Reset()
			f.log.Relief(&f.waits, "waiting for tasks again")
		}
	}
	switch {
	case wake.err != nil:
		if ctx.Err() == nil {
			f.log.Trouble(&f.waits, "cannot wait for tasks; trying again", wake.err)
			wake.waiter.Failed(wake.err, time.Now())
			for _, i := range wake.waiter.Lanes {
				f.Hot[i] = true // a notification may have been lost with the reply
			}
		}
	case wake.Due:
		f.OnDue()
	case wake.Lane < 0:
	case wake.Suspects && wake.Held == 0:
		f.Lanes[wake.Lane].Apart = true
	case wake.Suspects:
		most := 0
		if room, _ := f.room(); room > 0 && !f.paused(wake.Lane) && f.TakesSuspects(time.Now()) {
			most = 1
		}
		f.ClaimSuspect(ctx, wake.Lane, most, wake.Held)
	case wake.Held > 0:
		// The notification is spent on the queue that it came from, or given back, when there is no room any more.
		room, _ := f.room()
		if f.Suspects.Lone != nil || f.paused(wake.Lane) || time.Now().Before(f.Lanes[wake.Lane].RestsUntil()) {
			room = 0
		}
		f.claim(ctx, wake.Lane, room, wake.Held)
		// The executor that this has woken goes first, or it would start behind the next wait that is about to be sent.
		runtime.Gosched()
	default:
		f.Hot[wake.Lane], f.Mend[wake.Lane] = true, true
	}
}

// Nudge tells the fetcher that a queue has pending tasks or suspects, whether or not it has notifications. It never
// blocks.
func (f *Fetcher) Nudge(lane int, suspects bool) {
	select {
	case f.Wakes <- WakeUp{Lane: lane, Suspects: suspects}:
	default:
	}
}

// mendAfterStop puts back the notification that a cut-off wait may have taken.
func (f *Fetcher) mendAfterStop() {
	// One second for all: handlers wait for the end of it.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	for _, w := range f.Waiters {
		if !w.Blocking {
			continue
		}
		for _, i := range w.Lanes {
			// if it fails, another worker's next look mends the list
			_, _, _ = f.Lanes[i].Claim(ctx, redisstore.ClaimCall{Mend: true}, nil)
		}
	}
}
