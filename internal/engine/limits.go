package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// memoryInterval is the time between two checks of the memory of the process.
const memoryInterval = time.Second

// StopFor makes the worker stop as if the context of Run had ended. If it is called again, the first reason holds. It
// never blocks and may be called at any time.
func (w *Worker) StopFor(reason state.Reason) {
	if w.reason.CompareAndSwap(nil, &reason) {
		close(w.stopping)
	}
}

// stopReason returns why the worker stops, "" if it does not.
func (w *Worker) stopReason() state.Reason {
	if reason := w.reason.Load(); reason != nil {
		return *reason
	}
	return ""
}

// setTaskLimits sets the limits that the executors keep.
func (w *Worker) setTaskLimits() {
	w.exec.Rest = w.cfg.Rest
	w.exec.Limited, w.exec.StartsLeft = w.cfg.MaxTasks > 0, w.cfg.MaxTasks
	w.exec.Worker = w
}

// watches returns functions that keep the other limits and notice when the worker is idle. Each runs until its context
// ends.
func (w *Worker) watches() (watches []func(context.Context)) {
	if w.cfg.MaxTime > 0 {
		watches = append(watches, func(ctx context.Context) {
			if loop.Sleep(ctx, w.cfg.MaxTime) {
				w.StopFor(state.StopMaxTime)
			}
		})
	}
	if w.cfg.MaxMemory > 0 {
		watches = append(watches, w.watchMemory)
	}
	v := &idleWatch{worker: w, limit: -1, hasListeners: w.events.Any()}
	switch {
	case w.cfg.StopWhenEmptyFor > 0:
		v.limit = w.cfg.StopWhenEmptyFor
	case w.cfg.StopWhenEmpty:
		v.limit = 0
	case !v.hasListeners:
		return watches
	}
	return append(watches, v.run)
}

// watchMemory stops the worker when the process uses too much memory.
func (w *Worker) watchMemory(ctx context.Context) {
	ticker := time.NewTicker(memoryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if used := beat.MemoryUsed(); used > w.cfg.MaxMemory {
			w.log.WithField("bytes", used).WithField("limit",
				w.cfg.MaxMemory).Warn("the process uses more memory than WorkerConfig.MaxMemory")
			w.StopFor(state.StopMaxMemory)
			return
		}
	}
}

// emptyInterval and emptyMaxInterval bound the time between two checks whether there is anything to do.
const (
	emptyInterval    = 50 * time.Millisecond
	emptyMaxInterval = time.Second
)

// idleWatch notices when a worker has nothing to do. It emits an event, and stops the worker if it is configured to.
type idleWatch struct {
	worker *Worker
	// limit is how long there must be nothing to do before the worker stops; negative: it does not stop.
	limit        time.Duration
	hasListeners bool

	since    time.Time // since when there was nothing to do
	starts   uint64    // number of tasks that had started then
	reported bool      // the event was emitted
}

// run checks until ctx ends.
func (v *idleWatch) run(ctx context.Context) {
	interval := emptyMaxInterval
	if v.limit >= 0 {
		interval = min(max(v.limit/10, emptyInterval), emptyMaxInterval)
	}
	v.since = time.Now()
	for loop.Sleep(ctx, interval) {
		if v.check(ctx, time.Now()) {
			v.worker.StopFor(state.StopEmpty)
			return
		}
	}
}

// check reports whether there has been nothing to do for long enough to stop. It asks Redis only if the answer matters.
func (v *idleWatch) check(ctx context.Context, now time.Time) (enough bool) {
	still, starts := v.worker.exec.IdleState()
	if !still || starts != v.starts {
		v.since, v.starts, v.reported = now, starts, false
		return false
	}
	over := v.limit >= 0 && now.Sub(v.since) >= v.limit
	if !over && (!v.hasListeners || v.reported) {
		return false
	}
	empty, err := v.worker.empty(ctx)
	if err != nil || !empty {
		v.since = now
		return false
	}
	if still, starts = v.worker.exec.IdleState(); !still || starts != v.starts {
		return false // a task has arrived meanwhile
	}
	if v.hasListeners && !v.reported {
		v.reported = true
		v.worker.events.Emit(events.Event{Kind: event.WorkerIdle})
	}
	return over
}

// empty reports whether no task is pending or due on any queue that is not paused.
func (w *Worker) empty(ctx context.Context) (bool, error) {
	for _, g := range w.slotGroups {
		if !g.mover.Checked.Load() {
			return false, nil // there may be parked tasks that this worker knows
		}
		todos, err := redisstore.Check(ctx, g.mover.Src, g.mover.Stores)
		if err != nil {
			return false, err
		}
		for i, t := range todos {
			if g.lanes[i].QueuePaused() {
				continue // its tasks may not run, possibly for ever
			}
			if t.Pending > 0 || t.Suspects > 0 || t.Due == 0 || t.Group == 0 || g.lanes[i].HasParked() {
				return false, nil
			}
		}
	}
	return true, nil
}
