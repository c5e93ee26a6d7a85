package engine

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// lookAtLeast is the number of heartbeats after which a worker looks at the control hash also if it has nothing to do.
// One that has claims or is held back looks with each of them.
const lookAtLeast = 4

// laneControl is what a lane knows of the control hash of its queue.
type laneControl struct {
	paused atomic.Bool  // claim nothing
	intent atomic.Bool  // there is something whose end must not be missed
	weight atomic.Int32 // in place of the configured one; 0: none
	poke   chan struct{}

	trouble loop.Complaints
	looking sync.Mutex         // one look at a time, so that none is overtaken by an older one
	last    redisstore.Control // what it found
	version atomic.Int64       // of last; -1: there was none yet
	looks   atomic.Int64       // moves on with every look
	since   atomic.Int64       // when the worker has registered first, ms by Redis's clock; 0: not yet
}

// lookAgain asks for a look at the control hash.
func (l *lane) lookAgain() {
	select {
	case l.control.poke <- struct{}{}:
	default:
	}
}

// versionIs notes the version of the control hash that Redis has now.
func (l *lane) versionIs(version int64) {
	if version != l.control.version.Load() {
		l.lookAgain()
	}
}

// pausedRest is how long a queue is left alone whose control hash must be looked at.
const pausedRest = 20 * time.Millisecond

// queueRest says how long a queue is left alone.
type queueRest struct {
	until time.Time
	looks int64 // if not 0: it is over when as many looks at the control hash have come, or more
}

// restWhilePaused leaves the lane alone, whose queue was found paused, until the worker has looked at the control hash,
// and asks for that. What that look finds holds: the queue may have been resumed already. A look that was under way may
// be older, and then the next claim is refused again.
func (l *lane) restWhilePaused() {
	l.rest = queueRest{until: time.Now().Add(pausedRest), looks: l.control.looks.Load() + 1}
	l.lookAgain()
}

// restsUntil returns the time before which the lane is left alone.
func (l *lane) restsUntil() time.Time {
	if l.rest.looks != 0 && l.control.looks.Load() >= l.rest.looks {
		return time.Time{}
	}
	return l.rest.until
}

// queuePaused says whether the lane's queue is paused, as far as is known.
func (l *lane) queuePaused() bool { return l.control.paused.Load() }

// follow does what the control hash of a lane's queue says, until ctx ends. Signals tell of changes, and the heartbeat
// does when signals are lost.
func (w *Worker) follow(ctx context.Context, l *lane) {
	told, unsubscribe := w.cfg.Signals.SubscribeQueue(l.store) //nolint:contextcheck // its connection serves others
	defer unsubscribe()
	for {
		select {
		case message := <-told:
			switch word, id, _ := strings.Cut(message, " "); word {
			case signalCancel:
				l.noteCanceled(id)
				w.cancelRunning(l)
				continue
			case redisstore.SignalParked:
				if w.knows(id) {
					w.moveNow()
				}
				continue
			case "": // that tasks were parked may have been missed
				w.moveNow()
			case signalControl:
			default:
				continue // of a later version
			}
		case <-l.control.poke:
		case <-ctx.Done():
			return
		}
		if err := w.look(ctx, l); err != nil && ctx.Err() == nil {
			// The next heartbeat finds the version still to be another one.
			w.log.With("queue", l.store.Name).WithError(err).Debug("cannot look at the control hash")
		}
	}
}

const (
	// signalControl is published when the control hash has changed.
	signalControl = "control"
	// signalCancel is published with an id behind it, when a task was cancelled that may be active.
	signalCancel = "cancel"
)

// look reads the control hash and does what it says.
func (w *Worker) look(ctx context.Context, l *lane) error {
	lc := &l.control
	lc.looking.Lock()
	defer lc.looking.Unlock()
	now, err := l.store.Control(ctx, w.id)
	if err != nil {
		return err
	}
	// In this order: what was cancelled before that version is among them.
	if now.Version != 0 {
		err = w.lookRevoked(ctx, l)
	} else {
		l.noteRevoked(nil, true)
	}
	if err != nil {
		return err
	}
	last := lc.last
	if lc.version.Load() < 0 && !now.RestartedAfter(lc.since.Load()) {
		last.Restart = now.Restart // that was before this worker
	}
	lc.last = now
	lc.intent.Store(now.Paused || now.Order != "")
	lc.weight.Store(int32(min(max(now.Weight, 0), MaxWeight))) //nolint:gosec // within these bounds
	paused := lc.paused.Swap(now.Paused)
	lc.looks.Add(1)
	if paused != now.Paused {
		w.pauseLane(l, now.Paused)
	} else if !now.Paused {
		w.exec.signal() // the fetcher may have waited for this look
	}
	if now.Order != last.Order {
		w.obey(last.Order, now.Order)
	}
	if now.Restart != "" && now.Restart != last.Restart {
		w.stopFor(stopRestart)
	}
	lc.version.Store(now.Version)
	return nil
}

// pauseLane gives back what has not started when a queue is paused, and has it claimed from when it is resumed.
func (w *Worker) pauseLane(l *lane, paused bool) {
	log := w.log.With("queue", l.store.Name)
	if !paused {
		log.Info("queue resumed")
		w.emit(Event{Kind: event.QueueResumed, Queue: l.store.Name})
		w.exec.signal()
		return
	}
	log.Info("queue paused: no more of its tasks are claimed")
	w.emit(Event{Kind: event.QueuePaused, Queue: l.store.Name})
	w.giveBack(w.exec.takeBackOf(l))
}

// obey does what was ordered for this worker on one of its queues. An order that is withdrawn is a pause that is over.
func (w *Worker) obey(last, order string) {
	switch order {
	case OrderPause:
		w.Pause()
	case OrderQuiet:
		w.Quiet()
	case OrderStop:
		w.stopFor(stopOrder)
	case "":
		if last == OrderPause {
			w.Resume()
		}
	}
}

// takeBackOf removes all tasks of one lane that have not started.
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
			e.release(c)
		}
	}
	e.ready = kept
	return claims
}

// MaxWeight bounds the weight of a queue.
const MaxWeight = 1000

// Orders to one worker.
const (
	OrderPause = "pause"
	OrderQuiet = "quiet"
	OrderStop  = "stop"
)
