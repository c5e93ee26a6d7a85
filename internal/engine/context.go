package engine

import (
	"context"
	"time"
)

// taskContext is the context of a handler. It ends when the claim is lost, when the worker stops, when its time is over
// and when the handler has returned, and it carries the claim. It is the claim under another type, so it costs nothing
// beyond the context that it wraps.
type taskContext Claim

// Deadline implements context.Context.
func (t *taskContext) Deadline() (time.Time, bool) { return t.context.Deadline() }

// Done implements context.Context.
func (t *taskContext) Done() <-chan struct{} { return t.context.Done() }

// Err implements context.Context.
func (t *taskContext) Err() error { return t.context.Err() }

// claimKey is the key under which a taskContext answers with its claim.
var claimKey int

// String names the context without the claim, which changes while it is printed.
func (t *taskContext) String() string { return "delayed: task " + t.msg.Meta.ID }

// Value implements context.Context.
func (t *taskContext) Value(key any) any {
	if key == &claimKey {
		return (*Claim)(t)
	}
	return t.context.Value(key)
}

// ClaimFromContext returns the claim whose handler was given ctx, or a context made of that; nil if there is none.
func ClaimFromContext(ctx context.Context) *Claim {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(&claimKey).(*Claim)
	return c
}

// contextOf makes the context of the handler of a claim, a part of tasks. It ends limit after the claim has started; 0
// is no limit.
// The function must be called when the handler has ended.
func contextOf(
	tasks context.Context, c *Claim, limit time.Duration,
) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(tasks)
	if limit > 0 {
		ctx, cancel = withLimit(ctx, cancel, c.started.Add(limit))
	}
	c.context = ctx
	return (*taskContext)(c), cancel
}

func withLimit(
	ctx context.Context, cancel context.CancelCauseFunc, end time.Time,
) (context.Context, context.CancelCauseFunc) {
	ctx, stop := context.WithDeadlineCause(ctx, end, ErrTimeout)
	return ctx, func(cause error) {
		cancel(cause)
		stop()
	}
}
