package engine

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// maxEvents is how many events wait for slow listeners. Further ones are dropped and counted.
const maxEvents = 10_000

// Event is something that has happened in a worker.
type Event struct {
	Kind  event.Kind
	At    time.Time // by the clock of this process
	Queue string    // "" if the event is about the worker as a whole

	// Claim is the task that the event is about. If the sweeper has archived it, there is only Message.
	Claim   *Claim
	Message *wire.Message

	Duration time.Duration // how long the handler ran
	Wait     time.Duration // until the task is tried again; with event.TaskStarted, since it was enqueued
	Reason   state.Reason
	Err      error
	Missed   int // events that were dropped before this one
}

// listeners calls functions with events, in order, on one goroutine. The zero value has no functions.
type listeners struct {
	on        atomic.Bool   // fns is not empty
	air       *broadcast    // publishes events while somebody watches; nil: never
	fns       []func(Event) // unchanged once the worker runs
	log       loop.Journal
	trouble   loop.Complaints
	delivered chan struct{} // closed when the functions have returned from the last event

	mu     sync.Mutex // protects the following
	more   sync.Cond
	queue  []Event
	missed int
	closed bool
}

// add adds a listener. It must be called before start.
func (l *listeners) add(fn func(Event)) {
	l.fns = append(slices.Clip(l.fns), fn)
	l.on.Store(true)
}

// any reports whether somebody hears events. Ask before you make one, if that costs something.
func (l *listeners) any() bool { return l.on.Load() || l.air != nil && l.air.on.Load() }

// emit queues an event for the listeners. It never blocks.
func (l *listeners) emit(e Event) {
	if !l.any() {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	l.air.add(&e)
	if !l.on.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) >= maxEvents {
		l.missed++
		return
	}
	e.Missed, l.missed = l.missed, 0
	l.queue = append(l.queue, e)
	if len(l.queue) == 1 && l.more.L != nil {
		l.more.Signal()
	}
}

// start starts the goroutine that calls the listeners.
func (l *listeners) start(log loop.Journal) {
	if !l.on.Load() {
		return
	}
	l.mu.Lock()
	l.more.L, l.log, l.delivered = &l.mu, log, make(chan struct{})
	l.mu.Unlock()
	go l.deliver(nil, 0)
}

// stop waits until the listeners have returned from all events, but no longer than patience.
func (l *listeners) stop(patience time.Duration) {
	if !l.on.Load() {
		return
	}
	l.mu.Lock()
	l.closed = true
	l.more.Signal()
	l.mu.Unlock()
	if !loop.Await(l.delivered, patience) {
		l.log.Warn("a listener for events has not returned; the last events may not have been heard")
	}
}

// deliver calls the listeners: first with events, which an earlier goroutine has left, then with all that follow, until
// stop. The first event is for the listeners from one on.
func (l *listeners) deliver(events []Event, from int) {
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
		l.mu.Lock()
		for len(l.queue) == 0 && !l.closed {
			l.more.Wait()
		}
		events, l.queue, next = l.queue, spare[:0], 0
		l.mu.Unlock()
		spare = nil
		if len(events) == 0 {
			returned = true
			close(l.delivered)
			return
		}
	}
}

// call calls one listener, and logs if it does not return.
func (l *listeners) call(listener func(Event), e Event) {
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

// emitFor tells listeners what has happened to a claimed task. It fills in queue and claim.
func (l *listeners) emitFor(c *Claim, e Event) {
	if !l.any() {
		return
	}
	e.Queue, e.Claim = c.lane.store.Name, c
	l.emit(e)
}

// emitStart tells listeners that a handler is about to be called.
func (l *listeners) emitStart(c *Claim) {
	e := Event{Kind: event.TaskStarted}
	if at := c.msg.Meta.EnqueuedAt; at > 0 {
		e.Wait = max(c.lane.now().Sub(time.UnixMilli(at)), 0)
	}
	l.emitFor(c, e)
}

// emitSwept tells listeners that the sweeper has archived a task; msg is nil if the message was not read.
func (l *listeners) emitSwept(queue string, msg *wire.Message, reason state.Reason, err error) {
	if !l.any() {
		return
	}
	l.emit(Event{Kind: event.TaskArchived, Queue: queue, Message: msg, Reason: reason, Err: err})
}
