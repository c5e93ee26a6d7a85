package engine

import (
	"context"

	"github.com/godelayed/delayed/internal/redisstore"
)

// maxUntold bounds the lists of samples that a lane keeps until the next heartbeat.
const maxUntold = 100

// tell adds what a lane's tasks have done to the metrics in Redis. What may have been added, because an answer was
// lost, is not told again; the rest is, with the next heartbeat. Nothing depends on metrics: what cannot be told in the
// end is lost.
func (w *Worker) tell(ctx context.Context, l *lane) error {
	lists := l.untold
	if seconds := w.exec.takeTally(l); len(seconds) > 0 {
		lists = append(lists, metricsOf(seconds)...)
	}
	l.untold = nil
	for i, parts := range lists {
		rest, err := l.store.AddMetrics(ctx, parts)
		if err == nil {
			continue
		}
		lists = lists[i+1:]
		if len(rest) > 0 {
			lists = append([][]redisstore.MetricsPart{rest}, lists...)
		}
		l.untold = lists[max(0, len(lists)-maxUntold):]
		return err
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
			if !redisstore.IsWrongType(err) {
				return
			}
		}
	}
}
