package delayed

// Why a worker stops, as WorkerStatus.StopReason, its log and EventWorkerStopping say it.
const (
	stopContext = "context" // the context of Run has ended
)

// stopFor makes the worker stop as if the context of Run had ended. The first reason holds. It never blocks and may be called at any time.
func (w *Worker) stopFor(reason string) {
	if w.reason.CompareAndSwap(nil, &reason) {
		close(w.stopping)
	}
}

// stopReason returns why the worker stops, "" if it does not.
func (w *Worker) stopReason() string {
	if reason := w.reason.Load(); reason != nil {
		return *reason
	}
	return ""
}
