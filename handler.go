package delayed

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/function"
)

// HandlerFunc is what middleware wraps; handlers themselves are plain functions, see Worker.Register. It runs a claimed
// task. If it returns nil the task is done; after an error the task is tried again or archived, unless the error says
// otherwise: see Discard, Drop, RetryIn and Snooze.
type HandlerFunc func(ctx context.Context, t *Task) error

// TaskFromContext returns the task whose handler or middleware was given ctx, or a context made of that; nil if there
// is none.
func TaskFromContext(ctx context.Context) *Task {
	c := engine.ClaimFromContext(ctx)
	if c == nil {
		return nil
	}
	return taskOf(c)
}

// chain puts middleware around next. It returns nil if there is no middleware, so that tasks bypass it.
func chain(mw []func(HandlerFunc) HandlerFunc, next HandlerFunc) (HandlerFunc, error) {
	if len(mw) == 0 {
		return nil, nil
	}
	for i, m := range slices.Backward(mw) {
		if m == nil {
			return nil, fmt.Errorf("%w: middleware %d is nil; leave it out", ErrFunction, i+1)
		}
		var err error
		if next, err = wrap(m, next); err != nil {
			return nil, fmt.Errorf("%w: middleware %d panicked while it was built: %w", ErrFunction, i+1, err)
		}
		if next == nil {
			return nil, fmt.Errorf("%w: middleware %d: expected that it returns a HandlerFunc, found nil", ErrFunction,
				i+1)
		}
	}
	return next, nil
}

// wrap puts one piece of middleware around next. If that panics, wrap returns the panic as an error.
func wrap(m func(HandlerFunc) HandlerFunc, next HandlerFunc) (h HandlerFunc, err error) {
	defer func() {
		if p := recover(); p != nil {
			h, err = nil, function.NewPanic(p)
		}
	}()
	return m(next), nil
}

// callTask is the innermost part of every chain: it decodes the arguments and calls the function.
func callTask(ctx context.Context, t *Task) (err error) {
	if ctx == nil {
		return fmt.Errorf("%w: middleware: expected that next is given a context, found nil", ErrFunction)
	}
	if t == nil || t.claimed == nil || t.claimed.fn() == nil {
		return fmt.Errorf("%w: middleware: expected that next is given the task that the middleware was given, found "+
			"another", ErrFunction)
	}
	t.claimed.result, err = t.claimed.fn().Call(ctx, t.claimed.claim.Message())
	return public(err)
}

// callFunc is the end of the worker's middleware: it calls the function through the function's own.
func callFunc(ctx context.Context, t *Task) error {
	if t != nil && t.claimed != nil && t.claimed.fn() != nil {
		if inner := defaultsOf(t.claimed.fn()).chain; inner != nil {
			return inner(ctx, t)
		}
	}
	return callTask(ctx, t)
}

// Discard gives up on the task: no more retries, it is archived. A handler returns it, wrapped or not; that is a
// failure. Drop forgets the task instead. Discard(nil) is nil, so that return delayed.Discard(f()) discards only what
// failed.
//
// If the tree of an error contains several of Discard, Drop, RetryIn and Snooze, the outermost one applies; among
// joined errors it is the first one.
func Discard(err error) error {
	if err == nil {
		return nil
	}
	return engine.Say(engine.SaysDiscard, 0, err)
}

// Drop forgets the task: a handler that returns it, wrapped or not, ends the task without archiving it and without
// counting a failure. A Ref.Wait for the task returns a *TaskError with the state dropped. Something is kept of the
// task only with KeepResult or Retention, for as long as they say. err, which may be nil, goes into the log.
func Drop(err error) error { return engine.Say(engine.SaysDrop, 0, err) }

// RetryIn tries the task again in d, rounded down to milliseconds, in place of what the backoff says. A handler returns
// it, wrapped or not; that is a failure as any other and spends a retry. If no retries are left, or the next try would
// come when RetryUntil, Deadline or TTL has ended, the task is archived instead. A d of zero or less tries again at
// once. RetryIn(d, nil) is nil, so that return delayed.RetryIn(d, f()) retries only what failed; to run a task again
// that has not failed there is Snooze.
func RetryIn(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return engine.Say(engine.SaysRetryIn, max(d, 0), err)
}

// Snooze runs the task again in d, rounded down to milliseconds. A handler returns it, wrapped or not; that is no
// failure, spends no retry, and is counted as snoozed. A d of zero or less runs the task again at once. A task may
// snooze as often as it likes; TTL and Deadline bound it.
func Snooze(d time.Duration) error { return engine.Say(engine.SaysSnooze, max(d, 0), nil) }
