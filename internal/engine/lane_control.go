package engine

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// lookAtLeast is the number of heartbeats after which a worker looks at the control hash also if it has nothing to do.
// One that has claims or is held back looks with each of them.
const lookAtLeast = 4

// laneControl is what a lane knows of the control hash of its queue.
type laneControl struct {
	Paused atomic.Bool  // claim nothing
	Intent atomic.Bool  // there is something whose end must not be missed
	Weight atomic.Int32 // in place of the configured one; 0: none
	Poke   chan struct{}

	trouble loop.Complaints
	Looking sync.Mutex         // one look at a time, so that none is overtaken by an older one
	last    redisstore.Control // what it found
	Version atomic.Int64       // of last; -1: there was none yet
	looks   atomic.Int64       // moves on with every look
	since   atomic.Int64       // when the worker has registered first, ms by Redis's clock; 0: not yet
}

// lookAgain asks for a look at the control hash.
func (l *Lane) lookAgain() {
	select {
	case l.Control.Poke <- struct{}{}:
	default:
	}
}

// versionIs notes the version of the control hash that Redis has now.
func (l *Lane) versionIs(version int64) {
	if version != l.Control.Version.Load() {
		l.lookAgain()
	}
}

// pausedRest is how long a queue is left alone whose control hash must be looked at.
const pausedRest = 20 * time.Millisecond

// QueueRest says how long a queue is left alone.
type QueueRest struct {
	Until time.Time
	looks int64 // if not 0: it is over when as many looks at the control hash have come, or more
}

// RestWhilePaused leaves the lane alone, whose queue was found paused, until the worker has looked at the control hash,
// and asks for that. What that look finds holds: the queue may have been resumed already. A look that was under way may
// be older, and then the next claim is refused again.
func (l *Lane) RestWhilePaused() {
	l.Rest = QueueRest{Until: time.Now().Add(pausedRest), looks: l.Control.looks.Load() + 1}
	l.lookAgain()
}

// RestsUntil returns the time before which the lane is left alone.
func (l *Lane) RestsUntil() time.Time {
	if l.Rest.looks != 0 && l.Control.looks.Load() >= l.Rest.looks {
		return time.Time{}
	}
	return l.Rest.Until
}

// QueuePaused says whether the lane's queue is paused, as far as is known.
func (l *Lane) QueuePaused() bool { return l.Control.Paused.Load() }

// follow does what the control hash of a lane's queue says, until ctx ends. Signals tell of changes, and the heartbeat
// does when signals are lost.
func (w *Worker) follow(ctx context.Context, l *Lane) {
	told, unsubscribe := w.Cfg.Signals.SubscribeQueue(l.Store) //nolint:contextcheck // its connection serves others
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
					w.MoveNow()
				}
				continue
			case "": // that tasks were parked may have been missed
				w.MoveNow()
			case SignalControl:
			default:
				continue // of a later version
			}
		case <-l.Control.Poke:
		case <-ctx.Done():
			return
		}
		if err := w.Look(ctx, l); err != nil && ctx.Err() == nil {
			// The next heartbeat finds the version still to be another one.
			w.Log.With("queue", l.Store.Name).WithError(err).Debug("cannot look at the control hash")
		}
	}
}

const (
	// SignalControl is published when the control hash has changed.
	SignalControl = "control"
	// signalCancel is published with an id behind it, when a task was cancelled that may be active.
	signalCancel = "cancel"
)

// Look reads the control hash and does what it says.
func (w *Worker) Look(ctx context.Context, l *Lane) error {
	lc := &l.Control
	lc.Looking.Lock()
	defer lc.Looking.Unlock()
	now, err := l.Store.Control(ctx, w.UID)
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
	if lc.Version.Load() < 0 && !now.RestartedAfter(lc.since.Load()) {
		last.Restart = now.Restart // that was before this worker
	}
	lc.last = now
	lc.Intent.Store(now.Paused || now.Order != "")
	lc.Weight.Store(int32(min(max(now.Weight, 0), MaxWeight))) //nolint:gosec // within these bounds
	paused := lc.Paused.Swap(now.Paused)
	lc.looks.Add(1)
	if paused != now.Paused {
		w.pauseLane(l, now.Paused)
	} else if !now.Paused {
		w.Exec.signal() // the fetcher may have waited for this look
	}
	if now.Order != last.Order {
		w.obey(last.Order, now.Order)
	}
	if now.Restart != "" && now.Restart != last.Restart {
		w.StopFor(StopRestart)
	}
	lc.Version.Store(now.Version)
	return nil
}

// pauseLane gives back what has not started when a queue is paused, and has it claimed from when it is resumed.
func (w *Worker) pauseLane(l *Lane, paused bool) {
	log := w.Log.With("queue", l.Store.Name)
	if !paused {
		log.Info("queue resumed")
		w.Emit(Event{Kind: KindQueueResumed, Queue: l.Store.Name})
		w.Exec.signal()
		return
	}
	log.Info("queue paused: no more of its tasks are claimed")
	w.Emit(Event{Kind: KindQueuePaused, Queue: l.Store.Name})
	w.GiveBack(w.Exec.TakeBackOf(l))
}

// obey does what was ordered for this worker on one of its queues. An order that is withdrawn is a pause that is over.
func (w *Worker) obey(last, order string) {
	switch order {
	case OrderPause:
		w.Pause()
	case OrderQuiet:
		w.Quiet()
	case OrderStop:
		w.StopFor(StopOrder)
	case "":
		if last == OrderPause {
			w.Resume()
		}
	}
}

// TakeBackOf removes all tasks of one lane that have not started.
func (e *Executors) TakeBackOf(l *Lane) (claims []*Claim) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	kept := make([]*Claim, 0, len(e.Ready))
	for _, c := range e.Ready {
		if c.Lane != l {
			kept = append(kept, c)
			continue
		}
		claims = append(claims, c)
		if c.Suspicion > 0 {
			e.release(c)
		}
	}
	e.Ready = kept
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
