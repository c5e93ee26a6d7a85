package engine

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// controlReaders bounds the queues of a slot whose control hashes are read at once. When a worker of ten thousand
// queues starts, all want to, and each would make a connection of its own.
const controlReaders = 8

const (
	// signalControl is published when a control hash has changed.
	signalControl = "control"
	// signalCancel is published, followed by an id, when a task was canceled that may be active.
	signalCancel = "cancel"
)

// follow carries out what the control hash of a queue says, until ctx ends. Signals announce changes; heartbeats find
// those whose signals were lost.
func (w *Worker) follow(ctx context.Context, l *lane.Lane) {
	signals, unsubscribe := w.cfg.Signals.SubscribeQueue(l.Store) //nolint:contextcheck // its connection serves others
	defer unsubscribe()
	watches, unwatch := w.cfg.Signals.SubscribeWatch(l.Store) //nolint:contextcheck // its connection serves others
	defer unwatch()
	for {
		select {
		case life := <-watches:
			if ms, err := strconv.Atoi(life); err == nil && ms > 0 {
				w.events.Air.Watch(l.Store, time.Duration(min(ms, math.MaxInt32))*time.Millisecond)
			}
			continue
		case message := <-signals:
			switch word, id, _ := strings.Cut(message, " "); word {
			case signalCancel:
				l.NoteCanceled(id)
				w.exec.CancelRevoked(l)
				continue
			case redisstore.SignalParked:
				if w.receiver.Knows(id) {
					w.PokeMovers()
				}
				continue
			case "": // signals were lost, maybe that of a parked task
				w.PokeMovers()
			case signalControl:
			default:
				continue // a later version of this package sends it
			}
		case <-l.Control.Poked:
		case <-ctx.Done():
			return
		}
		select {
		case l.Control.Turns <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := w.ReadControl(ctx, l)
		<-l.Control.Turns
		if err != nil && ctx.Err() == nil {
			// The next heartbeat finds the new version again.
			w.log.With("queue", l.Store.Name).WithError(err).Debug("cannot read the control hash")
		}
	}
}

// ReadControl reads the control hash of a queue and carries out what it says.
func (w *Worker) ReadControl(ctx context.Context, l *lane.Lane) error {
	lc := &l.Control
	lc.Reading.Lock()
	defer lc.Reading.Unlock()
	now, err := l.Store.Control(ctx, w.id)
	if err != nil {
		return err
	}
	// Read the ids after the version: then they include all tasks that were canceled before it.
	if now.Version != 0 {
		err = w.readRevoked(ctx, l)
	} else {
		l.NoteRevoked(nil, true)
	}
	if err != nil {
		return err
	}
	last := lc.Last
	if lc.Version.Load() < 0 && !now.RestartedAfter(lc.Since.Load()) {
		last.Restart = now.Restart // it was meant for workers before this one
	}
	lc.Last = now
	lc.ReadOften.Store(now.Paused || now.Order != "")
	lc.Weight.Store(int32(min(max(now.Weight, 0), MaxWeight))) //nolint:gosec // within these bounds
	paused := lc.Paused.Swap(now.Paused)
	lc.Reads.Add(1)
	if paused != now.Paused {
		w.pauseLane(l, now.Paused)
	} else if !now.Paused {
		w.exec.WakeFetcher() // it may have waited for this reading
	}
	if now.Order != last.Order {
		w.obeyOrder(last.Order, now.Order)
	}
	if now.Restart != "" && now.Restart != last.Restart {
		w.StopFor(state.StopRestart)
	}
	lc.Version.Store(now.Version)
	return nil
}

// pauseLane gives back the tasks of a paused queue that have not started, and lets the fetcher claim from a resumed
// one.
func (w *Worker) pauseLane(l *lane.Lane, paused bool) {
	log := w.log.With("queue", l.Store.Name)
	if !paused {
		log.Info("queue resumed")
		w.events.Emit(events.Event{Kind: event.QueueResumed, Queue: l.Store.Name})
		w.exec.WakeFetcher()
		return
	}
	log.Info("queue paused: this worker claims no more of its tasks")
	w.events.Emit(events.Event{Kind: event.QueuePaused, Queue: l.Store.Name})
	lane.GiveBack(w.exec.TakeBack(l))
}

// obeyOrder carries out an order to this worker. last is the order before; withdrawing a pause resumes the worker.
func (w *Worker) obeyOrder(last, order string) {
	switch order {
	case OrderPause:
		w.Pause()
	case OrderQuiet:
		w.Quiet()
	case OrderStop:
		w.StopFor(state.StopOrder)
	case "":
		if last == OrderPause {
			w.Resume()
		}
	}
}

// readRevoked reads which tasks were canceled, and cancels those that run here.
func (w *Worker) readRevoked(ctx context.Context, l *lane.Lane) error {
	ids, all, err := l.Store.Revoked(ctx, lane.MaxRevoked)
	if err != nil {
		return err
	}
	l.NoteRevoked(ids, all)
	if !all {
		if err := lane.EachRevoked(ctx, l.Store, w.exec.IDsOf(l), l.NoteCanceled); err != nil {
			return err
		}
	}
	if len(ids) > 0 {
		w.exec.CancelRevoked(l)
	}
	return nil
}

// MaxWeight bounds the weight of a queue.
const MaxWeight = 1000

// Orders to one worker.
const (
	OrderPause = "pause"
	OrderQuiet = "quiet"
	OrderStop  = "stop"
)
