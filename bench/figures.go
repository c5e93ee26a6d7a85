package main

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// figure is something to measure.
type figure struct {
	name string
	unit string
	less bool // less is better
	take func(queue) (value float64, ok bool, err error)
}

func figuresOf(tasks, concurrency int) []figure {
	return []figure{
		{"enqueue, 1 producer", "tasks/s", false, enqueue(1, tasks/10)},
		{"enqueue, 16 producers", "tasks/s", false, enqueue(16, tasks/2)},
		{"enqueue, 64 producers", "tasks/s", false, enqueue(64, tasks/2)},
		{"enqueue, 1,000 a call", "tasks/s", false, enqueueMany(tasks)},
		{"drain, no-op", "tasks/s", false, drain(tasks, concurrency)},
		{"wake-up p50", "ms", true, wakeUp(0.50)},
		{"wake-up p99", "ms", true, wakeUp(0.99)},
	}
}

// rate returns tasks a second.
func rate(n int, since time.Time) float64 { return float64(n) / time.Since(since).Seconds() }

// enqueue lets producers add n tasks, each waiting for its own to be accepted.
func enqueue(producers, n int) func(queue) (float64, bool, error) {
	return func(q queue) (float64, bool, error) {
		if err := q.enqueue(0); err != nil { // connect
			return 0, false, err
		}
		var group sync.WaitGroup
		errs := make([]error, producers)
		start := time.Now()
		for p := range producers {
			group.Go(func() {
				for i := range n / producers {
					if errs[p] = q.enqueue(int64(i)); errs[p] != nil {
						return
					}
				}
			})
		}
		group.Wait()
		return rate(n/producers*producers, start), true, errors.Join(errs...)
	}
}

// enqueueMany adds n tasks by the peer's own call for many.
func enqueueMany(n int) func(queue) (float64, bool, error) {
	return func(q queue) (float64, bool, error) {
		if err := q.enqueue(0); err != nil {
			return 0, false, err
		}
		start := time.Now()
		err := q.enqueueMany(n)
		if errors.Is(err, errNone) {
			return 0, false, nil
		}
		return rate(n, start), true, err
	}
}

// drain lets a worker run n pending tasks: from its start to the n-th call.
func drain(n, concurrency int) func(queue) (float64, bool, error) {
	return func(q queue) (float64, bool, error) {
		err := q.enqueueMany(n)
		if errors.Is(err, errNone) {
			_, _, err = enqueue(20, n)(q) // n is a multiple of 20, and one more connects
		}
		if err != nil {
			return 0, false, err
		}
		done := make(chan struct{})
		var handled atomic.Int64
		start := time.Now()
		stop, err := q.work(concurrency, func(int64) {
			if handled.Add(1) == int64(n) {
				close(done)
			}
		})
		if err != nil {
			return 0, false, err
		}
		defer stop()
		if err := await(done, time.Minute); err != nil {
			return 0, false, err
		}
		return rate(n, start), true, nil
	}
}

// wakeUp measures from the call that enqueues to the entry of the handler, on a worker that has gone to wait.
func wakeUp(quantile float64) func(queue) (float64, bool, error) {
	const samples = 200
	return func(q queue) (float64, bool, error) {
		entered := make(chan time.Time, 1)
		stop, err := q.work(10, func(int64) { entered <- time.Now() })
		if err != nil {
			return 0, false, err
		}
		defer stop()
		var took []time.Duration
		for i := range samples {
			time.Sleep(5 * time.Millisecond) // the worker goes to wait
			start := time.Now()
			if err := q.enqueue(int64(i)); err != nil {
				return 0, false, err
			}
			select {
			case at := <-entered:
				took = append(took, at.Sub(start))
			case <-time.After(time.Minute):
				return 0, false, errors.New("a task did not run within a minute")
			}
			if len(took) > 20 && took[len(took)-1] > 100*time.Millisecond {
				break // a peer that polls: twenty samples tell enough
			}
		}
		slices.Sort(took)
		return took[int(quantile*float64(len(took)-1))].Seconds() * 1000, true, nil
	}
}

func await(done <-chan struct{}, limit time.Duration) error {
	select {
	case <-done:
		return nil
	case <-time.After(limit):
		return errors.New("not done within " + limit.String())
	}
}
