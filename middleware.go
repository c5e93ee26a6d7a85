package delayed

import (
	"context"
	"fmt"
	"slices"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/function"
)

// HandlerFunc runs a task that a worker has received. What it returns decides what becomes of the task, as what a
// handler returns does.
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
