package engine

import (
	"context"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// controlReaders bounds the queues of a slot whose control hashes are read at once. When a worker of ten thousand
// queues starts, all want to, and each would make a connection of its own.
const controlReaders = 8

const (
	// signalControl is published when a control hash has changed.
	signalControl = "control"
	// signalCancel is published, followed by an id, when a task was cancelled that may be active.
	signalCancel = "cancel"
)

// follow carries out what the control hash of a queue says, until ctx ends. Signals announce changes; heartbeats find
// those whose signals were lost.
func (w *Worker) follow(ctx context.Context, l *lane) {
	signals, unsubscribe := w.cfg.Signals.SubscribeQueue(l.store) //nolint:contextcheck // its connection serves others
	defer unsubscribe()
	watches, unwatch := w.cfg.Signals.SubscribeWatch(l.store) //nolint:contextcheck // its connection serves others
	defer unwatch()
	for {
		select {
		case life := <-watches:
			if ms, err := strconv.Atoi(life); err == nil && ms > 0 {
				w.events.air.watch(l.store, time.Duration(min(ms, math.MaxInt32))*time.Millisecond)
			}
			continue
		case message := <-signals:
			switch word, id, _ := strings.Cut(message, " "); word {
			case signalCancel:
				l.noteCanceled(id)
				w.exec.cancelRevoked(l)
				continue
			case redisstore.SignalParked:
				if w.receiver.knows(id) {
					w.pokeMovers()
				}
				continue
			case "": // signals were lost, maybe that of a parked task
				w.pokeMovers()
			case signalControl:
			default:
				continue // a later version of this package sends it
			}
		case <-l.control.poke:
		case <-ctx.Done():
			return
		}
		select {
		case l.control.turns <- struct{}{}:
		case <-ctx.Done():
			return
		}
		err := w.readControl(ctx, l)
		<-l.control.turns
		if err != nil && ctx.Err() == nil {
			// The next heartbeat finds the new version again.
			w.log.With("queue", l.store.Name).WithError(err).Debug("cannot read the control hash")
		}
	}
}

// readControl reads the control hash of a queue and carries out what it says.
func (w *Worker) readControl(ctx context.Context, l *lane) error {
	lc := &l.control
	lc.reading.Lock()
	defer lc.reading.Unlock()
	now, err := l.store.Control(ctx, w.id)
	if err != nil {
		return err
	}
	// Read the ids after the version: then they include all tasks that were cancelled before it.
	if now.Version != 0 {
		err = w.readRevoked(ctx, l)
	} else {
		l.noteRevoked(nil, true)
	}
	if err != nil {
		return err
	}
	last := lc.last
	if lc.version.Load() < 0 && !now.RestartedAfter(lc.since.Load()) {
		last.Restart = now.Restart // it was meant for workers before this one
	}
	lc.last = now
	lc.readOften.Store(now.Paused || now.Order != "")
	lc.weight.Store(int32(min(max(now.Weight, 0), MaxWeight))) //nolint:gosec // within these bounds
	paused := lc.paused.Swap(now.Paused)
	lc.reads.Add(1)
	if paused != now.Paused {
		w.pauseLane(l, now.Paused)
	} else if !now.Paused {
		w.exec.wakeFetcher() // it may have waited for this reading
	}
	if now.Order != last.Order {
		w.obeyOrder(last.Order, now.Order)
	}
	if now.Restart != "" && now.Restart != last.Restart {
		w.stopFor(state.StopRestart)
	}
	lc.version.Store(now.Version)
	return nil
}

// pauseLane gives back the tasks of a paused queue that have not started, and lets the fetcher claim from a resumed
// one.
func (w *Worker) pauseLane(l *lane, paused bool) {
	log := w.log.With("queue", l.store.Name)
	if !paused {
		log.Info("queue resumed")
		w.events.emit(Event{Kind: event.QueueResumed, Queue: l.store.Name})
		w.exec.wakeFetcher()
		return
	}
	log.Info("queue paused: this worker claims no more of its tasks")
	w.events.emit(Event{Kind: event.QueuePaused, Queue: l.store.Name})
	giveBack(w.exec.takeBackOf(l))
}

// obeyOrder carries out an order to this worker. last is the order before; withdrawing a pause resumes the worker.
func (w *Worker) obeyOrder(last, order string) {
	switch order {
	case OrderPause:
		w.Pause()
	case OrderQuiet:
		w.Quiet()
	case OrderStop:
		w.stopFor(state.StopOrder)
	case "":
		if last == OrderPause {
			w.Resume()
		}
	}
}

// readRevoked reads which tasks were cancelled, and cancels those that run here.
func (w *Worker) readRevoked(ctx context.Context, l *lane) error {
	ids, all, err := l.store.Revoked(ctx, maxRevoked)
	if err != nil {
		return err
	}
	l.noteRevoked(ids, all)
	for mine := w.exec.idsOf(l); !all && len(mine) > 0; {
		n := min(len(mine), maxRevoked)
		revoked, err := l.store.AreRevoked(ctx, mine[:n])
		if err != nil {
			return err
		}
		for i, id := range mine[:n] {
			if revoked[i] {
				l.noteCanceled(id)
			}
		}
		mine = mine[n:]
	}
	if len(ids) > 0 {
		w.exec.cancelRevoked(l)
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
