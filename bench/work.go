package main

import (
	"cmp"
	"fmt"
	"sync/atomic"
	"time"
)

// work starts workers as r says, calls ready, and returns when the handler was called r.N times.
func work(q queue, r *request, ready func() error) (*response, error) {
	rec := newRecorder(r)
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
	limit := time.NewTimer(10 * time.Minute)
	defer limit.Stop()
	select {
	case <-rec.done:
	case <-limit.C:
		return nil, fmt.Errorf("only %d of %d tasks were run within 10 minutes", rec.called.Load(), r.N)
	}
	a := &response{Seconds: time.Since(start).Seconds(), Started: started.Seconds(), CPU: processCPU() - cpu, Mallocs: mallocs() - before}
	if err := stopProfile(); err != nil {
		return nil, err
	}
	if r.Latency {
		a.Latencies = rec.latencies
	}
	a.Spans = rec.spans
	return a, nil
}

// recorder is what handlers call. It does as little as it is asked for.
type recorder struct {
	n         int64
	called    atomic.Int64
	done      chan struct{}
	latencies []float64
	spans     []span
	ended     atomic.Int64
	pause     func(text string) time.Duration
}

func newRecorder(r *request) *recorder {
	rec := &recorder{n: int64(r.N), done: make(chan struct{})}
	if r.Latency {
		rec.latencies = make([]float64, r.N)
	}
	if r.Trace {
		rec.spans = make([]span, r.N)
	}
	switch r.Handler {
	case "1ms":
		rec.pause = func(string) time.Duration { return time.Millisecond }
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

// handle is called by a peer's handler, by many goroutines at once.
func (rec *recorder) handle(number int64, text string) {
	i := rec.called.Add(1)
	if rec.latencies == nil && rec.spans == nil && rec.pause == nil {
		if i == rec.n {
			close(rec.done)
		}
		return
	}
	if i > rec.n {
		return // of a later request
	}
	begin := time.Now().UnixNano()
	if rec.latencies != nil {
		rec.latencies[i-1] = float64(begin-number) / 1000
	}
	if rec.pause != nil {
		time.Sleep(rec.pause(text))
	}
	if rec.spans != nil {
		rec.spans[i-1] = span{number, text == longText, begin, time.Now().UnixNano()}
	}
	if rec.ended.Add(1) == rec.n {
		close(rec.done)
	}
}
