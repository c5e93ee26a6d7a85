package engine

import (
	"fmt"

	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// Register makes functions callable by tasks, unless there are errors already or anything is wrong with any. Parked
// tasks of theirs are claimed then.
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

// registered says that there are new functions: parked tasks of theirs become pending, and Redis is told.
func (w *Worker) registered() {
	w.pokeMovers()
	for _, g := range w.slotGroups {
		g.heartbeat.beatNow()
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

// registering returns an error if functions cannot be registered any more.
func (w *Worker) registering(method string) error {
	if state.Worker(w.phase.Load()) == state.Stopped {
		return fmt.Errorf("%w: %s after Run has returned: make another worker", redisstore.ErrClosed, method)
	}
	return nil
}

// Functions describes what is registered, sorted by path.
func (w *Worker) Functions() []function.Info {
	var infos []function.Info
	for _, f := range w.registry.All() {
		infos = append(infos, f.Info())
	}
	return infos
}
