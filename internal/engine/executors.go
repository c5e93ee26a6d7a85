package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/state"
)

// noAheadTime is how long a worker that has given tasks back claims only for its free executors, so that other workers
// can take these tasks.
const noAheadTime = 100 * time.Millisecond

// executors run claimed tasks, a fixed number at a time. A task that waits for an executor is ready. Done claims stay
// in done until the fetcher or a finisher acknowledges them.
type executors struct {
	runner taskRunner
	life   time.Duration // of a heartbeat
	// changed has an element when the fetcher should look again.
	changed chan struct{}
	sound   sync.WaitGroup // executors whose handlers are not stuck
	// stuck counts executors that were given up because their handlers do not return. Add to it before sound.Done, so
	// that who waits for both misses none.
	stuck sync.WaitGroup

	mu           sync.Mutex // protects the following
	work         sync.Cond  // signalled when ready, stopped or the age of a heartbeat has changed
	ready        []*Claim
	claiming     int       // tasks that claim calls under way ask for
	busy         int       // executors that run a task, but for stuck ones
	idle         int       // executors that wait for a task
	waking       bool      // one of them was signalled and has not run yet
	lone         *Claim    // the suspect that runs alone, or waits until it can; no other task starts meanwhile
	crowded      bool      // a suspect was put back because the worker had too many
	noAheadUntil time.Time // until then, claim only for free executors
	held         bool      // no task may start
	marked       *Claim    // the task that is marked in Redis as this worker's only one
	stopped      bool
	pace         pace
	ahead        int        // how many tasks to claim beyond free executors
	fetcherWaits bool       // the fetcher waits for room
	ackLane      *lane      // the next claim call of the fetcher acknowledges done claims of this lane
	done         []doneList // of each lane, by its index
	tallies      []tally    // of each lane, by its index
	taskBudget

	n          int                     // number of executors
	slots      []atomic.Pointer[Claim] // the task that each executor runs
	goroutines []atomic.Uint64         // the id of each executor's goroutine
	spare      []int                   // slots for executors that replace stuck ones
}

// taskRunner runs tasks: the runner, but in tests.
type taskRunner interface {
	// execute runs one task. It returns true if the claim must be acknowledged; otherwise it has handled the end of
	// the claim.
	execute(c *Claim) (done bool)
}

// stopper stops the worker. Its method never blocks.
type stopper interface{ stopFor(reason state.Reason) }

// newExecutors returns n executors. prefetch is how many tasks to claim ahead; negative: as many as suits the handlers.
func newExecutors(n, prefetch int, life time.Duration, r taskRunner) *executors {
	e := &executors{
		runner: r, life: life, changed: make(chan struct{}, 1), pace: pace{fixed: prefetch}, n: n,
		taskBudget: taskBudget{quit: make(chan struct{})},
	}
	e.makeSlots(n)
	e.work.L = &e.mu
	return e
}

// makeSlots makes n slots.
func (e *executors) makeSlots(n int) {
	e.slots, e.goroutines = make([]atomic.Pointer[Claim], n), make([]atomic.Uint64, n)
}

// start starts the executors.
func (e *executors) start() {
	e.sound.Add(e.n)
	for i := range e.n {
		go e.loop(i)
	}
}

// loop runs tasks until the executors stop. If a handler calls runtime.Goexit, the executor goes on in a new goroutine.
func (e *executors) loop(i int) {
	stopped := false
	var last *Claim
	defer func() {
		if stopped {
			e.executorEnded(last)
			return
		}
		c := e.slots[i].Swap(nil)
		e.mu.Lock()
		e.taskEnded(c, false, 0)
		e.wakeFetcherIfRoom()
		relieved := e.freeIfReplaced(i, c)
		e.mu.Unlock()
		if relieved {
			e.executorEnded(c)
			return
		}
		go e.loop(i)
	}()
	e.goroutines[i].Store(goroutineID())
	done, start := false, time.Time{}
	for {
		var next *Claim
		if next, start = e.next(i, last, done, start); next == nil {
			stopped = true
			return
		}
		last = next
		done = e.runner.execute(last)
		if e.rest > 0 {
			if !e.takeRest(i, last, done, start) {
				stopped = true
				return
			}
			last = nil
		}
	}
}

// executorEnded notes that an executor has ended. last is the task that it ran last.
func (e *executors) executorEnded(last *Claim) {
	if last != nil && last.stuck {
		e.stuck.Done()
	} else {
		e.sound.Done()
	}
}

// next notes the end of the task that executor i ran last, if any, and waits for one that may start. It returns that
// task and the time; nil: the executor must end.
func (e *executors) next(i int, last *Claim, done bool, start time.Time) (*Claim, time.Time) {
	now := time.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	if last != nil {
		e.taskEnded(last, done, now.Sub(start))
		if e.freeIfReplaced(i, last) {
			return nil, now
		}
	}
	for {
		if e.stopped {
			e.slots[i].Store(nil)
			return nil, now
		}
		if c := e.take(now); c != nil {
			c.started = now
			e.slots[i].Store(c)
			e.wakeFetcherIfRoom()
			e.wakeOne()
			return c, now
		}
		e.slots[i].Store(nil)
		e.wakeFetcherIfRoom()
		e.idle++
		e.work.Wait()
		e.idle--
		e.waking = false
		now = time.Now()
	}
}

// taskEnded notes that a task has ended. done: it must be acknowledged. e.mu is held.
func (e *executors) taskEnded(c *Claim, done bool, took time.Duration) {
	if !c.stuck {
		e.busy--
		e.pace.add(took)
	}
	e.tallies[c.lane.index].add(c, took, c.lane.store.Skew())
	e.checkUsedUp()
	if c.suspicion > 0 {
		e.suspectLeft(c)
	}
	if !done {
		return
	}
	d := &e.done[c.lane.index]
	d.claims = append(d.claims, c)
	if len(d.claims) > 1 || e.ackLane == c.lane {
		return // the finisher or the fetcher knows already
	}
	if e.fetcherWaits && e.ackLane == nil {
		e.ackLane = c.lane // the fetcher claims from it, or leaves it to the finisher
		e.wakeFetcher()
	} else {
		loop.Poke(d.wakes)
	}
}

// take removes and returns the first ready task that may start. e.mu is held.
func (e *executors) take(now time.Time) *Claim {
	if e.held || e.limited && e.startsLeft == 0 {
		return nil
	}
	for i, c := range e.ready {
		if !c.lane.freshAt(now, e.life) && !c.lost.Load() {
			// Another worker may have the task by now. The next heartbeat finds out, and wakes this executor.
			c.lane.beatNow()
			continue
		}
		if i == 0 {
			e.ready[0] = nil
			e.ready = e.ready[1:]
		} else {
			copy(e.ready[i:], e.ready[i+1:])
			e.ready[len(e.ready)-1] = nil
			e.ready = e.ready[:len(e.ready)-1]
		}
		e.busy++
		e.countStart()
		return c
	}
	return nil
}

// wakeOne wakes one executor if there is a ready task. Each executor that takes a task wakes the next one, so short
// tasks, which end before that, cost no wake-ups. e.mu is held.
func (e *executors) wakeOne() {
	if len(e.ready) > 0 && e.idle > 0 && !e.waking && !e.held {
		e.waking = true
		e.work.Signal()
	}
}

// add makes tasks ready.
func (e *executors) add(claims []*Claim) {
	if len(claims) == 0 {
		return
	}
	e.mu.Lock()
	e.ready = append(e.ready, claims...)
	e.wakeOne()
	e.mu.Unlock()
}

// takeBack removes and returns all tasks that have not started.
func (e *executors) takeBack() []*Claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.takeBackLocked()
}

func (e *executors) takeBackLocked() []*Claim {
	claims := e.ready
	e.ready = nil
	for _, c := range claims {
		if c.suspicion > 0 {
			e.suspectLeft(c)
		}
	}
	return claims
}

// hold(true) lets no task start until hold(false).
func (e *executors) hold(on bool) {
	e.mu.Lock()
	e.held = on
	e.mu.Unlock()
	e.work.Broadcast()
	e.wakeFetcher()
}

// wakeAll makes all idle executors look again, after a heartbeat.
func (e *executors) wakeAll() { e.work.Broadcast() }

// wakeFetcher makes the fetcher look again.
func (e *executors) wakeFetcher() {
	loop.Poke(e.changed)
}

// stop lets the executors end after their present task. The caller must have taken back ready tasks before.
func (e *executors) stop() {
	e.mu.Lock()
	if !e.stopped {
		e.stopped = true
		close(e.quit)
	}
	e.mu.Unlock()
	e.work.Broadcast()
}

// running returns the tasks that run.
func (e *executors) running() []*Claim {
	var claims []*Claim
	for i := range e.slots {
		if c := e.slots[i].Load(); c != nil {
			claims = append(claims, c)
		}
	}
	return claims
}

// takeBackOf removes and returns all tasks of one lane that have not started.
func (e *executors) takeBackOf(l *lane) (claims []*Claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	kept := make([]*Claim, 0, len(e.ready))
	for _, c := range e.ready {
		if c.lane != l {
			kept = append(kept, c)
			continue
		}
		claims = append(claims, c)
		if c.suspicion > 0 {
			e.suspectLeft(c)
		}
	}
	e.ready = kept
	return claims
}

// idsOf returns the ids of one lane's tasks that run or are ready.
func (e *executors) idsOf(l *lane) (ids []string) {
	add := func(claims []*Claim) {
		for _, c := range claims {
			if c.lane == l && c.msg.Meta.ID != "" {
				ids = append(ids, c.msg.Meta.ID)
			}
		}
	}
	e.mu.Lock()
	add(e.ready)
	e.mu.Unlock()
	add(e.running())
	return ids
}

// cancelRevoked cancels the contexts of those handlers of one lane whose tasks were cancelled.
func (e *executors) cancelRevoked(l *lane) {
	for _, c := range e.running() {
		if c.lane == l && l.isRevoked(c.msg.Meta.ID) {
			l.cancelHandler(c)
		}
	}
}

// replace starts another executor in place of number i, whose handler does not return, if there is a spare slot. stuck
// is false if the handler has returned. If it returns later, its outcome counts, but its executor ends.
func (e *executors) replace(i int, c *Claim) (stuck, replaced bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.slots[i].Load() != c {
		return false, false
	}
	c.stuck = true
	e.busy--
	if c.suspicion > 0 {
		e.suspectLeft(c) // other tasks may run beside it from now on
	}
	e.checkUsedUp()
	e.stuck.Add(1) // before sound.Done, so that drain waits for it
	defer e.sound.Done()
	n := len(e.spare)
	if n == 0 || e.stopped {
		e.n--
		return true, false
	}
	e.sound.Add(1)
	go e.loop(e.spare[n-1])
	e.spare = e.spare[:n-1]
	e.wakeFetcherIfRoom()
	return true, true
}

// freeIfReplaced reports whether executor i must end because its handler, which ran last, was stuck. If so, it frees
// the slot. e.mu is held.
func (e *executors) freeIfReplaced(i int, last *Claim) bool {
	if !last.stuck {
		return false
	}
	e.slots[i].Store(nil)
	e.spare = append(e.spare, i)
	return true
}

// reserve makes slots for n executors that replace stuck ones. It must be called before start.
func (e *executors) reserve(n int) {
	for i := range n {
		e.spare = append(e.spare, e.n+i)
	}
	e.makeSlots(e.n + n)
}

// isStuck reports whether the handler of a claim was given up.
func (e *executors) isStuck(c *Claim) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return c.stuck
}
