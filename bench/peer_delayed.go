package main

import (
	"context"
	"io"
	"log/slog"

	"github.com/godelayed/delayed"
)

type delayedQueue struct {
	rdb *delayed.Redis
	q   *delayed.Queue
	fns *handler
}

// handler is what the delayed function calls.
type handler struct{ handled func(int64) }

func (h *handler) Noop(i int64, _ string) { h.handled(i) }

func openDelayed(addr string) (queue, error) {
	rdb, err := delayed.Dial("redis://" + addr)
	if err != nil {
		return nil, err
	}
	return &delayedQueue{rdb: rdb, q: delayed.NewQueue("bench", rdb), fns: &handler{}}, nil
}

func (d *delayedQueue) enqueue(i int64) error {
	_, err := d.q.Delay((*handler).Noop, i, text)
	return err
}

func (d *delayedQueue) enqueueMany(n int) error {
	calls := make([]*delayed.Task, 0, 1000)
	for i := range n {
		calls = append(calls, delayed.Call((*handler).Noop, int64(i), text))
		if len(calls) == cap(calls) || i == n-1 {
			if _, err := d.q.DelayMany(context.Background(), calls...); err != nil {
				return err
			}
			calls = calls[:0]
		}
	}
	return nil
}

func (d *delayedQueue) work(concurrency int, handled func(int64)) (func(), error) {
	d.fns.handled = handled
	w, err := delayed.NewWorker(d.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{"bench"}, Concurrency: concurrency, Logger: delayed.SlogLogger(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		return nil, err
	}
	if err := w.RegisterMethods(d.fns); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = w.Run(ctx)
	}()
	return func() { cancel(); <-done }, nil
}

func (d *delayedQueue) close() { d.rdb.Close() }
