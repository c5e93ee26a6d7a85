package engine

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// MaxEvents is how many events wait for listeners that are slow; further ones are dropped and counted.
const MaxEvents = 10_000

// Listen has fn called with every event, in their order, on a goroutine of its own. Call it before Run.
func (w *Worker) Listen(fn func(Event)) error {
	w.control.Lock()
	defer w.control.Unlock()
	if w.Begun() {
		return fmt.Errorf("%w: Listen after Run: call it before", redisstore.ErrClosed)
	}
	w.Hooks.Listeners = append(slices.Clip(w.Hooks.Listeners), fn)
	w.Hooks.On.Store(true)
	return nil
}

// listened says whether events are to be made at all: where making one costs something, ask before.
func (w *Worker) listened() bool { return w.Hooks.On.Load() }

// Emit tells listeners of an event. It never blocks.
func (w *Worker) Emit(e Event) { w.Hooks.Emit(e) }

// Hooks hands events to listeners. The zero value has none.
type Hooks struct {
	On        atomic.Bool   // there are listeners
	Listeners []func(Event) // unchanged once the worker runs
	log       loop.Journal
	trouble   loop.Complaints
	Over      chan struct{} // closed when the last event was heard

	Mu     sync.Mutex // protects the following
	more   sync.Cond
	Queue  []Event
	missed int
	closed bool
}

// Emit adds an event to those that listeners are to hear. A nil hooks has no listeners.
func (h *Hooks) Emit(e Event) {
	if h == nil || !h.On.Load() {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	h.Mu.Lock()
	defer h.Mu.Unlock()
	if len(h.Queue) >= MaxEvents {
		h.missed++
		return
	}
	e.Missed, h.missed = h.missed, 0
	h.Queue = append(h.Queue, e)
	if len(h.Queue) == 1 && h.more.L != nil {
		h.more.Signal()
	}
}

// Start begins to tell listeners.
func (h *Hooks) Start(log loop.Journal) {
	if !h.On.Load() {
		return
	}
	h.Mu.Lock()
	h.more.L, h.log, h.Over = &h.Mu, log, make(chan struct{})
	h.Mu.Unlock()
	go h.tell(nil)
}

// Stop waits until all events were heard, for as long as patience says.
func (h *Hooks) Stop(patience time.Duration) {
	if !h.On.Load() {
		return
	}
	h.Mu.Lock()
	h.closed = true
	h.more.Signal()
	h.Mu.Unlock()
	if !waitFor(h.Over, patience) {
		h.log.Warn("a listener for events has not returned; the last events may not have been heard")
	}
}

// tell calls the listeners: for events that were taken from the queue before, then for all that come, until the hooks
// are closed.
func (h *Hooks) tell(events []Event) {
	next, returned := 0, false
	defer func() {
		if !returned {
			go h.tell(events[next:]) // a listener has ended this goroutine
		}
	}()
	var spare []Event
	for {
		for next < len(events) {
			e := events[next]
			next++
			for _, listener := range h.Listeners {
				h.call(listener, e)
			}
		}
		clear(events) // or they would hold on to their tasks
		if cap(events) > cap(spare) {
			spare = events
		}
		h.Mu.Lock()
		for len(h.Queue) == 0 && !h.closed {
			h.more.Wait()
		}
		events, h.Queue, next = h.Queue, spare[:0], 0
		h.Mu.Unlock()
		spare = nil
		if len(events) == 0 {
			returned = true
			close(h.Over)
			return
		}
	}
}

// call calls one listener.
func (h *Hooks) call(listener func(Event), e Event) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Trouble(&h.trouble, "a listener panicked", function.NewPanic(p))
		}
	}()
	listener(e)
}
