package engine

// ID returns the worker's id, 32 hexadecimal digits. It never changes, and no other worker has it.
func (w *Worker) ID() string {
	return w.UID
}

// Pause makes the worker claim no more tasks until Resume. It gives back what it has claimed ahead; running handlers go
// on.
func (w *Worker) Pause() {
	w.control.Lock()
	defer w.control.Unlock()
	if w.Paused.CompareAndSwap(false, true) {
		w.holdBack()
		w.Log.Info("worker paused")
		w.Emit(Event{Kind: KindWorkerPaused})
	}
}

// Resume ends a Pause. It does not end Quiet.
func (w *Worker) Resume() {
	w.control.Lock()
	defer w.control.Unlock()
	if w.Paused.CompareAndSwap(true, false) {
		w.Exec.Hold(w.quiet.Load() || w.Phase.Load() >= int32(phaseStopping))
		w.Log.Info("worker resumed")
		w.Emit(Event{Kind: KindWorkerResumed})
	}
}

// Quiet makes the worker claim no more tasks for good, so that it can be stopped without hurry when it is idle.
func (w *Worker) Quiet() {
	w.control.Lock()
	defer w.control.Unlock()
	if w.quiet.CompareAndSwap(false, true) {
		w.holdBack()
		w.Log.Info("worker is quiet: it claims no more tasks")
		w.Emit(Event{Kind: KindWorkerQuiet})
	}
}

// holdBack starts nothing more and gives back what has not started. The fetcher does so with what a claim under way
// brings.
func (w *Worker) holdBack() {
	w.Exec.Hold(true)
	w.GiveBack(w.Exec.TakeBack())
}

// Status returns a snapshot.
func (w *Worker) Status() Status {
	s := Status{Phase: Phase(w.Phase.Load()), StopReason: w.stopReason()}
	if s.Phase == phaseNew {
		return s
	}
	s.Busy = len(w.Exec.Running())
	s.Connected = s.Phase != PhaseStopped
	for _, l := range w.Lanes {
		s.Connected = s.Connected && l.Fresh(w.Cfg.HeartbeatLife)
	}
	if s.Phase == PhaseRunning {
		for _, l := range w.Lanes {
			if l.Confirmed.Load() == nil {
				s.Phase = phaseNew // Redis does not know it yet
				return s
			}
		}
		switch {
		case w.quiet.Load():
			s.Phase = phaseQuiet
		case w.Paused.Load():
			s.Phase = phasePaused
		}
	}
	return s
}

// Begun reports whether Run was called.
func (w *Worker) Begun() bool { return Phase(w.Phase.Load()) != phaseNew }
