// Package exec runs claimed tasks: Executors are the goroutines that call them through a Runner, and say how many more
// tasks the worker may claim. The Watchdog replaces executors whose handlers do not return.
package exec

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/state"
)

// NoAheadTime is how long a worker that has given tasks back claims only for its free executors, so that other workers
// can take these tasks.
const NoAheadTime = 100 * time.Millisecond

// Executors run claimed tasks, a fixed number at a time. A task that waits for an executor is ready. Done claims stay
// in done until the fetcher or a finisher acknowledges them.
type Executors struct {
	runner taskRunner
	Life   time.Duration // of a heartbeat
	// Changed has an element when the fetcher should look again.
	Changed chan struct{}
	Sound   sync.WaitGroup // executors whose handlers are not stuck
	// Stuck counts executors that were given up because their handlers do not return. Add to it before sound.Done, so
	// that who waits for both misses none.
	Stuck sync.WaitGroup

	Mu           sync.Mutex // protects the following
	work         sync.Cond  // signalled when ready, stopped or the age of a heartbeat has changed
	Ready        []*lane.Claim
	Claiming     int         // tasks that claim calls under way ask for
	Busy         int         // executors that run a task, but for stuck ones
	Idle         int         // executors that wait for a task
	waking       bool        // one of them was signalled and has not run yet
	Lone         *lane.Claim // the suspect that runs alone, or waits until it can; no other task starts meanwhile
	NoAheadUntil time.Time   // until then, claim only for free executors
	Held         bool        // no task may start
	Stopped      bool
	Pace         pace
	Ahead        int        // how many tasks to claim beyond free executors
	FetcherWaits bool       // the fetcher waits for room
	AckLane      *lane.Lane // the next claim call of the fetcher acknowledges done claims of this lane
	Done         []doneList // of each lane, by its index
	tallies      []Tally    // of each lane, by its index
	StartsLeft   int        // how many more tasks may start, if Limited
	Resting      int        // executors that rest
	starts       uint64     // number of tasks that have started

	Limited bool          // StartsLeft counts; unchanged
	Worker  stopper       // is stopped when StartsLeft is 0 and the last task has ended; unchanged
	Rest    time.Duration // of each executor between two tasks; unchanged
	quit    chan struct{} // closed when the executors stop
	Crowded atomic.Bool   // a suspect was put back because the worker had too many, and none of these has ended since

	N          int                          // number of executors
	Slots      []atomic.Pointer[lane.Claim] // the task that each executor runs
	goroutines []atomic.Uint64              // the id of each executor's goroutine
	Spare      []int                        // slots for executors that replace stuck ones
}

// taskRunner runs tasks: the runner, but in tests.
type taskRunner interface {
	// Execute runs one task. It returns true if the claim must be acknowledged; otherwise it has handled the end of
	// the claim.
	Execute(c *lane.Claim) (done bool)
}

// stopper stops the worker. Its method never blocks.
type stopper interface{ StopFor(reason state.Reason) }

// New returns n executors. prefetch is how many tasks to claim ahead; negative: as many as suits the handlers.
func New(n, prefetch int, life time.Duration, r taskRunner) *Executors {
	e := &Executors{
		runner: r, Life: life, Changed: make(chan struct{}, 1), Pace: pace{fixed: prefetch}, N: n,
		quit: make(chan struct{}),
	}
	e.makeSlots(n)
	e.work.L = &e.Mu
	return e
}

// makeSlots makes n slots.
func (e *Executors) makeSlots(n int) {
	e.Slots, e.goroutines = make([]atomic.Pointer[lane.Claim], n), make([]atomic.Uint64, n)
}

// Start starts the executors.
func (e *Executors) Start() {
	e.Sound.Add(e.N)
	for i := range e.N {
		go e.loop(i)
	}
}

// loop runs tasks until the executors stop. If a handler calls runtime.Goexit, the executor goes on in a new goroutine.
func (e *Executors) loop(i int) {
	stopped := false
	var last *lane.Claim
	defer func() {
		if stopped {
			e.executorEnded(last)
			return
		}
		c := e.Slots[i].Swap(nil)
		e.Mu.Lock()
		e.TaskEnded(c, false, 0)
		e.wakeFetcherIfRoom()
		relieved := e.freeIfReplaced(i, c)
		e.Mu.Unlock()
		if relieved {
			e.executorEnded(c)
			return
		}
		go e.loop(i)
	}()
	e.goroutines[i].Store(child.GoroutineID())
	done, start := false, time.Time{}
	for {
		var next *lane.Claim
		if next, start = e.next(i, last, done, start); next == nil {
			stopped = true
			return
		}
		last = next
		done = e.runner.Execute(last)
		if e.Rest > 0 {
			if !e.takeRest(i, last, done, start) {
				stopped = true
				return
			}
			last = nil
		}
	}
}

// executorEnded notes that an executor has ended. last is the task that it ran last.
func (e *Executors) executorEnded(last *lane.Claim) {
	if last != nil && last.Stuck {
		e.Stuck.Done()
	} else {
		e.Sound.Done()
	}
}

// next notes the end of the task that executor i ran last, if any, and waits for one that may start. It returns that
// task and the time; nil: the executor must end.
func (e *Executors) next(i int, last *lane.Claim, done bool, start time.Time) (*lane.Claim, time.Time) {
	now := time.Now()
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if last != nil {
		e.TaskEnded(last, done, now.Sub(start))
		if e.freeIfReplaced(i, last) {
			return nil, now
		}
	}
	for {
		if e.Stopped {
			e.Slots[i].Store(nil)
			return nil, now
		}
		if c := e.Take(now); c != nil {
			c.Started = now
			e.Slots[i].Store(c)
			e.wakeFetcherIfRoom()
			e.WakeOne()
			return c, now
		}
		e.Slots[i].Store(nil)
		e.wakeFetcherIfRoom()
		e.Idle++
		e.work.Wait()
		e.Idle--
		e.waking = false
		now = time.Now()
	}
}

// TaskEnded notes that a task has ended. done: it must be acknowledged. e.mu is held.
func (e *Executors) TaskEnded(c *lane.Claim, done bool, took time.Duration) {
	if !c.Stuck {
		e.Busy--
		e.Pace.add(took)
	}
	e.tallies[c.Lane.Index].Add(c, took, c.Lane.Store.Skew())
	e.checkUsedUp()
	if c.Suspicion > 0 {
		e.suspectLeft(c)
	}
	if !done {
		return
	}
	d := &e.Done[c.Lane.Index]
	d.Claims = append(d.Claims, c)
	if len(d.Claims) > 1 || e.AckLane == c.Lane {
		return // the finisher or the fetcher knows already
	}
	if e.FetcherWaits && e.AckLane == nil {
		e.AckLane = c.Lane // the fetcher claims from it, or leaves it to the finisher
		e.WakeFetcher()
	} else {
		loop.Poke(d.wakes)
	}
}

// Take removes and returns the first ready task that may start. e.mu is held.
func (e *Executors) Take(now time.Time) *lane.Claim {
	if e.Held || e.Limited && e.StartsLeft == 0 {
		return nil
	}
	for i, c := range e.Ready {
		if !c.Lane.FreshAt(now, e.Life) && !c.Lost.Load() {
			// Another worker may have the task by now. The next heartbeat finds out, and wakes this executor.
			c.Lane.BeatNow()
			continue
		}
		if i == 0 {
			e.Ready[0] = nil
			e.Ready = e.Ready[1:]
		} else {
			copy(e.Ready[i:], e.Ready[i+1:])
			e.Ready[len(e.Ready)-1] = nil
			e.Ready = e.Ready[:len(e.Ready)-1]
		}
		e.Busy++
		e.countStart()
		return c
	}
	return nil
}

// WakeOne wakes one executor if there is a ready task. Each executor that takes a task wakes the next one, so short
// tasks, which end before that, cost no wake-ups. e.mu is held.
func (e *Executors) WakeOne() {
	if len(e.Ready) > 0 && e.Idle > 0 && !e.waking && !e.Held {
		e.waking = true
		e.work.Signal()
	}
}

// Add makes tasks ready.
func (e *Executors) Add(claims []*lane.Claim) {
	if len(claims) == 0 {
		return
	}
	e.Mu.Lock()
	e.Ready = append(e.Ready, claims...)
	e.WakeOne()
	e.Mu.Unlock()
}

// TakeBack removes and returns the tasks of a lane that have not started; nil: of all lanes.
func (e *Executors) TakeBack(of *lane.Lane) []*lane.Claim {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.TakeBackLocked(of)
}

// TakeBackLocked is TakeBack; e.Mu is held.
func (e *Executors) TakeBackLocked(of *lane.Lane) (back []*lane.Claim) {
	var kept []*lane.Claim
	for _, c := range e.Ready {
		if of != nil && c.Lane != of {
			kept = append(kept, c)
			continue
		}
		back = append(back, c)
		if c.Suspicion > 0 {
			e.suspectLeft(c)
		}
	}
	e.Ready = kept
	return back
}

// Hold lets no task start while on is true.
func (e *Executors) Hold(on bool) {
	e.Mu.Lock()
	e.Held = on
	e.Mu.Unlock()
	e.work.Broadcast()
	e.WakeFetcher()
}

// WakeAll makes all idle executors look again, after a heartbeat.
func (e *Executors) WakeAll() { e.work.Broadcast() }

// WakeFetcher makes the fetcher look again.
func (e *Executors) WakeFetcher() {
	loop.Poke(e.Changed)
}

// Stop lets the executors end after their present task. The caller must have taken back ready tasks before.
func (e *Executors) Stop() {
	e.Mu.Lock()
	if !e.Stopped {
		e.Stopped = true
		close(e.quit)
	}
	e.Mu.Unlock()
	e.work.Broadcast()
}

// Running returns the tasks that run.
func (e *Executors) Running() []*lane.Claim {
	var claims []*lane.Claim
	for i := range e.Slots {
		if c := e.Slots[i].Load(); c != nil {
			claims = append(claims, c)
		}
	}
	return claims
}

// IDsOf returns the ids of one lane's tasks that run or are ready.
func (e *Executors) IDsOf(l *lane.Lane) (ids []string) {
	add := func(claims []*lane.Claim) {
		for _, c := range claims {
			if c.Lane == l && c.Msg.Meta.ID != "" {
				ids = append(ids, c.Msg.Meta.ID)
			}
		}
	}
	e.Mu.Lock()
	add(e.Ready)
	e.Mu.Unlock()
	add(e.Running())
	return ids
}

// CancelRevoked cancels the contexts of those handlers of one lane whose tasks were canceled.
func (e *Executors) CancelRevoked(l *lane.Lane) {
	for _, c := range e.Running() {
		if c.Lane == l && l.IsRevoked(c.Msg.Meta.ID) {
			l.CancelHandler(c)
		}
	}
}

// Replace starts another executor in place of number i, whose handler does not return, if there is a spare slot. stuck
// is false if the handler has returned. If it returns later, its outcome counts, but its executor ends.
func (e *Executors) Replace(i int, c *lane.Claim) (stuck, replaced bool) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if e.Slots[i].Load() != c {
		return false, false
	}
	c.Stuck = true
	e.Busy--
	if c.Suspicion > 0 {
		e.suspectLeft(c) // other tasks may run beside it from now on
	}
	e.checkUsedUp()
	e.Stuck.Add(1) // before sound.Done, so that drain waits for it
	defer e.Sound.Done()
	n := len(e.Spare)
	if n == 0 || e.Stopped {
		e.N--
		return true, false
	}
	e.Sound.Add(1)
	go e.loop(e.Spare[n-1])
	e.Spare = e.Spare[:n-1]
	e.wakeFetcherIfRoom()
	return true, true
}

// freeIfReplaced reports whether executor i must end because its handler, which ran last, was stuck. If so, it frees
// the slot. e.mu is held.
func (e *Executors) freeIfReplaced(i int, last *lane.Claim) bool {
	if !last.Stuck {
		return false
	}
	e.Slots[i].Store(nil)
	e.Spare = append(e.Spare, i)
	return true
}

// Reserve makes slots for n executors that replace stuck ones. It must be called before start.
func (e *Executors) Reserve(n int) {
	for i := range n {
		e.Spare = append(e.Spare, e.N+i)
	}
	e.makeSlots(e.N + n)
}

// IsStuck reports whether the handler of a claim was given up.
func (e *Executors) IsStuck(c *lane.Claim) bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return c.Stuck
}
