package engine

import "context"

// tell adds what a lane's tasks have done to the metrics in Redis. Nothing depends on them: what cannot be told is
// lost.
func (w *Worker) tell(ctx context.Context, l *lane) error {
	seconds := w.exec.takeTally(l)
	if len(seconds) == 0 {
		return nil
	}
	for _, parts := range metricsOf(seconds) {
		if err := l.store.AddMetrics(ctx, parts); err != nil {
			return err
		}
	}
	return nil
}

// tellBriefly is tell for a worker that stops: it must not wait long.
func (w *Worker) tellBriefly(ctx context.Context, l *lane) {
	ctx, cancel := context.WithTimeout(ctx, shortestBeat)
	defer cancel()
	if err := w.tell(ctx, l); err != nil {
		w.log.With("queue", l.store.Name).WithError(err).Debug("cannot add to the metrics of the queue")
	}
}
