package delayed

import (
	"sync"
	"sync/atomic"
	"time"
)

// suspectRest is how long a worker that gave tasks back claims no more than its free executors, so that others come to them.
const suspectRest = 100 * time.Millisecond

// suspectAlone is how long a suspect runs before the worker claims further tasks: what kills its worker does so soon, mostly.
const suspectAlone = time.Second

// executors run claimed tasks, a fixed number at a time. Tasks that wait for one are ready.
type executors struct {
	run  func(*claim)
	life time.Duration // of a heartbeat
	// changed holds an element when there may be room for further tasks.
	changed chan struct{}
	done    sync.WaitGroup

	mu       sync.Mutex // protects the following
	work     sync.Cond  // ready, stopped or the age of a heartbeat has changed
	ready    []*claim
	busy     int
	suspect  *claim    // the one suspect in hand, ready or running
	since    time.Time // when it started
	restless time.Time // until then, claim no more than free executors
	held     bool      // start nothing
	stopped  bool

	n        int
	prefetch int
	slots    []atomic.Pointer[claim] // what each executor runs
}

func newExecutors(n, prefetch int, life time.Duration, run func(*claim)) *executors {
	e := &executors{
		run: run, life: life, changed: make(chan struct{}, 1),
		n: n, prefetch: prefetch, slots: make([]atomic.Pointer[claim], n),
	}
	e.work.L = &e.mu
	return e
}

// start lets the executors work.
func (e *executors) start() {
	e.done.Add(e.n)
	for i := range e.n {
		go e.loop(i)
	}
}

// loop runs tasks until the executors stop. A handler that calls runtime.Goexit ends the goroutine, not the executor.
func (e *executors) loop(i int) {
	over := false
	defer func() {
		if over {
			e.done.Done()
			return
		}
		e.release(i)
		go e.loop(i)
	}()
	for {
		c := e.take()
		if c == nil {
			over = true
			return
		}
		e.slots[i].Store(c)
		e.run(c)
		e.release(i)
	}
}

// release makes an executor free again.
func (e *executors) release(i int) {
	c := e.slots[i].Swap(nil)
	e.mu.Lock()
	e.busy--
	if c != nil && e.suspect == c {
		e.suspect = nil
	}
	e.mu.Unlock()
	e.signal()
}

// take waits for a task that may start; nil means that the executors stop.
func (e *executors) take() *claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		if e.stopped {
			return nil
		}
		for i, c := range e.ready {
			if e.held {
				break
			}
			if !c.lane.fresh(e.life) && !c.lane.isLost(c) {
				// Another worker may have it by now. The heartbeat finds out, and wakes this executor.
				c.lane.beat()
				continue
			}
			copy(e.ready[i:], e.ready[i+1:])
			e.ready[len(e.ready)-1] = nil
			e.ready = e.ready[:len(e.ready)-1]
			e.busy++
			if e.suspect == c {
				e.since = time.Now()
			}
			return c
		}
		e.work.Wait()
	}
}

// add makes tasks ready.
func (e *executors) add(claims []*claim) {
	if len(claims) == 0 {
		return
	}
	e.mu.Lock()
	e.ready = append(e.ready, claims...)
	e.mu.Unlock()
	if len(claims) == 1 {
		e.work.Signal()
	} else {
		e.work.Broadcast()
	}
}

// takeBack removes all tasks that have not started.
func (e *executors) takeBack() []*claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	claims := e.ready
	e.ready = nil
	for _, c := range claims {
		if e.suspect == c {
			e.suspect = nil
		}
	}
	return claims
}

// admit reserves the place of the one suspect. It answers false if there is one already.
func (e *executors) admit(c *claim) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restless = time.Now().Add(suspectRest)
	if e.suspect != nil {
		return false
	}
	e.suspect, e.since = c, time.Time{}
	return true
}

// dismiss gives up the place of the suspect.
func (e *executors) dismiss(c *claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.suspect == c {
		e.suspect = nil
	}
}

// hold makes executors start nothing, until it is called with false.
func (e *executors) hold(on bool) {
	e.mu.Lock()
	e.held = on
	e.mu.Unlock()
	e.work.Broadcast()
	e.signal()
}

// room returns how many tasks may be claimed now. If none, it returns how long to wait for more room at most; 0 means
// until changed says so.
func (e *executors) room() (n int, wait time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if e.suspect != nil {
		// Alone, a suspect that kills its worker takes nothing with it that has not started.
		if e.since.IsZero() {
			return 0, suspectRest
		}
		if alone := suspectAlone - now.Sub(e.since); alone > 0 {
			return 0, alone
		}
	}
	n = e.n - e.busy - len(e.ready)
	if !now.Before(e.restless) {
		n += e.prefetch
	}
	if n > 0 {
		return n, 0
	}
	return 0, 0
}

// wake lets executors look again, after a heartbeat.
func (e *executors) wake() { e.work.Broadcast() }

// signal tells that there may be room.
func (e *executors) signal() {
	select {
	case e.changed <- struct{}{}:
	default:
	}
}

// stop lets executors end after their present task. Ready tasks must have been taken back.
func (e *executors) stop() {
	e.mu.Lock()
	e.stopped = true
	e.mu.Unlock()
	e.work.Broadcast()
}

// running returns the tasks that run.
func (e *executors) running() []*claim {
	var claims []*claim
	for i := range e.slots {
		if c := e.slots[i].Load(); c != nil {
			claims = append(claims, c)
		}
	}
	return claims
}
