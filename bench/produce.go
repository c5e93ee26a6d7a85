package main

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"
)

// manyProducers is how many producers enqueue where their number does not matter.
const manyProducers = 256

// produce enqueues tasks as r asks.
func produce(q queue, r *request) (*response, error) {
	text := baseText
	if r.Size > 0 {
		text = strings.Repeat("x", r.Size)
	}
	enqueue, err := enqueuer(q, r, text)
	if err != nil {
		return nil, err
	}
	stopProfile, err := startProfile(r.Profile)
	if err != nil {
		return nil, err
	}
	a := &response{}
	before, cpu, start := mallocs(), processCPU(), time.Now()
	switch {
	case r.Batch > 0:
		texts := make([]string, r.Batch)
		for i := range texts {
			texts[i] = text
		}
		for i := 0; i < r.N && err == nil; i += r.Batch {
			err = q.enqueueMany(baseNumber, texts[:min(r.Batch, r.N-i)])
		}
	case r.Rate > 0 && r.Lead == 0:
		for i := 0; i < r.N && err == nil; i++ {
			time.Sleep(time.Until(start.Add(time.Duration(float64(i) / r.Rate * float64(time.Second)))))
			err = q.enqueue(time.Now().UnixNano(), text)
		}
	case r.Latency && r.Producers <= 1:
		a.Latencies = make([]float64, r.N)
		for i := 0; i < r.N && err == nil; i++ {
			begin := time.Now()
			err = enqueue(i)
			a.Latencies[i] = time.Since(begin).Seconds() * 1e6
		}
	default:
		err = fanOut(max(1, r.Producers), r.N, enqueue)
	}
	a.Seconds, a.CPU, a.Mallocs = time.Since(start).Seconds(), processCPU()-cpu, mallocs()-before
	return a, errors.Join(err, stopProfile())
}

// enqueuer returns what enqueues the i-th task of a request.
func enqueuer(q queue, r *request, text string) (func(i int) error, error) {
	f, forms := q.(former)
	s, schedules := q.(scheduler)
	switch {
	case r.Form != "" && forms:
		return func(i int) error { return f.enqueueAs(r.Form, int64(r.First+i), text) }, nil
	case r.Lead > 0 && schedules:
		first := time.Now().Add(time.Duration(r.Lead * float64(time.Second)))
		return func(i int) error {
			due := first.Add(time.Duration(float64(i) / r.Rate * float64(time.Second))).Truncate(time.Millisecond)
			return s.schedule(due, due.UnixNano(), text)
		}, nil
	case r.Form != "" || r.Lead > 0:
		return nil, errNone
	}
	return func(int) error { return q.enqueue(baseNumber, text) }, nil
}

// fanOut calls f for 0 to n−1 from several goroutines, and returns once all calls have returned.
func fanOut(goroutines, n int, f func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, goroutines)
	for g := range goroutines {
		group.Go(func() {
			for i := g * n / goroutines; i < (g+1)*n/goroutines && errs[g] == nil; i++ {
				errs[g] = f(i)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
