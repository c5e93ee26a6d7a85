package engine

import (
	"fmt"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// Register makes functions callable by tasks, unless there are errs already or one of the functions is wrong. Parked
// tasks of the functions are then claimed.
func (w *Worker) Register(fns []*function.Function, errs []error) error {
	if err := w.registering("Register"); err != nil {
		return err
	}
	err := w.registry.Add(fns, errs)
	w.registered()
	for _, f := range fns {
		if f.InMain {
			w.log.With("function", f.Path()).
				Warn("function of package main: a function of the same name in another program has the same path; " +
					"move it to a package")
		}
	}
	return err
}

// registered makes the worker look for parked tasks of new functions, and publish the functions.
func (w *Worker) registered() {
	w.PokeMovers()
	for _, g := range w.slotGroups {
		g.heartbeat.BeatNow()
	}
}

// RegisterMethods registers the methods of a receiver, as function.Registry.AddMethods does.
func (w *Worker) RegisterMethods(receiver any) error {
	if err := w.registering("RegisterMethods"); err != nil {
		return err
	}
	skipped, err := w.registry.AddMethods(receiver)
	w.registered()
	for _, why := range skipped {
		w.log.WithError(why).Debug("method not registered")
	}
	return err
}

// registering returns an error if it is too late to register functions.
func (w *Worker) registering(method string) error {
	if state.Worker(w.phase.Load()) == state.Stopped {
		return fmt.Errorf("%w: %s after Run has returned: make another worker", redisstore.ErrClosed, method)
	}
	return nil
}

// AllFunctions returns the registered functions.
func (w *Worker) AllFunctions() []*function.Function { return w.registry.All() }

// Functions describes the registered functions, sorted by path.
func (w *Worker) Functions() []function.Info {
	var infos []function.Info
	for _, f := range w.registry.All() {
		infos = append(infos, f.Info())
	}
	return infos
}
