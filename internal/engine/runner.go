package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
)

// runner runs the functions of claimed tasks and sees to what becomes of the tasks. All executors use it at once.
type runner struct {
	cfg         *Config
	worker      string // id
	log         loop.Journal
	lines       *loop.LineLimit // log lines about tasks
	events      *listeners
	handlersCtx context.Context // of all handlers; its cause is ErrShutdown once it is cancelled

	onReturn func(*Claim, error) // hears what handlers returned; nil for nobody
}

// execute runs one task. It answers whether that is done and to be acknowledged; if not, it has seen to what becomes of
// the task.
func (r *runner) execute(c *Claim) (done bool) {
	if c.lane.isRevoked(c.msg.Meta.ID) {
		r.cancelClaim(c, false)
		return false
	}
	if x := c.msg.Meta.Extra; x != nil {
		if r.archiveIfLate(c) {
			return false
		}
		if x.LockStart && !r.unlockStart(c) {
			return false
		}
	}
	limit := r.timeLimit(c, 0)
	ctx := r.handlersCtx
	var cancel context.CancelCauseFunc
	if c.fn.TakesCtx || r.cfg.Wrapped(c) {
		ctx, cancel = contextOf(r.handlersCtx, c, limit)
		defer cancel(nil)
	}
	if !c.lane.handlerStarts(c, cancel) {
		if !c.lost.Load() {
			r.cancelClaim(c, false) // since it was looked up
			return false
		}
		c.lane.settle(c)
		c.lane.ends.countLost(1)
		r.events.emitFor(c, Event{Kind: event.TaskLost})
		return false
	}
	if r.events.any() {
		r.events.emitStart(c)
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
		c.endReports()
		if done = r.conclude(c, err, returned, limit); done && c.needsComplete() {
			c.lane.ends.add(r.endSuccess(c, result, began, c.lane.now()))
			done = false
		}
	}()
	result, err = r.cfg.Call(ctx, c)
	returned = true
	return false
}

// conclude says what becomes of a task whose handler has ended: true, if it is done and to be acknowledged.
func (r *runner) conclude(c *Claim, err error, returned bool, limit time.Duration) (done bool) {
	if c.lane.handlerReturned(c) {
		c.lane.settle(c)
		r.logOf(c).
			Warn("task ended after its claim was lost; its outcome is discarded")
		c.lane.ends.countLost(1)
		r.events.emitFor(c, Event{Kind: event.TaskLost})
		return false
	}
	if !returned {
		err = function.NewPanic(nil)
	}
	if err != nil && limit > 0 && time.Since(c.started) >= limit {
		err = &timeoutError{limit, err}
	}
	if r.onReturn != nil {
		r.onReturn(c, err)
	}
	if err != nil && c.canceled.Load() {
		r.cancelClaim(c, true)
		return false
	}
	if err == nil {
		r.events.emitEnd(c, nil, nil, true)
		return true
	}
	e, done := r.decide(c, err, c.lane.now())
	r.events.emitEnd(c, err, &e, done)
	if !done {
		c.lane.ends.add(e)
	}
	return done
}

// logOf returns the log for lines about one task.
func (r *runner) logOf(c *Claim) loop.Journal {
	return r.log.With("queue", c.lane.store.Name).With("function", c.msg.Path).With("id", c.msg.Meta.ID)
}
