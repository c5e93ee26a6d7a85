package main

import (
	"errors"
	"slices"
)

// Names of measures that several tables share.
const (
	perSecond = "tasks/s"
	micros    = "µs"
)

// takeEnqueue lets producers enqueue n tasks one by one, each waiting until its own is accepted.
func takeEnqueue(table, row string, producers, n int) func(*bed) error {
	return func(b *bed) error {
		d, err := b.driver()
		if err != nil {
			return err
		}
		if err := warm(d, producers); err != nil {
			return err
		}
		n := b.tasks(n, 500)
		// A driver of another language ignores Latency.
		a, err := d.do(&request{Op: "enqueue", N: n, Producers: producers, Latency: producers == 1})
		if err != nil {
			return err
		}
		b.record(table, row, perSecond, false, float64(n)/a.Seconds)
		if len(a.Latencies) > 0 {
			slices.Sort(a.Latencies)
			b.record(table, row, "a call, p50 ["+micros+"]", true, quantile(a.Latencies, 0.5))
			b.record(table, row, "a call, p99 ["+micros+"]", true, quantile(a.Latencies, 0.99))
		}
		return nil
	}
}

// warm opens the connections of all producers and makes the server load scripts.
func warm(d *program, producers int) error {
	_, err := d.do(&request{Op: "enqueue", N: max(10, 2*producers), Producers: producers})
	return err
}

// takeBatch enqueues n tasks by the peer's own call for many, size at a time.
func takeBatch(table, row string, n int) func(*bed) error {
	const size = 1000
	return func(b *bed) error {
		d, err := b.driver()
		if err != nil {
			return err
		}
		if _, err := d.do(&request{Op: "enqueue", N: size, Batch: size}); err != nil {
			return err
		}
		n := b.tasks(n, 2*size)
		a, err := d.do(&request{Op: "enqueue", N: n, Batch: size})
		if err != nil {
			return err
		}
		b.record(table, row, perSecond, false, float64(n)/a.Seconds)
		return nil
	}
}

// takePending measures how much memory of the server pending tasks take, and how many commands enqueueing one takes.
func takePending(b *bed) error {
	if !b.redis() {
		return nil
	}
	d, err := b.driver()
	if err != nil {
		return err
	}
	producers := 16
	if err = warm(d, producers); errors.Is(err, errNone) {
		producers = 1
		err = warm(d, producers)
	}
	if err != nil {
		return err
	}
	n := b.tasks(100_000, 1000)
	before, err := b.state()
	if err != nil {
		return err
	}
	if _, err = d.do(&request{Op: "enqueue", N: n, Producers: producers}); err != nil {
		return err
	}
	after, err := b.state()
	if err != nil {
		return err
	}
	delta := after.since(before)
	row := "enqueueing"
	b.record("cost", "a pending task", "bytes", true, delta.memory/float64(n))
	b.record("cost", row, "Redis commands per task", true, delta.commands()/float64(n))
	b.record("cost", row, "server CPU [s per 100,000]", true, delta.cpu/float64(n)*1e5)
	return nil
}

func producersRow(n int) string {
	if n == 1 {
		return "1 producer"
	}
	return count(n) + " producers"
}
