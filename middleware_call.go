package delayed

import (
	"context"
	"fmt"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/function"
)

// hasMiddleware says whether a task goes through middleware, which needs a context of its own.
func (w *Worker) hasMiddleware(c *engine.Claim) bool {
	return w.chain != nil || defaultsOf(c.Function()).chain != nil
}

// call calls the function of a claim, through middleware if there is any. When the function or middleware calls
// runtime.Goexit, it does not return.
func (w *Worker) call(ctx context.Context, c *engine.Claim) (result any, err error) {
	if !w.hasMiddleware(c) {
		result, err = c.Function().Call(ctx, c.Message())
		return result, public(err)
	}
	return w.callThrough(ctx, c)
}

// callThrough calls the function of a claim through middleware.
func (w *Worker) callThrough(ctx context.Context, c *engine.Claim) (result any, err error) {
	t := taskOf(c)
	outermost := w.chain
	if outermost == nil {
		outermost = defaultsOf(c.Function()).chain
	}
	err = function.Protect(ctx, t, outermost)
	return t.got.result, err
}

// callTask is the innermost part of every chain: it decodes the arguments and calls the function.
func callTask(ctx context.Context, t *Task) (err error) {
	if ctx == nil {
		return fmt.Errorf("%w: middleware: expected that next is given a context, found nil", ErrFunction)
	}
	if t == nil || t.got == nil || t.got.fn() == nil {
		return fmt.Errorf("%w: middleware: expected that next is given the task that the middleware was given, found "+
			"another", ErrFunction)
	}
	t.got.result, err = t.got.fn().Call(ctx, t.got.claim.Message())
	return public(err)
}

// callFunc goes on from the worker's middleware to that of the function.
func callFunc(ctx context.Context, t *Task) error {
	if t != nil && t.got != nil && t.got.fn() != nil {
		if inner := defaultsOf(t.got.fn()).chain; inner != nil {
			return inner(ctx, t)
		}
	}
	return callTask(ctx, t)
}
