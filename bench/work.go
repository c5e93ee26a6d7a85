package main

import (
	"fmt"
	"sync/atomic"
	"time"
)

// workLimit bounds how long a worker may take for the requested tasks.
const workLimit = 3 * time.Minute

// work starts a worker as r asks, calls ready, and returns when the handler was called r.N times.
func work(q queue, r *request, ready func() error) (*response, error) {
	stopProfile, err := startProfile(r.Profile)
	if err != nil {
		return nil, err
	}
	rec := &recorder{n: int64(r.N), sleep: r.Sleep, done: make(chan struct{})}
	if r.Latency {
		rec.latencies = make([]float64, r.N)
	}
	before, cpu, start := mallocs(), processCPU(), time.Now()
	if err := q.work(r.Concurrency, rec.handle); err != nil {
		return nil, err
	}
	if err := ready(); err != nil || r.N == 0 {
		return &response{}, err
	}
	limit := time.NewTimer(workLimit)
	defer limit.Stop()
	select {
	case <-rec.done:
	case <-limit.C:
		return nil, fmt.Errorf("only %d of %d tasks were run within %v", rec.called.Load(), r.N, workLimit)
	}
	return &response{
		Seconds: time.Since(start).Seconds(), CPU: processCPU() - cpu, Mallocs: mallocs() - before,
		Latencies: rec.latencies,
	}, stopProfile()
}

// recorder is called by handlers. It does only what the request needs.
type recorder struct {
	n         int64
	called    atomic.Int64
	done      chan struct{} // closed when the n-th task has ended
	latencies []float64
	ended     atomic.Int64
	sleep     time.Duration
}

// handle records one task. A peer's handler calls it from many goroutines at once.
func (rec *recorder) handle(number int64, _ string) {
	i := rec.called.Add(1)
	if rec.latencies == nil && rec.sleep == 0 {
		if i == rec.n {
			close(rec.done)
		}
		return
	}
	if i <= int64(len(rec.latencies)) {
		rec.latencies[i-1] = float64(time.Now().UnixNano()-number) / 1000
	}
	time.Sleep(rec.sleep)
	if rec.ended.Add(1) == rec.n {
		close(rec.done)
	}
}
