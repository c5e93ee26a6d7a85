package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// unregisterPause is the time between two attempts to unregister.
const unregisterPause = 50 * time.Millisecond

// unregister removes the worker from Redis. If that fails, the heartbeat expires and a sweeper removes it.
func (w *Worker) unregister() error {
	ctx, cancel := context.WithTimeout(context.Background(), redisstore.CallTimeout) // for all queues together
	defer cancel()
	var errs []error
	away := false // Redis does not answer
	for _, f := range w.finishers {
		if n := f.Waiting(); n > 0 {
			errs = append(errs, fmt.Errorf("delayed: queue %q: Redis has not confirmed how %d tasks ended; they may "+
				"run again", f.Lane.Store.Name, n))
			away = away || !f.Lane.EndingsRefused.Load()
		}
	}
	gone := map[*lane.Lane]bool{}
	if !away {
		gone = w.unregisterTogether(ctx)
	}
	for i, l := range w.lanes {
		if away || gone[l] || !l.Registered.Load() || w.finishers[i].Waiting() > 0 {
			continue // the heartbeat will expire
		}
		// Retry, because each pooled connection that idled while Redis was away is dead, and there may be a dozen.
		// Unregistering twice does no harm.
		err := w.unregisterFrom(ctx, l)
		for err != nil && !errors.Is(err, redisstore.ErrClosed) && !redisstore.IsWrongType(err) &&
			loop.Sleep(ctx, unregisterPause) {
			err = w.unregisterFrom(ctx, l)
		}
		if err != nil {
			errs = append(errs, err)
			away = !redisstore.IsWrongType(err) // if it is, the worker can unregister from the other queues
		}
	}
	if !away {
		beat.PublishLastMetrics(w.exec, w.lanes, w.log)
	}
	err := errors.Join(errs...)
	if err != nil {
		w.log.WithError(err).Error("worker could not unregister from Redis")
	}
	return err
}

// unregisterTogether unregisters the worker from its queues with calls that are sent together, and returns those where
// that was all there was to do.
func (w *Worker) unregisterTogether(ctx context.Context) map[*lane.Lane]bool {
	gone := map[*lane.Lane]bool{}
	for _, g := range w.slotGroups {
		lanes, stores := lane.Where(g.lanes, func(l *lane.Lane) bool {
			return l.Registered.Load() && w.finishers[l.Index].Waiting() == 0
		})
		if len(lanes) < 2 {
			continue
		}
		for i, a := range redisstore.UnregisterEach(ctx, stores, w.id) {
			gone[lanes[i]] = a.Err == nil && a.Value
		}
	}
	return gone
}

// unregisterFrom unregisters the worker from one queue. It gives back what claims Redis still has of this worker: their
// replies were lost.
func (w *Worker) unregisterFrom(ctx context.Context, l *lane.Lane) error {
	gone, err := l.Store.Unregister(ctx, w.id)
	if err != nil || gone {
		return err
	}
	tokens, err := l.Store.Tokens(ctx, w.id)
	if err != nil {
		return err
	}
	if err := l.ReleaseTokens(ctx, tokens, func(int) {}); err != nil {
		return err
	}
	_, err = l.Store.Unregister(ctx, w.id)
	return err
}

// noteStop notes in Redis that the worker stops in good order, so that sweepers do not count a death for the tasks that
// it leaves behind. It retries until ctx ends.
func (w *Worker) noteStop(ctx context.Context, l *lane.Lane) {
	if known, _, _ := l.Count(); known == 0 {
		return
	}
	var wait loop.Backoff
	err := l.Store.Mark(ctx, w.id, redisstore.MarkStopped, "1")
	for err != nil && loop.Sleep(ctx, wait.Next()) {
		err = l.Store.Mark(ctx, w.id, redisstore.MarkStopped, "1")
	}
}
