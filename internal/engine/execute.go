package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/function"
)

// execute runs one task. It answers whether that is done and to be acknowledged; if not, it has seen to what becomes of
// the task.
func (w *Worker) execute(c *Claim) (done bool) {
	if c.lane.isRevoked(c.msg.Meta.ID) {
		w.cancelClaim(c, false)
		return false
	}
	if x := c.msg.Meta.Extra; x != nil {
		if w.archiveIfLate(c) {
			return false
		}
		if x.LockStart && !w.unlockStart(c) {
			return false
		}
	}
	limit := w.limit(c, 0)
	ctx := w.tasks
	var cancel context.CancelCauseFunc
	if c.fn.TakesCtx || w.cfg.Wrapped(c) {
		ctx, cancel = w.contextOf(c, limit)
		defer cancel(nil)
	}
	if !c.lane.begin(c, cancel) {
		if !c.lost.Load() {
			w.cancelClaim(c, false) // since it was looked up
			return false
		}
		c.lane.settle(c)
		c.lane.finisher.countLost(1)
		w.emitFor(c, Event{Kind: event.TaskLost})
		return false
	}
	if w.listened() {
		w.emitStart(c)
	}
	var err error
	var result any
	returned := false
	var began time.Time
	if c.needsComplete() {
		began = c.lane.now()
	}
	// A deferred function, because a handler may end this goroutine by runtime.Goexit.
	defer func() {
		c.quiet()
		if done = w.conclude(c, err, returned, limit); done && c.needsComplete() {
			c.lane.finisher.add(w.endSuccess(c, result, began, c.lane.now()))
			done = false
		}
	}()
	result, err = w.cfg.Call(ctx, c)
	returned = true
	return false
}

// conclude says what becomes of a task whose handler has ended: true, if it is done and to be acknowledged.
func (w *Worker) conclude(c *Claim, err error, returned bool, limit time.Duration) (done bool) {
	if c.lane.end(c) {
		c.lane.settle(c)
		w.log.With("queue", c.lane.store.Name).With("function", c.msg.Path).With("id", c.msg.Meta.ID).
			Warn("task ended after its claim was lost; its outcome is discarded")
		c.lane.finisher.countLost(1)
		w.emitFor(c, Event{Kind: event.TaskLost})
		return false
	}
	if !returned {
		err = function.NewPanic(nil)
	}
	if err != nil && limit > 0 && time.Since(c.started) >= limit {
		err = &timeoutError{limit, err}
	}
	if w.onReturn != nil {
		w.onReturn(c, err)
	}
	if err != nil && c.canceled.Load() {
		w.cancelClaim(c, true)
		return false
	}
	if err == nil {
		w.emitEnd(c, nil, nil, true)
		return true
	}
	e, done := w.decide(c, err, c.lane.now())
	w.emitEnd(c, err, &e, done)
	if !done {
		c.lane.finisher.add(e)
	}
	return done
}

// Why tasks are parked, besides reasonFields.
const (
	parkedPython = "python"
	parkedPlain  = "extended python on a queue for plain ones"
)
