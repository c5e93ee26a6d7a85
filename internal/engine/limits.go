package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Why a worker stops, as WorkerStatus.StopReason, its log and event.WorkerStopping say it.
const (
	stopContext = "context"    // the context of Run has ended
	stopClosed  = "closed"     // the handle on Redis was closed
	stopTasks   = "max tasks"  // WorkerConfig.MaxTasks have ended, or the one of Once
	stopTime    = "max time"   // it has run for WorkerConfig.MaxTime
	stopMemory  = "max memory" // the process has more than WorkerConfig.MaxMemory
	stopEmpty   = "empty"      // its queues are empty, as StopWhenEmpty, StopWhenEmptyFor or Once want it
	stopStuck   = "stuck"      // too many handlers are stuck
	stopRestart = "restart"    // Queue.Restart
	stopOrder   = "order"      // WorkerControl.Stop

	stopSettings = "settings" // Redis came back with settings that lose tasks
)

const (
	// memoryInterval is the time between two looks at the memory of the process.
	memoryInterval = time.Second
	// emptyInterval and emptyMost bound the time between two looks whether there is anything to do.
	emptyInterval = 50 * time.Millisecond
	emptyMost     = time.Second
)

// stopFor makes the worker stop as if the context of Run had ended. The first reason holds. It never blocks and may be
// called at any time.
func (w *Worker) stopFor(reason string) {
	if w.reason.CompareAndSwap(nil, &reason) {
		close(w.stopping)
	}
}

// stopReason returns why the worker stops, "" if it does not.
func (w *Worker) stopReason() string {
	if reason := w.reason.Load(); reason != nil {
		return *reason
	}
	return ""
}

// allow prepares the limits that the executors keep.
func (w *Worker) allow() {
	w.exec.rest = w.cfg.Rest
	w.exec.limited, w.exec.budget = w.cfg.MaxTasks > 0, w.cfg.MaxTasks
	w.exec.onSpent = func() { w.stopFor(stopTasks) }
}

// watches returns what keeps the other limits, and notices for listeners that the worker is idle: functions that end
// with their context.
func (w *Worker) watches() (watches []func(context.Context)) {
	if w.cfg.MaxTime > 0 {
		watches = append(watches, func(ctx context.Context) {
			if loop.Sleep(ctx, w.cfg.MaxTime) {
				w.stopFor(stopTime)
			}
		})
	}
	if w.cfg.MaxMemory > 0 {
		watches = append(watches, w.watchMemory)
	}
	v := &vacancy{worker: w, limit: -1, listened: w.listened()}
	switch {
	case w.cfg.StopWhenEmptyFor > 0:
		v.limit = w.cfg.StopWhenEmptyFor
	case w.cfg.StopWhenEmpty:
		v.limit = 0
	case !v.listened:
		return watches
	}
	return append(watches, v.run)
}

// watchMemory stops the worker when the process has too much memory.
func (w *Worker) watchMemory(ctx context.Context) {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if used := memoryUsed(); used > w.cfg.MaxMemory {
			w.log.WithField("bytes", used).WithField("limit",
				w.cfg.MaxMemory).Warn("the process has more memory than WorkerConfig.MaxMemory")
			w.stopFor(stopMemory)
			return
		}
	}
}

// vacancy finds out when a worker has nothing to do.
type vacancy struct {
	worker *Worker
	// for how long there must be nothing to do until the worker stops; negative: it does not stop
	limit    time.Duration
	listened bool // listeners are told

	since  time.Time // nothing was to be done
	starts uint64    // tasks that had started then
	told   bool      // listeners know
}

// run looks until ctx ends.
func (v *vacancy) run(ctx context.Context) {
	interval := emptyMost
	if v.limit >= 0 {
		interval = min(max(v.limit/10, emptyInterval), emptyMost)
	}
	v.since = time.Now()
	for loop.Sleep(ctx, interval) {
		if v.look(ctx, time.Now()) {
			v.worker.stopFor(stopEmpty)
			return
		}
	}
}

// look says whether there has been nothing to do for long enough. It asks Redis only when that matters.
func (v *vacancy) look(ctx context.Context, now time.Time) (enough bool) {
	still, starts := v.worker.exec.stillness()
	if !still || starts != v.starts {
		v.since, v.starts, v.told = now, starts, false
		return false
	}
	over := v.limit >= 0 && now.Sub(v.since) >= v.limit
	if !over && (!v.listened || v.told) {
		return false
	}
	empty, err := v.worker.empty(ctx)
	if err != nil || !empty {
		v.since = now
		return false
	}
	if still, starts = v.worker.exec.stillness(); !still || starts != v.starts {
		return false // something came while Redis was asked
	}
	if v.listened && !v.told {
		v.told = true
		v.worker.emit(Event{Kind: event.WorkerIdle})
	}
	return over
}

// empty says whether no task is pending or due on any queue that is not paused.
func (w *Worker) empty(ctx context.Context) (bool, error) {
	for _, g := range w.groups {
		if !g.mover.looked.Load() {
			return false, nil // there may be parked tasks that this worker knows
		}
		todos, err := redisstore.Check(ctx, g.mover.src, g.mover.stores)
		if err != nil {
			return false, err
		}
		for i, t := range todos {
			if g.lanes[i].queuePaused() {
				continue // nobody may run its tasks, for as long as it likes
			}
			if t.Pending > 0 || t.Suspects > 0 || t.Due == 0 || t.Group == 0 || g.lanes[i].parked.some.Load() {
				return false, nil
			}
		}
	}
	return true, nil
}
