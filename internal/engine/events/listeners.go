// Package events publishes what happens in a worker: Listeners calls the functions of this process, in order, and
// Broadcast publishes the events of queues that somebody watches from elsewhere.
package events

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// MaxEvents is how many events wait for slow listeners. Further ones are dropped and counted.
const MaxEvents = 10_000

// Event is something that has happened in a worker.
type Event struct {
	Kind  event.Kind
	At    time.Time // by the clock of this process
	Queue string    // "" if the event is about the worker as a whole

	// Claim is the task that the event is about. If the sweeper has archived it, there is only Message.
	Claim   *lane.Claim
	Message *wire.Message

	Duration time.Duration // how long the handler ran
	Wait     time.Duration // until the task is tried again; with event.TaskStarted, since it was enqueued
	Reason   state.Reason
	Err      error
	Missed   int // events that were dropped before this one
}

// Listeners calls functions with events, in order, on one goroutine. The zero value has no functions.
type Listeners struct {
	on        atomic.Bool   // fns is not empty
	Air       *Broadcast    // publishes events while somebody watches; nil: never
	fns       []func(Event) // unchanged once the worker runs
	log       loop.Journal
	trouble   loop.Complaints
	Delivered chan struct{} // closed when the functions have returned from the last event

	Mu     sync.Mutex // protects the following
	more   sync.Cond
	Queue  []Event
	missed int
	closed bool
}

// Add adds a listener. It must be called before start.
func (l *Listeners) Add(fn func(Event)) {
	l.fns = append(slices.Clip(l.fns), fn)
	l.on.Store(true)
}

// Any reports whether somebody hears events. Ask before you make one, if that costs something.
func (l *Listeners) Any() bool { return l.on.Load() || l.Air != nil && l.Air.on.Load() }

// Emit queues an event for the listeners. It never blocks.
func (l *Listeners) Emit(e Event) {
	if !l.Any() {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	l.Air.add(&e)
	if !l.on.Load() {
		return
	}
	l.Mu.Lock()
	defer l.Mu.Unlock()
	if len(l.Queue) >= MaxEvents {
		l.missed++
		return
	}
	e.Missed, l.missed = l.missed, 0
	l.Queue = append(l.Queue, e)
	if len(l.Queue) == 1 && l.more.L != nil {
		l.more.Signal()
	}
}

// Start starts the goroutine that calls the listeners.
func (l *Listeners) Start(log loop.Journal) {
	if !l.on.Load() {
		return
	}
	l.Mu.Lock()
	l.more.L, l.log, l.Delivered = &l.Mu, log, make(chan struct{})
	l.Mu.Unlock()
	go l.deliver(nil, 0)
}

// Stop waits until the listeners have returned from all events, but no longer than patience.
func (l *Listeners) Stop(patience time.Duration) {
	if !l.on.Load() {
		return
	}
	l.Mu.Lock()
	l.closed = true
	l.more.Signal()
	l.Mu.Unlock()
	if !loop.Await(l.Delivered, patience) {
		l.log.Warn("a listener for events has not returned; the last events may not have been heard")
	}
}

// deliver calls the listeners: first with events, which an earlier goroutine has left, then with all that follow, until
// stop. The first event is for the listeners from one on.
func (l *Listeners) deliver(events []Event, from int) {
	next, first, returned := 0, from, false
	defer func() {
		if !returned {
			// A listener, or the logger, has ended this goroutine by runtime.Goexit. The listeners behind it have not
			// heard the event.
			go l.deliver(events[next:], first)
		}
	}()
	var spare []Event
	for {
		for next < len(events) {
			for first < len(l.fns) {
				first++
				l.call(l.fns[first-1], events[next])
			}
			first = 0
			next++
		}
		clear(events) // lets go of their claims
		if cap(events) > cap(spare) {
			spare = events
		}
		l.Mu.Lock()
		for len(l.Queue) == 0 && !l.closed {
			l.more.Wait()
		}
		events, l.Queue, next = l.Queue, spare[:0], 0
		l.Mu.Unlock()
		spare = nil
		if len(events) == 0 {
			returned = true
			close(l.Delivered)
			return
		}
	}
}

// call calls one listener, and logs if it does not return.
func (l *Listeners) call(listener func(Event), e Event) {
	returned := false
	defer func() {
		switch p := recover(); {
		case p != nil:
			l.log.Trouble(&l.trouble, "a listener panicked", function.NewPanic(p))
		case !returned:
			l.log.Trouble(&l.trouble, "a listener ended its goroutine by runtime.Goexit; let it return",
				function.NewPanic(nil))
		}
	}()
	listener(e)
	returned = true
}

// EmitFor emits an event about a claimed task. It fills in queue and claim.
func (l *Listeners) EmitFor(c *lane.Claim, e Event) {
	if !l.Any() {
		return
	}
	e.Queue, e.Claim = c.Lane.Store.Name, c
	l.Emit(e)
}

// EmitStart emits that a handler is about to be called.
func (l *Listeners) EmitStart(c *lane.Claim) {
	e := Event{Kind: event.TaskStarted}
	if at := c.Msg.Meta.EnqueuedAt; at > 0 {
		e.Wait = max(c.Lane.Now().Sub(time.UnixMilli(at)), 0)
	}
	l.EmitFor(c, e)
}

// EmitSwept emits that the sweeper has archived a task; msg is nil if the message was not read.
func (l *Listeners) EmitSwept(queue string, msg *wire.Message, reason state.Reason, err error) {
	if !l.Any() {
		return
	}
	l.Emit(Event{Kind: event.TaskArchived, Queue: queue, Message: msg, Reason: reason, Err: err})
}
