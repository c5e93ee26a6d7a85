package engine

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
)

// maxEvents is how many events wait for listeners that are slow; further ones are dropped and counted.
const maxEvents = 10_000

// listeners hands events to listeners. The zero value has none.
type listeners struct {
	on        atomic.Bool   // there are listeners
	listeners []func(Event) // unchanged once the worker runs
	log       loop.Journal
	trouble   loop.Complaints
	over      chan struct{} // closed when the last event was heard

	mu     sync.Mutex // protects the following
	more   sync.Cond
	queue  []Event
	missed int
	closed bool
}

// emit adds an event to those that listeners are to hear. A nil hooks has no listeners.
func (h *listeners) emit(e Event) {
	if h == nil || !h.on.Load() {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.queue) >= maxEvents {
		h.missed++
		return
	}
	e.Missed, h.missed = h.missed, 0
	h.queue = append(h.queue, e)
	if len(h.queue) == 1 && h.more.L != nil {
		h.more.Signal()
	}
}

// start begins to tell listeners.
func (h *listeners) start(log loop.Journal) {
	if !h.on.Load() {
		return
	}
	h.mu.Lock()
	h.more.L, h.log, h.over = &h.mu, log, make(chan struct{})
	h.mu.Unlock()
	go h.deliver(nil)
}

// stop waits until all events were heard, for as long as patience says.
func (h *listeners) stop(patience time.Duration) {
	if !h.on.Load() {
		return
	}
	h.mu.Lock()
	h.closed = true
	h.more.Signal()
	h.mu.Unlock()
	if !waitFor(h.over, patience) {
		h.log.Warn("a listener for events has not returned; the last events may not have been heard")
	}
}

// deliver calls the listeners: for events that were taken from the queue before, then for all that come, until the hooks
// are closed.
func (h *listeners) deliver(events []Event) {
	next, returned := 0, false
	defer func() {
		if !returned {
			go h.deliver(events[next:]) // a listener has ended this goroutine
		}
	}()
	var spare []Event
	for {
		for next < len(events) {
			e := events[next]
			next++
			for _, listener := range h.listeners {
				h.call(listener, e)
			}
		}
		clear(events) // or they would hold on to their tasks
		if cap(events) > cap(spare) {
			spare = events
		}
		h.mu.Lock()
		for len(h.queue) == 0 && !h.closed {
			h.more.Wait()
		}
		events, h.queue, next = h.queue, spare[:0], 0
		h.mu.Unlock()
		spare = nil
		if len(events) == 0 {
			returned = true
			close(h.over)
			return
		}
	}
}

// call calls one listener.
func (h *listeners) call(listener func(Event), e Event) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Trouble(&h.trouble, "a listener panicked", function.NewPanic(p))
		}
	}()
	listener(e)
}
