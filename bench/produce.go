package main

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"time"
)

// produce enqueues tasks as r asks.
func produce(q queue, r *request) (*response, error) {
	textOf, numberOf := contentOf(r)
	call := q.enqueue
	s, schedules := q.(scheduler)
	if (r.Schedule || r.Lead > 0) && !schedules {
		return nil, errNone
	}
	if r.Schedule {
		tomorrow := time.Now().Add(24 * time.Hour)
		call = func(number int64, text string) error { return s.schedule(tomorrow, number, text) }
	}
	f, forms := q.(former)
	if r.Form != "" && !forms {
		return nil, errNone
	}
	if t, ok := q.(tuner); ok {
		if err := t.tune(callers(r)); err != nil {
			return nil, err
		}
	}
	var took []float64
	if r.Latency && r.Producers <= 1 {
		took = make([]float64, r.N)
	}
	stopProfile, err := startProfile(r.Profile)
	if err != nil {
		return nil, err
	}
	before, cpu, start := mallocs(), processCPU(), time.Now()
	switch {
	case r.Batch > 0:
		texts := make([]string, 0, r.Batch)
		for i := 0; i < r.N && err == nil; i += len(texts) {
			texts = texts[:0]
			for j := i; j < min(i+r.Batch, r.N); j++ {
				texts = append(texts, textOf(j))
			}
			err = q.enqueueMany(numberOf(), texts)
		}
	case r.Lead > 0:
		first := start.Add(time.Duration(r.Lead * float64(time.Second)))
		err = fanOut(max(1, r.Producers), r.N, func(i int) error {
			due := first.Add(time.Duration(float64(i) / r.Rate * float64(time.Second))).Truncate(time.Millisecond)
			return s.schedule(due, due.UnixNano(), textOf(i))
		})
	case r.Form != "":
		err = fanOut(max(1, r.Producers), r.N, func(i int) error {
			return f.enqueueAs(r.Form, int64(r.First+i), textOf(i))
		})
	case r.Rate > 0 && r.Producers == 1:
		i := 0
		for range dueTimes(r.N, r.Rate) {
			if err != nil {
				continue // keep receiving, so that nobody waits
			}
			err = call(time.Now().UnixNano(), textOf(i))
			i++
		}
	case r.Rate > 0:
		err = pace(call, r.N, r.Rate, textOf)
	case took != nil:
		for i := 0; i < r.N && err == nil; i++ {
			begin := time.Now()
			err = call(numberOf(), textOf(i))
			took[i] = time.Since(begin).Seconds() * 1e6
		}
	default:
		err = fanOut(max(1, r.Producers), r.N, func(i int) error { return call(numberOf(), textOf(i)) })
	}
	a := &response{
		Seconds: time.Since(start).Seconds(), CPU: processCPU() - cpu, Mallocs: mallocs() - before,
		Latencies: took,
	}
	return a, errors.Join(err, stopProfile())
}

// contentOf returns functions for the text and the number of each task.
func contentOf(r *request) (textOf func(i int) string, numberOf func() int64) {
	text := baseText
	if r.Size > 0 {
		text = strings.Repeat("x", r.Size)
	}
	textOf = func(i int) string {
		if r.Every > 0 && i%r.Every == r.Every-1 {
			return longText
		}
		return text
	}
	if r.Now {
		return textOf, func() int64 { return time.Now().UnixNano() }
	}
	return textOf, func() int64 { return baseNumber }
}

// callers returns how many goroutines enqueue.
func callers(r *request) int {
	if r.Rate > 0 && r.Producers != 1 {
		return paceCallers
	}
	return max(1, r.Producers)
}

// paceCallers is how many calls pace has under way at most.
const paceCallers = 256

// fanOut calls f for 0 to n−1 from several goroutines, and returns once all calls have returned.
func fanOut(goroutines, n int, f func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, goroutines)
	for g := range goroutines {
		group.Go(func() {
			for i := g * n / goroutines; i < (g+1)*n/goroutines; i++ {
				if errs[g] = f(i); errs[g] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// dueTimes sends n times at a rate, each when it is due. A goroutine of its own sleeps, so that the receiver need not
// keep a thread.
func dueTimes(n int, rate float64) <-chan time.Time {
	times := make(chan time.Time)
	go func() {
		defer close(times)
		sleep := preciseSleeper()
		start := time.Now()
		for i := range n {
			at := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
			sleep(time.Until(at))
			times <- at
		}
	}()
	return times
}

// pace calls f at fixed times, whether earlier calls have returned or not, so that a slow reply delays no other task,
// up to paceCallers calls under way.
func pace(call func(int64, string) error, n int, rate float64, textOf func(int) string) error {
	type due struct {
		number int64
		text   string
	}
	calls := make(chan due, n)
	var group sync.WaitGroup
	errs := make([]error, paceCallers)
	for g := range errs {
		group.Go(func() {
			for d := range calls {
				if errs[g] == nil {
					errs[g] = call(d.number, d.text)
				}
			}
		})
	}
	i := 0
	for at := range dueTimes(n, rate) {
		calls <- due{at.UnixNano(), textOf(i)}
		i++
	}
	close(calls)
	group.Wait()
	return errors.Join(errs...)
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
