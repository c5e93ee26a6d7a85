package lane

import (
	"context"
	"time"
)

// taskContext is the context of a handler. It ends when the claim is lost, when the task is cancelled, when the worker
// stops, when the time limit is over, and when the handler has returned. Its value for claimKey is the claim. It is the
// claim under another type, so that it needs no memory beside the context that it wraps.
type taskContext Claim

// Deadline implements context.Context.
func (t *taskContext) Deadline() (time.Time, bool) { return t.context.Deadline() }

// Done implements context.Context.
func (t *taskContext) Done() <-chan struct{} { return t.context.Done() }

// Err implements context.Context.
func (t *taskContext) Err() error { return t.context.Err() }

// claimKey is the key for the claim in a taskContext.
var claimKey int

// String does not print the claim, which may change meanwhile.
func (t *taskContext) String() string { return "delayed: task " + t.Msg.Meta.ID }

// Value implements context.Context.
func (t *taskContext) Value(key any) any {
	if key == &claimKey {
		return (*Claim)(t)
	}
	return t.context.Value(key)
}

// ClaimFromContext returns the claim of the handler that was given ctx or a parent of it, or nil.
func ClaimFromContext(ctx context.Context) *Claim {
	if ctx == nil {
		return nil
	}
	c, _ := ctx.Value(&claimKey).(*Claim)
	return c
}

// ContextOf returns the context of the handler of a claim, with parent as its parent. It ends limit after the start of
// the claim; 0 is no limit. The caller must call the function when the handler has returned.
func ContextOf(
	parent context.Context, c *Claim, limit time.Duration,
) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	if limit > 0 {
		ctx, cancel = withLimit(ctx, cancel, c.Started.Add(limit))
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
