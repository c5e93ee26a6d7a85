package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// runner calls the functions of claimed tasks. All executors share it.
type runner struct {
	*decider               // ends their claims
	timeout  time.Duration // of tasks where neither the call nor the function sets one; 0: none

	onReturn func(*Claim, error) // called with what handlers have returned; nil: none
}

// execute runs one task. It returns true if the claim must be acknowledged; otherwise it has handled the end of the
// claim.
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
	isolated := r.isolation.applies(c)
	if c.fn.TakesCtx || isolated || r.program.Wrapped(c) {
		ctx, cancel = contextOf(r.handlersCtx, c, limit)
		defer cancel(nil)
	}
	if !c.lane.handlerStarts(c, cancel) {
		if !c.lost.Load() {
			r.cancelClaim(c, false) // it was cancelled after the check above
			return false
		}
		c.lane.settleLost(c)
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
	// Deferred, because a handler may end this goroutine by runtime.Goexit.
	defer func() {
		c.endReports()
		if done = r.conclude(c, err, returned, limit); done && c.needsComplete() {
			done = false
			r.succeed(c, result, began, c.lane.now())
		}
	}()
	if isolated {
		result, err = r.isolation.call(ctx, c, limit)
	} else {
		result, err = r.program.Call(ctx, c)
	}
	returned = true
	return false
}

// conclude handles the end of a handler. It returns true if the task has succeeded or counts as such.
func (r *runner) conclude(c *Claim, err error, returned bool, limit time.Duration) (done bool) {
	if c.lane.handlerReturned(c) {
		c.lane.settleLost(c)
		r.logOf(c).
			Warn("task ended after its claim was lost; its outcome is discarded")
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
	c.ran = true
	if err != nil && c.canceled.Load() {
		c.outcome = lifecycle.OutcomeCancel
		r.cancelClaim(c, true)
		return false
	}
	if err == nil {
		r.emitEnd(c, nil, nil, true)
		return true
	}
	v := decided{err: err}
	over := false
	// Deferred, because decide may end this goroutine.
	defer func() {
		if v.done && !over { // the caller cannot learn it
			v.done = false
			v.end = endComplete(c, &wire.Info{Reason: state.ReasonDropped, At: c.lane.now(), Worker: r.worker})
			v.end.outcome = lifecycle.OutcomeDrop
		}
		c.outcome = v.end.outcome
		if !v.done {
			defer c.lane.ends.add(v.end)
		}
		r.emitEnd(c, v.err, &v.end, v.done)
	}()
	r.decide(c, err, c.lane.now(), &v)
	over = true
	return v.done
}

// unlockStart frees the lock of a task that is about to start. It returns false if the task must not start; then it has
// handled the end of the claim.
func (r *runner) unlockStart(c *Claim) bool {
	if fields := c.fn.UnknownFields(&c.msg); len(fields) > 0 {
		// A task that does not start keeps its lock.
		c.lane.ends.add(r.park(c, state.ReasonUnknownFields, c.lane.now(), fields...))
		return false
	}
	if r.unlock(c) {
		r.cancelClaim(c, false)
		return false
	}
	return true
}

// unlock frees the lock of a task that starts. replaced: the task must not start, because another task has replaced it.
// If Redis does not answer, the task starts and frees the lock at its end.
func (r *runner) unlock(c *Claim) (replaced bool) {
	left, replaced, err := c.lane.store.Unlock(r.handlersCtx, c.msg.Meta.ID, c.lock())
	log := r.logOf(c)
	switch {
	case err != nil:
		log.WithError(err).Warn("the task's lock could not be freed before it starts, and lasts until it is over")
	case replaced:
		log.Info("task dropped: another one has replaced it")
	default:
		c.lockFreed = !left
	}
	return replaced
}
