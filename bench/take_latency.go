package main

import (
	"fmt"
	"math"
	"slices"
	"time"
)

const (
	latencyTable = "latency"
	latenessRow  = "scheduled, after it is due, idle"
	burstRow     = "scheduled, after it is due, 100,000 in one second"
)

// takeWakeUp measures from the call that enqueues to the entry of the handler, on a worker that is waiting; each task
// is alone.
func takeWakeUp(b *bed) error {
	n, rate := b.tasks(400, 20), 200.0
	if b.peer.polls {
		n, rate = 100, 37 // three seconds, for whoever looks once a second
		if b.scale < 0.1 {
			n = 10
		}
	}
	return b.latencies("idle", n, rate, true)
}

// takeCapacity measures how many tasks a second pass through when producers, server and worker all run at once.
func takeCapacity(n int) func(*bed) error {
	return func(b *bed) error {
		producer, err := b.driver()
		if err != nil {
			return err
		}
		worker, err := b.driver()
		if err != nil {
			return err
		}
		if _, err := producer.do(&request{Op: "enqueue", N: 1}); err != nil {
			return err
		}
		n := b.tasks(n, 2000)
		if err := worker.begin(&request{Op: "work", N: n + 1, Concurrency: baseConcurrency}); err != nil {
			return err
		}
		time.Sleep(settle)
		start := time.Now()
		if _, err := producer.do(&request{Op: "enqueue", N: n, Producers: paceCallers}); err != nil {
			return err
		}
		if _, err := worker.receive(); err != nil {
			return err
		}
		b.record(latencyTable, "capacity, end to end", perSecond, false, float64(n)/time.Since(start).Seconds())
		return nil
	}
}

// settle is the time for a worker to connect and to begin to wait.
const settle = 300 * time.Millisecond

// takeLoad measures latencies at a part of the capacity that was measured before, in an open loop: tasks come at fixed
// times. The ceiling gets the load of delayed, so that both are compared under the same load.
func takeLoad(part float64) func(*bed) error {
	const seconds = 1.5
	return func(b *bed) error {
		of := b.peer.name
		if of == "ceiling" {
			of = "delayed"
		}
		capacity := b.middle(latencyTable, "capacity, end to end", perSecond, of)
		if math.IsNaN(capacity) {
			return fmt.Errorf("the capacity of %s was not measured before; let -only name it too", of)
		}
		rate := capacity * part
		n := max(500, int(rate*seconds*min(1, b.scale)))
		return b.latencies(fmt.Sprintf("%.0f %% of capacity", part*100), n, rate, false)
	}
}

// latencies lets a producer enqueue n tasks at fixed times, and records their ages at the entry of the handler. A lone
// producer counts them from its call, many from the time when a task was due.
func (b *bed) latencies(row string, n int, rate float64, lone bool) error {
	producer, err := b.driver()
	if err != nil {
		return err
	}
	worker, err := b.driver()
	if err != nil {
		return err
	}
	if err := worker.begin(&request{
		Op: "work", N: n, Concurrency: b.peer.executors(baseConcurrency),
		Latency: true,
	}); err != nil {
		return err
	}
	time.Sleep(settle)
	r := &request{Op: "enqueue", N: n, Rate: rate}
	if lone {
		r.Producers = 1
	}
	if _, err := producer.do(r); err != nil {
		return err
	}
	return b.ages(worker, row, n)
}

// takeLateness measures from the time at which a scheduled task is due to the entry of the handler: n tasks fall due
// evenly within so many seconds.
func takeLateness(row string, n int, seconds float64) func(*bed) error {
	return func(b *bed) error {
		n := b.tasks(n, 20)
		producer, err := b.driver()
		if err != nil {
			return err
		}
		worker, err := b.driver()
		if err != nil {
			return err
		}
		if err := worker.begin(&request{
			Op: "work", N: n, Concurrency: b.peer.executors(baseConcurrency),
			Latency: true,
		}); err != nil {
			return err
		}
		time.Sleep(settle)
		lead := 1 + float64(n)/10_000 // until all tasks are scheduled
		r := &request{Op: "enqueue", N: n, Rate: float64(n) / seconds, Lead: lead, Producers: 64}
		a, err := producer.do(r)
		if err != nil {
			return err
		}
		if a.Seconds > lead {
			return fmt.Errorf("scheduling took %.1f s, longer than the %.1f s until the first task was due", a.Seconds,
				lead)
		}
		return b.ages(worker, row, n)
	}
}

// ages records the ages of n tasks that a worker was told to report.
func (b *bed) ages(worker *program, row string, n int) error {
	a, err := worker.receive()
	if err != nil {
		return err
	}
	if len(a.Latencies) != n {
		return fmt.Errorf("expected %d latencies, found %d", n, len(a.Latencies))
	}
	slices.Sort(a.Latencies)
	for _, q := range []float64{0.5, 0.99, 0.999} {
		if float64(n)*(1-q) < 0.9 && q > 0.5 { // it would be the largest value
			continue
		}
		b.record(latencyTable, row, fmt.Sprintf("p%g [ms]", math.Round(q*1e4)/100), true, quantile(a.Latencies, q)/1000)
	}
	return nil
}
