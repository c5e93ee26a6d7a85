package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/catalog"
)

// checkCall returns an error if workers of the queue have published the function of Edit's task, and its arguments fit
// no version of it.
func (a *actor) checkCall(ctx context.Context) error {
	call := a.action.call
	published, err := functionsOf(ctx, a.store)
	if err != nil {
		return err
	}
	var misfit error
	for i := range published {
		f := &published[i]
		if f.Path != call.Path() && !slices.Contains(f.Aliases, call.Path()) {
			continue
		}
		if misfit = f.Fits(call); misfit == nil {
			return nil
		}
	}
	if misfit != nil {
		return fmt.Errorf("inspect: Edit: %w", misfit)
	}
	return nil
}

// Fits returns an error, which wraps delayed.ErrArguments, if a worker that has published the function would refuse the
// arguments of a call. What the worker has not published fits, such as the types of many parameters of Python. So does
// every call of a Function that Inspector.Functions has not returned. The path of the call is not compared.
func (f *Function) Fits(call *delayed.Task) error {
	args, kwargs, err := call.Args()
	if err == nil && f.listed != nil {
		err = f.listed.Fit(f.types, args, kwargs)
	}
	if misfit := (*catalog.MisfitError)(nil); errors.As(err, &misfit) {
		return fmt.Errorf("%w: %s", delayed.ErrArguments, Printable(misfit.Error()))
	}
	return err
}
