package engine

import (
	"fmt"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// Status is a snapshot of a worker.
type Status struct {
	Phase      state.Worker
	Busy       int          // running handlers
	Connected  bool         // Redis has confirmed the last heartbeat of every queue
	StopReason state.Reason // "" unless it stops
	// Beat is when Redis last confirmed the heartbeat of every queue; zero if it has not.
	Beat time.Time
}

// ID returns the worker's id, 32 hexadecimal digits. It never changes, and no other worker has it.
func (w *Worker) ID() string {
	return w.id
}

// Pause makes the worker claim no tasks until Resume. It gives back tasks that have not started; running handlers go
// on.
func (w *Worker) Pause() {
	w.controlMu.Lock()
	defer w.controlMu.Unlock()
	if w.paused.CompareAndSwap(false, true) {
		w.holdBack()
		w.log.Info("worker paused")
		w.events.Emit(events.Event{Kind: event.WorkerPaused})
	}
}

// Resume ends a Pause, but not Quiet.
func (w *Worker) Resume() {
	w.controlMu.Lock()
	defer w.controlMu.Unlock()
	if w.paused.CompareAndSwap(true, false) {
		w.exec.Hold(w.quiet.Load() || w.phase.Load() >= int32(state.Stopping))
		w.log.Info("worker resumed")
		w.events.Emit(events.Event{Kind: event.WorkerResumed})
	}
}

// Quiet makes the worker claim no more tasks, for good: it can then be stopped once it is idle.
func (w *Worker) Quiet() {
	w.controlMu.Lock()
	defer w.controlMu.Unlock()
	if w.quiet.CompareAndSwap(false, true) {
		w.holdBack()
		w.log.Info("worker is quiet: it claims no more tasks")
		w.events.Emit(events.Event{Kind: event.WorkerQuiet})
	}
}

// holdBack lets no task start and gives back those that have not. The fetcher gives back what a claim call under way
// returns.
func (w *Worker) holdBack() {
	w.exec.Hold(true)
	lane.GiveBack(w.exec.TakeBack(nil))
}

// Status returns a snapshot of the worker.
func (w *Worker) Status() Status {
	s := Status{Phase: state.Worker(w.phase.Load()), StopReason: w.stopReason()}
	if s.Phase == state.New {
		return s
	}
	s.Busy = len(w.exec.Running())
	s.Connected = s.Phase != state.Stopped
	for i, l := range w.lanes {
		s.Connected = s.Connected && l.Fresh(w.cfg.HeartbeatLife) && !l.Unanswered.Load()
		var beat time.Time
		if confirmed := l.Confirmed.Load(); confirmed != nil && !l.Refused.Load() {
			beat = *confirmed
		}
		if i == 0 || beat.Before(s.Beat) {
			s.Beat = beat
		}
	}
	if s.Phase == state.Running {
		for _, l := range w.lanes {
			if l.Confirmed.Load() == nil {
				s.Phase = state.New // Redis does not know it yet
				return s
			}
		}
		switch {
		case w.quiet.Load():
			s.Phase = state.Quiet
		case w.paused.Load():
			s.Phase = state.Paused
		}
	}
	return s
}

// Phase returns what the worker does.
func (w *Worker) Phase() state.Worker { return w.Status().Phase }

// Begun reports whether Run was called.
func (w *Worker) Begun() bool { return state.Worker(w.phase.Load()) != state.New }

// Listen calls fn with every event, in order, on a goroutine of its own. It must be called before Run.
func (w *Worker) Listen(fn func(events.Event)) error {
	w.controlMu.Lock()
	defer w.controlMu.Unlock()
	if w.Begun() {
		return fmt.Errorf("%w: Listen after Run: call it before", redisstore.ErrClosed)
	}
	w.events.Add(fn)
	return nil
}

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
