package engine

import (
	"context"

	"github.com/godelayed/delayed/internal/redisstore"
)

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

// tellAtTheEnd tells what no heartbeat has told. Redis has just answered, so that this rarely waits.
func (w *Worker) tellAtTheEnd() {
	ctx, cancel := context.WithTimeout(context.Background(), redisstore.CallTimeout) // for all queues together
	defer cancel()
	for _, l := range w.lanes {
		if err := w.tell(ctx, l); err != nil {
			w.log.With("queue", l.store.Name).WithError(err).Debug("cannot add to the metrics of the queue")
			return
		}
	}
}
