package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Why a worker stops, as WorkerStatus.StopReason, its log and KindWorkerStopping say it.
const (
	StopContext = "context"    // the context of Run has ended
	StopClosed  = "closed"     // the handle on Redis was closed
	StopTasks   = "max tasks"  // WorkerConfig.MaxTasks have ended, or the one of Once
	StopTime    = "max time"   // it has run for WorkerConfig.MaxTime
	StopMemory  = "max memory" // the process has more than WorkerConfig.MaxMemory
	StopEmpty   = "empty"      // its queues are empty, as StopWhenEmpty, StopWhenEmptyFor or Once want it
	StopStuck   = "stuck"      // too many handlers are stuck
	StopRestart = "restart"    // Queue.Restart
	StopOrder   = "order"      // WorkerControl.Stop

	StopSettings = "settings" // Redis came back with settings that lose tasks
)

const (
	// MemoryInterval is the time between two looks at the memory of the process.
	MemoryInterval = time.Second
	// emptyInterval and emptyMost bound the time between two looks whether there is anything to do.
	emptyInterval = 50 * time.Millisecond
	emptyMost     = time.Second
)

// StopFor makes the worker stop as if the context of Run had ended. The first reason holds. It never blocks and may be
// called at any time.
func (w *Worker) StopFor(reason string) {
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
	w.Exec.Rest = w.Cfg.Rest
	w.Exec.Limited, w.Exec.Budget = w.Cfg.MaxTasks > 0, w.Cfg.MaxTasks
	w.Exec.OnSpent = func() { w.StopFor(StopTasks) }
}

// Watches returns what keeps the other limits, and notices for listeners that the worker is idle: functions that end
// with their context.
func (w *Worker) Watches() (watches []func(context.Context)) {
	if w.Cfg.MaxTime > 0 {
		watches = append(watches, func(ctx context.Context) {
			if loop.Sleep(ctx, w.Cfg.MaxTime) {
				w.StopFor(StopTime)
			}
		})
	}
	if w.Cfg.MaxMemory > 0 {
		watches = append(watches, w.watchMemory)
	}
	v := &Vacancy{Worker: w, Limit: -1, Listened: w.listened()}
	switch {
	case w.Cfg.StopWhenEmptyFor > 0:
		v.Limit = w.Cfg.StopWhenEmptyFor
	case w.Cfg.StopWhenEmpty:
		v.Limit = 0
	case !v.Listened:
		return watches
	}
	return append(watches, v.run)
}

// watchMemory stops the worker when the process has too much memory.
func (w *Worker) watchMemory(ctx context.Context) {
	ticker := time.NewTicker(MemoryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if used := MemoryUsed(); used > w.Cfg.MaxMemory {
			w.Log.WithField("bytes", used).WithField("limit",
				w.Cfg.MaxMemory).Warn("the process has more memory than WorkerConfig.MaxMemory")
			w.StopFor(StopMemory)
			return
		}
	}
}

// Vacancy finds out when a worker has nothing to do.
type Vacancy struct {
	Worker *Worker
	// for how long there must be nothing to do until the worker stops; negative: it does not stop
	Limit    time.Duration
	Listened bool // listeners are told

	Since  time.Time // nothing was to be done
	starts uint64    // tasks that had started then
	Told   bool      // listeners know
}

// run looks until ctx ends.
func (v *Vacancy) run(ctx context.Context) {
	interval := emptyMost
	if v.Limit >= 0 {
		interval = min(max(v.Limit/10, emptyInterval), emptyMost)
	}
	v.Since = time.Now()
	for loop.Sleep(ctx, interval) {
		if v.Look(ctx, time.Now()) {
			v.Worker.StopFor(StopEmpty)
			return
		}
	}
}

// Look says whether there has been nothing to do for long enough. It asks Redis only when that matters.
func (v *Vacancy) Look(ctx context.Context, now time.Time) (enough bool) {
	still, starts := v.Worker.Exec.Stillness()
	if !still || starts != v.starts {
		v.Since, v.starts, v.Told = now, starts, false
		return false
	}
	over := v.Limit >= 0 && now.Sub(v.Since) >= v.Limit
	if !over && (!v.Listened || v.Told) {
		return false
	}
	empty, err := v.Worker.Empty(ctx)
	if err != nil || !empty {
		v.Since = now
		return false
	}
	if still, starts = v.Worker.Exec.Stillness(); !still || starts != v.starts {
		return false // something came while Redis was asked
	}
	if v.Listened && !v.Told {
		v.Told = true
		v.Worker.Emit(Event{Kind: KindWorkerIdle})
	}
	return over
}

// Empty says whether no task is pending or due on any queue that is not paused.
func (w *Worker) Empty(ctx context.Context) (bool, error) {
	for _, g := range w.Groups {
		if !g.Mover.Looked.Load() {
			return false, nil // there may be parked tasks that this worker knows
		}
		todos, err := redisstore.Check(ctx, g.Mover.Src, g.Mover.stores)
		if err != nil {
			return false, err
		}
		for i, t := range todos {
			if g.lanes[i].QueuePaused() {
				continue // nobody may run its tasks, for as long as it likes
			}
			if t.Pending > 0 || t.Suspects > 0 || t.Due == 0 || t.Group == 0 || g.lanes[i].Parked.Some.Load() {
				return false, nil
			}
		}
	}
	return true, nil
}
