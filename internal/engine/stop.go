package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// unregisterPause is the time between two tries to unregister.
const unregisterPause = 50 * time.Millisecond

// unregister makes Redis forget the worker. If that fails, its heartbeat expires and a sweeper does it.
func (w *Worker) unregister() error {
	var errs []error
	ctx, cancel := context.WithTimeout(context.Background(), redisstore.CallTimeout) // for all together
	defer cancel()
	for _, f := range w.finishers {
		if n := f.waiting(); n > 0 {
			errs = append(errs, fmt.Errorf("delayed: queue %q: Redis was not told how %d tasks ended; they will run "+
				"again", f.lane.store.Name, n))
		}
	}
	for _, l := range w.lanes {
		if len(errs) > 0 {
			break // Redis does not answer: its heartbeat's end says the same
		}
		if !l.registered.Load() {
			continue
		}
		// Again and again, because each connection that idled while Redis was away is dead: a pool may hold a dozen of
		// them. Unregistering twice does no harm.
		err := w.unregisterFrom(ctx, l)
		for err != nil && !errors.Is(err, redisstore.ErrClosed) && loop.Sleep(ctx, unregisterPause) {
			err = w.unregisterFrom(ctx, l)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	err := errors.Join(errs...)
	if err != nil {
		w.log.WithError(err).Error("worker could not take its leave from Redis")
	}
	return err
}

// unregisterFrom unregisters the worker from one queue.
func (w *Worker) unregisterFrom(ctx context.Context, l *lane) error {
	gone, err := l.store.Unregister(ctx, w.id)
	if err != nil || gone {
		return err
	}
	// Claims whose replies were lost: this process never had them in hand.
	return w.releaseUnknown(ctx, l)
}

// releaseUnknown gives back what a worker that stops holds without knowing, and unregisters it.
func (w *Worker) releaseUnknown(ctx context.Context, l *lane) error {
	tokens, err := l.store.Tokens(ctx, w.id)
	if err != nil {
		return err
	}
	for len(tokens) > 0 {
		n := min(len(tokens), redisstore.MaxTokens)
		if _, err := l.store.Release(ctx, w.id, nil, tokens[:n], l.store, true); err != nil {
			return err
		}
		tokens = tokens[n:]
	}
	_, err = l.store.Unregister(ctx, w.id)
	return err
}

// noteStop tells Redis that the worker stops in good order, so that what it leaves behind has not died with it. It
// tries until ctx ends.
func (w *Worker) noteStop(ctx context.Context, l *lane) {
	if known, _, _ := l.count(); known == 0 {
		return
	}
	var wait loop.Backoff
	err := l.store.Mark(ctx, w.id, redisstore.MarkStopped, "1")
	for err != nil && loop.Sleep(ctx, wait.Next()) {
		err = l.store.Mark(ctx, w.id, redisstore.MarkStopped, "1")
	}
}
