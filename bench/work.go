package main

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// workLimit bounds how long a worker may take for the requested tasks.
const workLimit = 3 * time.Minute

// work starts workers as r asks, calls ready, and returns when the handler was called r.N times.
func work(q queue, r *request, rec *recorder, ready func() error) (*response, error) {
	stopProfile, err := startProfile(r.Profile)
	if err != nil {
		return nil, err
	}
	before, cpu, start := mallocs(), processCPU(), time.Now()
	for range cmp.Or(r.Workers, 1) {
		if _, err := q.work(r.Concurrency, rec.handle); err != nil {
			return nil, err
		}
	}
	started := time.Since(start)
	if err := ready(); err != nil {
		return nil, err
	}
	if r.N == 0 {
		return &response{Started: started.Seconds()}, nil
	}
	limit := time.NewTimer(workLimit)
	defer limit.Stop()
	select {
	case <-rec.done:
	case <-limit.C:
		return nil, fmt.Errorf("only %d of %d tasks were run within %v", rec.called.Load(), r.N, workLimit)
	}
	a := &response{
		Seconds: time.Since(start).Seconds(), Started: started.Seconds(), CPU: processCPU() - cpu,
		Mallocs: mallocs() - before,
	}
	if err := stopProfile(); err != nil {
		return nil, err
	}
	if r.Latency {
		a.Latencies = rec.latencies
	}
	a.Spans = rec.recorded()
	return a, nil
}

// recorder is called by handlers. It does only what the request needs.
type recorder struct {
	n         int64
	called    atomic.Int64
	ended     atomic.Int64
	done      chan struct{} // closed when the n-th task has ended
	latencies []float64
	pause     func(text string) time.Duration

	trace bool
	mu    sync.Mutex
	spans []span
}

func newRecorder(r *request) *recorder {
	rec := &recorder{n: int64(r.N), done: make(chan struct{}), trace: r.Trace}
	if r.Latency {
		rec.latencies = make([]float64, r.N)
	}
	switch r.Handler {
	case "1ms":
		rec.pause = func(string) time.Duration { return time.Millisecond }
	case "100ms":
		rec.pause = func(string) time.Duration { return 100 * time.Millisecond }
	case "mixed":
		rec.pause = func(text string) time.Duration {
			if text == longText {
				return time.Second
			}
			return time.Millisecond
		}
	}
	return rec
}

// handle records one task. A peer's handler calls it from many goroutines at once.
func (rec *recorder) handle(number int64, text string) {
	i := rec.called.Add(1)
	if rec.latencies == nil && rec.pause == nil && !rec.trace {
		if i == rec.n {
			close(rec.done)
		}
		return
	}
	begin := time.Now().UnixNano()
	if i <= int64(len(rec.latencies)) {
		rec.latencies[i-1] = float64(begin-number) / 1000
	}
	if rec.pause != nil {
		time.Sleep(rec.pause(text))
	}
	if rec.trace {
		s := span{number, text == longText, begin, time.Now().UnixNano()}
		rec.mu.Lock()
		rec.spans = append(rec.spans, s)
		rec.mu.Unlock()
	}
	if rec.ended.Add(1) == rec.n {
		close(rec.done)
	}
}

// recorded returns the tasks that have ended so far.
func (rec *recorder) recorded() []span {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return slices.Clone(rec.spans)
}
