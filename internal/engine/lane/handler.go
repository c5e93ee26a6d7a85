package lane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Causes why the contexts of handlers end.
var (
	ErrLost     = errors.New("delayed: claim lost")
	ErrCanceled = errors.New("delayed: task was canceled")
	ErrTimeout  = errors.New("delayed: handler takes too long")
	ErrShutdown = errors.New("delayed: worker is shutting down")
)

// RunningError names the handlers that did not return although their contexts were canceled.
type RunningError struct {
	Funcs []string // paths of the functions, one for each running task
}

// Error implements error.
func (e *RunningError) Error() string {
	return fmt.Sprintf("delayed: %d handlers still run after shutdown: %s", len(e.Funcs), strings.Join(e.Funcs, ", "))
}

// StuckError names the handlers that have stopped the worker by ignoring that their contexts have ended.
type StuckError struct {
	Funcs []string // paths of the functions, one for each handler
	IDs   []string // ids of their tasks in the same order, "" for tasks without an id
}

// Error implements error.
func (e *StuckError) Error() string {
	return fmt.Sprintf("delayed: %d handlers are stuck: %s; let them return when their contexts end", len(e.Funcs),
		strings.Join(e.Funcs, ", "))
}

// TimeoutError wraps the error of a handler that has returned it after its time limit.
type TimeoutError struct {
	Limit time.Duration
	Err   error
}

// Error implements error.
func (e *TimeoutError) Error() string {
	return fmt.Sprintf("delayed: handler took longer than %v: %v", e.Limit.Round(time.Millisecond), e.Err)
}

// Unwrap returns ErrTimeout and the handler's error.
func (e *TimeoutError) Unwrap() []error { return []error{ErrTimeout, e.Err} }

// Decision is what a handler decides about its task by the error that it returns.
type Decision uint8

// What handlers decide.
const (
	DecisionNone Decision = iota
	DecisionArchive
	DecisionDrop
	DecisionRetryIn
	DecisionSnooze
)

// outcomeError is an error by which a handler decides what becomes of its task.
type outcomeError struct {
	decision Decision
	wait     time.Duration
	err      error // may be nil
}

// Decide returns an error by which a handler decides what becomes of its task.
func Decide(decision Decision, wait time.Duration, err error) error {
	return &outcomeError{decision, wait, err}
}

// Error implements error.
func (e *outcomeError) Error() string {
	switch {
	case e.err != nil:
		return e.err.Error()
	case e.decision == DecisionSnooze:
		return "delayed: snoozed for " + e.wait.String()
	default:
		return "delayed: dropped"
	}
}

// Unwrap returns the handler's own error.
func (e *outcomeError) Unwrap() error { return e.err }

// Decision returns archive, drop, retry in or snooze, for middleware: docs/HOOKS.md.
func (e *outcomeError) Decision() string {
	return [...]string{
		DecisionArchive: "archive", DecisionDrop: "drop", DecisionRetryIn: "retry in", DecisionSnooze: "snooze",
	}[e.decision]
}

// Said returns what err decides about the task. Of several decisions in its tree, the outermost one wins.
func Said(err error) (Decision, time.Duration) {
	var o *outcomeError
	if errors.As(err, &o) {
		return o.decision, o.wait
	}
	return DecisionNone, 0
}

// taskContext is the context of a handler. It ends when the claim is lost, when the task is canceled, when the worker
// stops, when the time limit is over, and when the handler has returned. Its value for claimKey is the claim. It is the
// claim under another type, so that it needs no memory beside the context that it wraps.
type taskContext Claim

func (t *taskContext) Deadline() (time.Time, bool) { return t.context.Deadline() }

func (t *taskContext) Done() <-chan struct{} { return t.context.Done() }

func (t *taskContext) Err() error { return t.context.Err() }

// claimKey is the key for the claim in a taskContext.
var claimKey int

// String does not print the claim, which may change meanwhile.
func (t *taskContext) String() string { return "delayed: task " + t.Msg.Meta.ID }

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
