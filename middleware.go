package delayed

import (
	"context"
	"fmt"
	"slices"

	"github.com/godelayed/delayed/internal/function"
)

// HandlerFunc runs a task that a worker has received. What it returns decides what becomes of the task, as what a
// handler returns does.
type HandlerFunc func(ctx context.Context, t *Task) error

// Use puts middleware around the handlers of all functions that the worker runs. The first one given is the outermost;
// further calls add more within. Call it before Run; afterwards it returns an error that wraps ErrClosed.
//
//	err := w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
//		return func(ctx context.Context, t *delayed.Task) error {
//			start := time.Now()
//			err := next(ctx, t)
//			observe(t.Path(), time.Since(start), err)
//			return err
//		}
//	})
//
// Each function is called once, when Run begins; what it returns is called concurrently, for every task. Middleware may
// give next another context, made of ctx, which is what the handler gets; it may return without calling next, and nil
// then means that the task is done. Next decodes the arguments and calls the handler: its error is an *ArgumentError
// when they do not fit, and the handler's panics are errors too. Middleware that stands around one function only is
// given to Func: see Middleware.
func (w *Worker) Use(mw ...func(HandlerFunc) HandlerFunc) error {
	if err := w.check(); err != nil {
		return err
	}
	if slices.ContainsFunc(mw, func(m func(HandlerFunc) HandlerFunc) bool { return m == nil }) {
		return fmt.Errorf("%w: Use: expected middleware, found nil; leave it out", ErrFunction)
	}
	w.control.Lock()
	defer w.control.Unlock()
	if WorkerState(w.state.Load()) != WorkerNew {
		return fmt.Errorf("%w: Use after Run: call it before", ErrClosed)
	}
	w.middleware = append(slices.Clip(w.middleware), mw...)
	return nil
}

// TaskFromContext returns the task whose handler or middleware was given ctx, or a context made of that; nil if there
// is none.
func TaskFromContext(ctx context.Context) *Task {
	c := claimFromContext(ctx)
	if c == nil {
		return nil
	}
	return taskOf(c)
}

// chain puts middleware around next. The result is nil if there is none, so that tasks need not go through it.
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

// wrap puts one piece of middleware around next. The error is its panic.
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
	if t == nil || t.got == nil || t.got.fn() == nil {
		return fmt.Errorf("%w: middleware: expected that next is given the task that the middleware was given, found "+
			"another", ErrFunction)
	}
	t.got.result, err = t.got.fn().Call(ctx, &t.got.claim.msg)
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

// hasMiddleware says whether a task goes through middleware, which needs a context of its own.
func (w *Worker) hasMiddleware(c *claim) bool { return w.chain != nil || defaultsOf(c.fn).chain != nil }

// call calls the function of a claim, through middleware if there is any. When the function or middleware calls
// runtime.Goexit, it does not return.
func (w *Worker) call(ctx context.Context, c *claim) (result any, err error) {
	if !w.hasMiddleware(c) {
		result, err = c.fn.Call(ctx, &c.msg)
		return result, public(err)
	}
	return w.callThrough(ctx, c)
}

// callThrough calls the function of a claim through middleware.
func (w *Worker) callThrough(ctx context.Context, c *claim) (result any, err error) {
	t := taskOf(c)
	outermost := w.chain
	if outermost == nil {
		outermost = defaultsOf(c.fn).chain
	}
	err = function.Protect(ctx, t, outermost)
	return t.got.result, err
}
