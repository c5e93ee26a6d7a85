package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
)

const (
	benchPatience = 30 * time.Second // for deleting the queue at the end
	benchPings    = 200
	benchWakes    = 500
	benchBatch    = 100
)

// benchRun measures with one queue.
type benchRun struct {
	f       *benchFlags
	rdb     *delayed.Store
	q       *delayed.Queue
	worker  *delayed.Worker
	nothing *delayed.Function
	payload []byte

	enqueued int            // tasks, since the start
	handled  atomic.Int64   // tasks that have run
	done     chan time.Time // gets the time, if there is room, when a handler is called

	// Of the worker, once it was started.
	stop  context.CancelFunc
	ended chan error
}

func newBenchRun(rdb *delayed.Store, queue string, f *benchFlags) (*benchRun, error) {
	r := &benchRun{
		f: f, rdb: rdb, payload: []byte(strings.Repeat("x", f.size)), done: make(chan time.Time, 1),
	}
	r.nothing = delayed.Func(func([]byte) {
		at := time.Now()
		r.handled.Add(1)
		select {
		case r.done <- at:
		default:
		}
	}, delayed.Name("delayed.bench"))
	var err error
	if r.q, err = delayed.OpenQueue(queue, rdb, delayed.QueueConfig{}); err != nil {
		return nil, err
	}
	r.worker, err = delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{queue}, Concurrency: f.concurrency,
		Logger: delayed.SlogLogger(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return r, r.worker.Register(r.nothing)
}

// limited bounds a part of the measurement.
func (r *benchRun) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(r.f.time))
}

// over reports whether an error only says that the time of a part is over.
func over(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil
}

// roundTrips measures single requests.
func (r *benchRun) roundTrips(ctx context.Context) (benchTimings, error) {
	if err := r.rdb.Ping(ctx); err != nil { // the first one connects
		return benchTimings{}, err
	}
	ctx, cancel := r.limited(ctx)
	defer cancel()
	var took []time.Duration
	begin := time.Now()
	for len(took) < benchPings && ctx.Err() == nil {
		start := time.Now()
		if err := r.rdb.Ping(ctx); err != nil && !over(ctx, err) {
			return benchTimings{}, err
		}
		took = append(took, time.Since(start))
	}
	return timingsOf(took, len(took), time.Since(begin)), nil
}

// enqueue measures producers that enqueue one task after the other.
func (r *benchRun) enqueue(ctx context.Context) (benchTimings, error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	took := make([][]time.Duration, r.f.producers)
	errs := make([]error, r.f.producers)
	var next atomic.Int64
	var producers sync.WaitGroup
	begin := time.Now()
	for i := range r.f.producers {
		producers.Go(func() {
			for next.Add(1) <= int64(r.f.tasks) && ctx.Err() == nil {
				start := time.Now()
				// A call that is under way when the time is over goes on: else it were unknown whether it counts.
				if _, err := r.q.DelayContext(context.WithoutCancel(ctx), r.nothing, r.payload); err != nil {
					errs[i] = err
					cancel()
					return
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	producers.Wait()
	all := time.Since(begin)
	var calls []time.Duration
	for _, t := range took {
		calls = append(calls, t...)
	}
	r.enqueued += len(calls)
	return timingsOf(calls, len(calls), all), errors.Join(errs...)
}

// batches measures DelayMany.
func (r *benchRun) batches(ctx context.Context) (benchTimings, error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	var took []time.Duration
	sent := 0
	begin := time.Now()
	for sent < r.f.tasks && ctx.Err() == nil {
		calls := make([]*delayed.Task, min(benchBatch, r.f.tasks-sent))
		for i := range calls {
			calls[i] = delayed.Call(r.nothing, r.payload)
		}
		start := time.Now()
		if _, err := r.q.DelayMany(context.WithoutCancel(ctx), calls...); err != nil {
			return benchTimings{}, err
		}
		took = append(took, time.Since(start))
		sent += len(calls)
	}
	r.enqueued += sent
	return timingsOf(took, sent, time.Since(begin)), nil
}

// drain measures the worker, which runs what was enqueued.
func (r *benchRun) drain(ctx context.Context) (benchTimings, error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	before := r.handled.Load()
	left := int64(r.enqueued) - before
	begin := time.Now()
	r.worker.Resume()
	for r.handled.Load()-before < left && ctx.Err() == nil {
		if _, err := r.await(ctx); err != nil {
			return benchTimings{}, err
		}
	}
	return timingsOf(nil, int(r.handled.Load()-before), time.Since(begin)), nil
}

// wake measures how soon an idle worker starts a task. It starts the worker, and pauses it in the end.
func (r *benchRun) wake(ctx context.Context) (benchTimings, error) {
	r.start(ctx)
	ctx, cancel := r.limited(ctx)
	defer cancel()
	var took []time.Duration
	var begin time.Time
	// The first task waits for the start of the worker, and is not measured.
	for i := 0; i <= min(benchWakes, r.f.tasks) && ctx.Err() == nil; i++ {
		start := time.Now()
		if i == 1 {
			begin = start
		}
		if _, err := r.q.DelayContext(context.WithoutCancel(ctx), r.nothing, r.payload); err != nil {
			return benchTimings{}, err
		}
		r.enqueued++
		at, err := r.await(ctx)
		if err != nil {
			return benchTimings{}, err
		}
		if i > 0 && !at.IsZero() {
			took = append(took, at.Sub(start))
		}
	}
	r.worker.Pause()
	all := time.Duration(0)
	if len(took) > 0 {
		all = time.Since(begin)
	}
	return timingsOf(took, len(took), all), nil
}

// start starts the worker. remove stops it.
func (r *benchRun) start(ctx context.Context) {
	// Ctrl-C ends the measurement, and then remove stops the worker.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.ended = make(chan error, 1)
	r.stop = cancel
	go func() { r.ended <- r.worker.Run(running) }()
}

// await waits for a task that has run, and returns when its handler was called; the zero time if ctx ends before.
func (r *benchRun) await(ctx context.Context) (time.Time, error) {
	select {
	case at := <-r.done:
		return at, nil
	case err := <-r.ended:
		r.ended <- err // for remove
		return time.Time{}, fmt.Errorf("the worker has stopped: %w", cmp.Or(err, errors.New("another worker's order")))
	case <-ctx.Done():
		return time.Time{}, nil
	}
}

// remove stops the worker and deletes the queue.
func (r *benchRun) remove(ctx context.Context, ins *inspect.Inspector) error {
	if r.stop != nil {
		r.stop()
		select {
		case <-r.ended: // await has told of an error
		case <-ctx.Done():
			return errors.New("the worker does not stop")
		}
	}
	err := ins.DeleteQueue(ctx, r.q.Name(), true)
	if errors.Is(err, inspect.ErrNotFound) {
		return nil // nothing was enqueued
	}
	return err
}
