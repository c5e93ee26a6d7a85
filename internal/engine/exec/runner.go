package exec

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Runner calls the functions of claimed tasks. All executors share it.
type Runner struct {
	*finish.Decider               // ends their claims
	Timeout         time.Duration // of tasks where neither the call nor the function sets one; 0: none

	OnReturn func(*lane.Claim, error) // called with what handlers have returned; nil: none
}

// Execute runs one task. It returns true if the claim must be acknowledged; otherwise it has handled the end of the
// claim.
func (r *Runner) Execute(c *lane.Claim) (done bool) {
	if c.Lane.IsRevoked(c.Msg.Meta.ID) {
		r.CancelClaim(c, false)
		return false
	}
	if x := c.Msg.Meta.Extra; x != nil {
		if r.archiveIfLate(c) {
			return false
		}
		if x.LockStart && !r.unlockStart(c) {
			return false
		}
	}
	limit := r.TimeLimit(c, 0)
	ctx := r.HandlersCtx
	var cancel context.CancelCauseFunc
	isolated := r.Isolation.Applies(c)
	if c.Fn.TakesCtx || isolated || r.Program.Wrapped(c) {
		ctx, cancel = lane.ContextOf(r.HandlersCtx, c, limit)
		defer cancel(nil)
	}
	if !c.Lane.HandlerStarts(c, cancel) {
		if !c.Lost.Load() {
			r.CancelClaim(c, false) // it was canceled after the check above
			return false
		}
		c.Lane.SettleLost(c)
		return false
	}
	if r.Events.Any() {
		r.Events.EmitStart(c)
	}
	var err error
	var result any
	returned := false
	var began time.Time
	if c.NeedsComplete() {
		began = c.Lane.Now()
	}
	// Deferred, because a handler may end this goroutine by runtime.Goexit.
	defer func() {
		c.EndReports()
		if done = r.conclude(c, err, returned, limit); done && c.NeedsComplete() {
			done = false
			r.Succeed(c, result, began, c.Lane.Now())
		}
	}()
	if isolated {
		result, err = r.Isolation.Call(ctx, c, limit)
	} else {
		result, err = r.Program.Call(ctx, c)
	}
	returned = true
	return false
}

// conclude handles the end of a handler. It returns true if the task has succeeded or counts as such.
func (r *Runner) conclude(c *lane.Claim, err error, returned bool, limit time.Duration) (done bool) {
	if c.Lane.HandlerReturned(c) {
		c.Lane.SettleLost(c)
		c.Log(r.Log).Warn("task ended after its claim was lost; its outcome is discarded")
		return false
	}
	if !returned {
		err = function.NewPanic(nil)
	}
	if err != nil && limit > 0 && time.Since(c.Started) >= limit {
		err = &lane.TimeoutError{Limit: limit, Err: err}
	}
	if r.OnReturn != nil {
		r.OnReturn(c, err)
	}
	c.Ran = true
	if err != nil && c.Canceled.Load() {
		c.Outcome = lifecycle.OutcomeCancel
		r.CancelClaim(c, true)
		return false
	}
	if err == nil {
		r.EmitEnd(c, nil, nil, true)
		return true
	}
	v := finish.Decided{Err: err}
	over := false
	// Deferred, because decide may end this goroutine.
	defer func() {
		if v.Done && !over { // the caller cannot learn it
			v.Done = false
			v.End = finish.EndComplete(c, &wire.Info{Reason: state.ReasonDropped, At: c.Lane.Now(), Worker: r.Worker})
			v.End.Outcome = lifecycle.OutcomeDrop
		}
		c.Outcome = v.End.Outcome
		if !v.Done {
			defer c.Lane.Finisher.Add(v.End)
		}
		r.EmitEnd(c, v.Err, &v.End, v.Done)
	}()
	r.Decide(c, err, c.Lane.Now(), &v)
	over = true
	return v.Done
}

// unlockStart frees the lock of a task that is about to start. It returns false if the task must not start; then it has
// handled the end of the claim.
func (r *Runner) unlockStart(c *lane.Claim) bool {
	if fields := c.Fn.UnknownFields(&c.Msg); len(fields) > 0 {
		// A task that does not start keeps its lock.
		c.Lane.Finisher.Add(r.Park(c, state.ReasonUnknownFields, c.Lane.Now(), fields...))
		return false
	}
	if r.Unlock(c) {
		r.CancelClaim(c, false)
		return false
	}
	return true
}

// Unlock frees the lock of a task that starts. replaced: the task must not start, because another task has replaced it.
// If Redis does not answer, the task starts and frees the lock at its end.
func (r *Runner) Unlock(c *lane.Claim) (replaced bool) {
	left, replaced, err := c.Lane.Store.Unlock(r.HandlersCtx, c.Msg.Meta.ID, c.Lock())
	log := c.Log(r.Log)
	switch {
	case err != nil:
		log.WithError(err).Warn("the task's lock could not be freed before it starts, and lasts until it is over")
	case replaced:
		log.Info("task dropped: another one has replaced it")
	default:
		c.LockFreed = !left
	}
	return replaced
}

// TimeLimit returns how long the handler of a claim may run, counted from its start; 0 is no limit. ran is how long it
// has run so far. The limit of the call wins over that of the function, and that over the worker's; a deadline may
// shorten it. timeLimit reads nothing that changes while the handler runs.
func (r *Runner) TimeLimit(c *lane.Claim, ran time.Duration) time.Duration {
	d := r.Timeout
	if own := c.Fn.Policy.Timeout; own != 0 {
		d = own
	}
	x := c.Msg.Meta.Extra
	if x != nil && x.Timeout != 0 {
		d = wire.Milliseconds(x.Timeout)
	}
	if x != nil && x.Deadline != 0 {
		// if Sub overflows, the deadline is far away as well
		left := max(time.UnixMilli(x.Deadline).Sub(c.Lane.Now()), 1-ran)
		if end := ran + min(left, math.MaxInt64-ran); d == 0 || end < d {
			d = end
		}
	}
	if d > wire.Milliseconds(wire.Unlimited)/2 {
		return 0 // such a limit is none
	}
	return d
}

// archiveIfLate archives a task if it is too late to start it, and reports whether it is.
func (r *Runner) archiveIfLate(c *lane.Claim) bool {
	x := c.Msg.Meta.Extra
	if x.Expiry == 0 && x.Deadline == 0 && x.RetryUntil == 0 {
		return false
	}
	now := c.Lane.Now()
	var at int64
	var why string
	switch ms := now.UnixMilli(); {
	case x.Expiry != 0 && ms >= x.Expiry:
		at, why = x.Expiry, "its TTL ended"
	case x.Deadline != 0 && ms >= x.Deadline:
		at, why = x.Deadline, "its deadline was"
	case x.RetryUntil != 0 && x.FirstFailed != 0 && ms >= x.RetryUntil:
		at, why = x.RetryUntil, "its RetryUntil was"
	default:
		return false
	}
	m := &c.Msg.Meta
	id := m.ID
	if id == "" {
		id = wire.NewTaskID()
	}
	text := fmt.Sprintf("it did not start in time: %s at %s", why,
		time.UnixMilli(at).UTC().Format("2006-01-02T15:04:05.000Z"))
	info := wire.Info{
		Reason: state.ReasonExpired, Function: c.Msg.Path, Error: text, Attempts: m.Retried, Deaths: m.Deaths,
		At: now, Worker: r.Worker,
	}
	if x.FirstFailed != 0 {
		info.FirstFailed = time.UnixMilli(x.FirstFailed)
	}
	r.Events.EmitFor(c, events.Event{Kind: event.TaskExpired})
	r.Events.EmitFor(c, events.Event{Kind: event.TaskArchived, Reason: info.Reason})
	c.Lane.Finisher.Add(lane.Ending{
		Claim: c, Outcome: lifecycle.OutcomeExpire, Wait: lifecycle.ArchivedLife, ID: id, Message: c.Raw,
		Info: info.Encode(),
	})
	r.Log.With("queue", c.Lane.Store.Name).With("function", c.Msg.Path).With("id", id).Warn("task archived: " + text)
	return true
}
