package engine

import (
	"sync"
	"sync/atomic"
	"time"
)

// RestlessTime is how long a worker that gave tasks back claims no more than its free executors, so that others come to
// them.
const RestlessTime = 100 * time.Millisecond

// Executors run claimed tasks, a fixed number at a time. Tasks that wait for one are ready. What is done lies with its
// lane until the fetcher or the lane's finisher takes it to Redis.
type Executors struct {
	run  func(*Claim) (done bool) // done: to be acknowledged; else it has been seen to
	Life time.Duration            // of a heartbeat
	// Changed holds an element when the fetcher should look again.
	Changed chan struct{}
	Over    sync.WaitGroup // executors
	// those that others have replaced, or that were given up; they add themselves before over may be done
	Late sync.WaitGroup

	Mu       sync.Mutex // protects the following, and Lane.Done
	work     sync.Cond  // ready, stopped or the age of a heartbeat has changed
	Ready    []*Claim
	Coming   int // tasks that are being claimed, at most
	Busy     int
	Idle     int       // executors that wait for work
	waking   bool      // one of them was woken and has not looked yet
	Lone     *Claim    // runs alone, or waits until it can; nothing else starts meanwhile
	Crowded  bool      // a suspect was put back for the sake of those in hand
	Restless time.Time // until then, claim no more than free executors
	Held     bool      // start nothing
	marked   *Claim    // Redis has been told that nothing else is in hand
	Stopped  bool
	Pace     Pace
	Ahead    int   // tasks to claim beyond free executors, as the fetcher last found
	Hungry   bool  // the fetcher waits for room
	Served   *Lane // the fetcher claims from it, and acknowledges what is done there by the way
	allowance

	N          int
	Slots      []atomic.Pointer[Claim] // what each executor runs
	goroutines []atomic.Uint64         // its number
	Spare      []int                   // slots for executors that take the place of stuck ones
}

// NewExecutors returns n executors. prefetch is how many tasks to claim ahead; negative: as the handlers allow.
func NewExecutors(n, prefetch int, life time.Duration, run func(*Claim) bool) *Executors {
	e := &Executors{
		run: run, Life: life, Changed: make(chan struct{}, 1), Pace: Pace{Fixed: prefetch}, N: n,
		allowance: allowance{quit: make(chan struct{})},
	}
	e.allot(n)
	e.work.L = &e.Mu
	return e
}

// allot makes room to show what so many executors do.
func (e *Executors) allot(n int) {
	e.Slots, e.goroutines = make([]atomic.Pointer[Claim], n), make([]atomic.Uint64, n)
}

// Start lets the executors work.
func (e *Executors) Start() {
	e.Over.Add(e.N)
	for i := range e.N {
		go e.loop(i)
	}
}

// loop runs tasks until the executors stop. A handler that calls runtime.Goexit ends the goroutine, not the executor.
func (e *Executors) loop(i int) {
	stopped := false
	var last *Claim
	defer func() {
		if stopped {
			e.gone(last)
			return
		}
		c := e.Slots[i].Swap(nil)
		e.Mu.Lock()
		e.Leave(c, false, 0)
		e.beckon()
		relieved := e.relieved(i, c)
		e.Mu.Unlock()
		if relieved {
			e.gone(c)
			return
		}
		go e.loop(i)
	}()
	e.goroutines[i].Store(GoroutineID())
	done, start := false, time.Time{}
	for {
		var next *Claim
		if next, start = e.next(i, last, done, start); next == nil {
			stopped = true
			return
		}
		last = next
		done = e.run(last)
		if e.Rest > 0 {
			if !e.pause(i, last, done, start) {
				stopped = true
				return
			}
			last = nil
		}
	}
}

// gone notes that an executor has ended, after it ran last.
func (e *Executors) gone(last *Claim) {
	if last != nil && last.stuck {
		e.Late.Done()
	} else {
		e.Over.Done()
	}
}

// next gives back the task that an executor ran last, if any, and waits for one that may start. It returns that and the
// time; nil means that the executor is to end.
func (e *Executors) next(i int, last *Claim, done bool, start time.Time) (*Claim, time.Time) {
	now := time.Now()
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if last != nil {
		e.Leave(last, done, now.Sub(start))
		if e.relieved(i, last) {
			return nil, now
		}
	}
	for {
		if e.Stopped {
			e.Slots[i].Store(nil)
			return nil, now
		}
		if c := e.take(now); c != nil {
			c.started = now
			e.Slots[i].Store(c)
			e.beckon()
			e.Rouse()
			return c, now
		}
		e.Slots[i].Store(nil)
		e.beckon()
		e.Idle++
		e.work.Wait()
		e.Idle--
		e.waking = false
		now = time.Now()
	}
}

// Leave notes that a task has ended. e.mu is held.
func (e *Executors) Leave(c *Claim, done bool, took time.Duration) {
	if !c.stuck {
		e.Busy--
		e.Pace.End(took)
	}
	e.spent()
	if c.Suspicion > 0 {
		e.release(c)
	}
	if !done {
		return
	}
	l := c.Lane
	l.Done = append(l.Done, c)
	if len(l.Done) > 1 || e.Served == l {
		return // somebody knows
	}
	if e.Hungry && e.Served == nil {
		e.Served = l // the fetcher takes it along, or leaves off
		e.signal()
	} else {
		l.Finisher.wake()
	}
}

// take removes the first ready task that may start. e.mu is held.
func (e *Executors) take(now time.Time) *Claim {
	if e.Held || e.Limited && e.Budget == 0 {
		return nil
	}
	for i, c := range e.Ready {
		if !c.Lane.FreshAt(now, e.Life) && !c.Lost.Load() {
			// Another worker may have it by now. The heartbeat finds out, and wakes this executor.
			c.Lane.Beat()
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
		e.spend()
		return c
	}
	return nil
}

// Rouse wakes one more executor if there is work for it. One at a time: each wakes the next once it runs itself, so
// that short tasks, which are done before, cost no wake-ups. e.mu is held.
func (e *Executors) Rouse() {
	if len(e.Ready) > 0 && e.Idle > 0 && !e.waking && !e.Held {
		e.waking = true
		e.work.Signal()
	}
}

// Add makes tasks ready.
func (e *Executors) Add(claims []*Claim) {
	if len(claims) == 0 {
		return
	}
	e.Mu.Lock()
	e.Ready = append(e.Ready, claims...)
	e.Rouse()
	e.Mu.Unlock()
}

// TakeBack removes all tasks that have not started.
func (e *Executors) TakeBack() []*Claim {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.TakeBackLocked()
}

func (e *Executors) TakeBackLocked() []*Claim {
	claims := e.Ready
	e.Ready = nil
	for _, c := range claims {
		if c.Suspicion > 0 {
			e.release(c)
		}
	}
	return claims
}

// Hold makes executors start nothing, until it is called with false.
func (e *Executors) Hold(on bool) {
	e.Mu.Lock()
	e.Held = on
	e.Mu.Unlock()
	e.work.Broadcast()
	e.signal()
}

// Wake lets executors look again, after a heartbeat.
func (e *Executors) Wake() { e.work.Broadcast() }

// signal tells the fetcher to look again.
func (e *Executors) signal() {
	select {
	case e.Changed <- struct{}{}:
	default:
	}
}

// Stop lets executors end after their present task. Ready tasks must have been taken back.
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
func (e *Executors) Running() []*Claim {
	var claims []*Claim
	for i := range e.Slots {
		if c := e.Slots[i].Load(); c != nil {
			claims = append(claims, c)
		}
	}
	return claims
}
