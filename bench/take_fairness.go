package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// takeFairness gives two workers a mix of short and long tasks (1 ms and 1 s): a steady stream of short ones, and
// bursts in which long ones are between short ones. The long ones alone never fill all executors. It records how long
// short tasks wait while an executor of either worker is free: that is how long a worker keeps tasks that the other
// could run.
func takeFairness(bursts int) func(*bed) error {
	const (
		workers, executors = 2, 10
		burst              = 195
		every              = 13 // 15 long ones in a burst
		period             = 1500 * time.Millisecond
		steady             = 300.0 // short tasks a second
	)
	return func(b *bed) error {
		bursts := max(1, int(float64(bursts)*min(1, b.scale)))
		var drivers []*program
		for range workers {
			d, err := b.driver()
			if err != nil {
				return err
			}
			if err := d.begin(&request{Op: "work", Concurrency: executors, Handler: "mixed", Trace: true}); err != nil {
				return err
			}
			if _, err := d.receive(); err != nil {
				return err
			}
			drivers = append(drivers, d)
		}
		stream, err := b.driver()
		if err != nil {
			return err
		}
		bursty, err := b.driver()
		if err != nil {
			return err
		}
		time.Sleep(settle)
		short := int(steady * period.Seconds() * float64(bursts))
		if err := stream.send(&request{Op: "enqueue", N: short, Rate: steady, Producers: 1}); err != nil {
			return err
		}
		for range bursts {
			next := time.Now().Add(period)
			if _, err := bursty.do(&request{
				Op: "enqueue", N: burst, Batch: burst, Every: every,
				Now: true,
			}); err != nil {
				return err
			}
			time.Sleep(time.Until(next))
		}
		if _, err := stream.receive(); err != nil {
			return err
		}
		spans, err := collect(drivers, short+bursts*burst)
		if err != nil {
			return err
		}
		waits := waitsWhileFree(spans, workers*executors)
		b.record("fairness", fairnessRow, "wait while an executor is free, p99 [ms]", true, quantile(waits, 0.99)/1e6)
		b.record("fairness", fairnessRow, "wait while an executor is free, max [ms]", true, quantile(waits, 1)/1e6)
		return nil
	}
}

const fairnessRow = "short task, 1 ms and 1 s mixed, 2 workers of 10"

// collect waits until the drivers have ended n tasks.
func collect(drivers []*program, n int) ([]span, error) {
	deadline := time.Now().Add(time.Minute)
	for {
		var spans []span
		for _, d := range drivers {
			a, err := d.do(&request{Op: "report"})
			if err != nil {
				return nil, err
			}
			spans = append(spans, a.Spans...)
		}
		if len(spans) >= n {
			return spans, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("only %d of %d tasks were run within a minute of the last", len(spans), n)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// waitsWhileFree returns, sorted and in ns, how long each short task waited between its call and its start while fewer
// tasks than executors were running. A span's number is the time of its call.
func waitsWhileFree(spans []span, executors int) []float64 {
	type edge struct {
		at   int64
		step int
	}
	edges := make([]edge, 0, 2*len(spans))
	for _, s := range spans {
		edges = append(edges, edge{s.Begin, 1}, edge{s.End, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.step, b.step)) })
	// free[i] is how long an executor was free up to edges[i]; before the first one, all are.
	free := make([]int64, len(edges))
	running := make([]int, len(edges)) // after the edge
	for i, e := range edges {
		running[i] = e.step
		if i > 0 {
			running[i] += running[i-1]
			free[i] = free[i-1]
			if running[i-1] < executors {
				free[i] += e.at - edges[i-1].at
			}
		}
	}
	freeUntil := func(at int64) int64 {
		i, _ := slices.BinarySearchFunc(edges, at, func(e edge, at int64) int { return cmp.Compare(e.at, at) })
		if i == 0 {
			return at - edges[0].at // negative: before the first edge
		}
		f := free[i-1]
		if running[i-1] < executors {
			f += at - edges[i-1].at
		}
		return f
	}
	var waits []float64
	for _, s := range spans {
		if !s.Long {
			waits = append(waits, max(0, float64(freeUntil(s.Begin)-freeUntil(s.Number))))
		}
	}
	slices.Sort(waits)
	return waits
}
