package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/loop"
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
