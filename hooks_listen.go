package delayed

import (
	"fmt"
	"slices"
)

// Listen has fn called with every event of the worker, in their order. Call it before Run; afterwards it returns an
// error that wraps ErrClosed.
//
// Listeners hear of events shortly after they have happened, on a goroutine of their own: they cannot hold up the
// worker, nor change what becomes of a task (see Use for that), and a panic of theirs is logged. A worker keeps up to
// 10,000 events for listeners that are slow; further ones are dropped, and Event.Missed of the next one says how many.
// When the worker stops, Run waits for listeners for as long as WorkerConfig.CancelGrace says, for a second at least.
func (w *Worker) Listen(fn func(Event)) error {
	if err := w.check(); err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("%w: Listen: expected a function that takes an Event, found nil", ErrFunction)
	}
	w.control.Lock()
	defer w.control.Unlock()
	if WorkerState(w.state.Load()) != WorkerNew {
		return fmt.Errorf("%w: Listen after Run: call it before", ErrClosed)
	}
	w.hooks.listeners = append(slices.Clip(w.hooks.listeners), fn)
	w.hooks.on.Store(true)
	return nil
}
