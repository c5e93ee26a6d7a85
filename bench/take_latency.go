package main

import (
	"fmt"
	"time"
)

const latencyTable = "latency"

// takeWakeUp measures from the call that enqueues to the entry of the handler, on a worker that is waiting; each task
// is alone.
func takeWakeUp(table string) func(*bed) {
	return func(b *bed) {
		n, rate := b.tasks(400, 20), 200.0
		if b.peer.polls {
			n, rate = max(10, int(100*b.scale)), 37 // three seconds, for whoever looks once a second
		}
		worker := b.worker(&request{N: n, Latency: true})
		b.driver().do(&request{Op: "enqueue", N: n, Rate: rate})
		b.ages(table, "idle", worker)
	}
}

// takeCapacity measures how many tasks a second pass through when producers, server and worker all run at once.
func takeCapacity(n int) func(*bed) {
	return func(b *bed) {
		producer := b.driver()
		producer.do(&request{Op: "enqueue", N: 1})
		n := b.tasks(n, 2000)
		worker := b.worker(&request{N: n + 1})
		start := time.Now()
		producer.do(&request{Op: "enqueue", N: n, Producers: manyProducers})
		worker.receive()
		b.record(latencyTable, "capacity, end to end", perSecond, false, float64(n)/time.Since(start).Seconds())
	}
}

// takeLateness measures from the time at which a scheduled task is due to the entry of the handler: n tasks fall due
// evenly within so many seconds.
func takeLateness(row string, n int, seconds float64) func(*bed) {
	return func(b *bed) {
		n := b.tasks(n, 20)
		worker := b.worker(&request{N: n, Latency: true})
		b.scheduleAhead(n, float64(n)/seconds, 1+float64(n)/10_000)
		b.ages(latencyTable, row, worker)
	}
}

// scheduleAhead schedules n tasks at a rate, the first of which is due in so many seconds. All must be scheduled then.
func (b *bed) scheduleAhead(n int, rate, lead float64) {
	a := b.driver().do(&request{Op: "enqueue", N: n, Rate: rate, Lead: lead, Producers: manyProducers})
	if a.Seconds > lead {
		check(fmt.Errorf("scheduling took %.1f s, but the first task was due after %.1f s", a.Seconds, lead))
	}
}

// ages records the ages that a worker reports.
func (b *bed) ages(table, row string, worker *program) {
	ages := worker.receive().Latencies
	b.record(table, row, "p50 [ms]", true, quantile(ages, 0.5)/1000)
	b.record(table, row, "p99 [ms]", true, quantile(ages, 0.99)/1000)
}
