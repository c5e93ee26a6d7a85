package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
)

// worstScheduled lets 1,000,000 scheduled tasks fall due within one second.
func worstScheduled(b *bed) error {
	n := b.tasks(1_000_000, 2000)
	producer, err := b.driver()
	if err != nil {
		return err
	}
	worker, err := b.driver()
	if err != nil {
		return err
	}
	if err := worker.begin(&request{Op: "work", N: n, Concurrency: baseConcurrency, Latency: true}); err != nil {
		return err
	}
	started := time.Now()
	row := count(n) + " scheduled, due in one second"
	lead := 2 + float64(n)/25_000 // until all tasks are scheduled
	first := time.Now().Add(time.Duration(lead * float64(time.Second)))
	if err := b.watched(count(n)+" scheduled, enqueueing", n, func() error {
		_, err := producer.do(&request{Op: "enqueue", N: n, Rate: float64(n), Lead: lead, Producers: paceCallers})
		return err
	}); err != nil {
		return err
	}
	left := time.Until(first)
	if left <= 0 {
		return fmt.Errorf("scheduling took longer than the %.0f s until the first task was due", lead)
	}
	time.Sleep(left)
	var a *response
	if err := b.watched(row, 0, func() error {
		a, err = worker.receive()
		return err
	}); err != nil {
		return err
	}
	// Until the handler of the last task, without the time in which the driver reports the ages.
	took := a.Seconds - first.Sub(started).Seconds()
	b.record(worstTable, row, perSecond, false, float64(n)/took)
	b.recordAges(row, a.Latencies)
	return nil
}

// recordAges records how old tasks were when their handlers were entered.
func (b *bed) recordAges(row string, us []float64) {
	slices.Sort(us)
	for _, q := range []float64{0.5, 0.99, 1} {
		b.record(worstTable, row, ageMeasure, true, quantile(us, q)/1000)
	}
}

// worstArchive lets each task fail on its only run; from the 10,000th on the archive is full.
func worstArchive(b *bed) error {
	most, n := b.tasks(10_000, 100), b.tasks(210_000, 2100)
	producer, err := b.driver()
	if err != nil {
		return err
	}
	worker, err := b.driver()
	if err != nil {
		return err
	}
	r := &request{Op: "enqueue", N: n, Producers: paceCallers, Form: "failing"}
	if _, err := producer.do(r); err != nil {
		return err
	}
	return b.watched(count(n)+" tasks fail, archive full", n, func() error {
		_, err := worker.do(&request{Op: "work", N: n, Concurrency: baseConcurrency, Archive: most})
		return err
	})
}

// worstLocks lets 100,000 locks lapse at once: first their keys are locked anew by other tasks, then a sweeper drops
// the locks, whose tasks wait in a queue that nobody serves.
func worstLocks(b *bed) error {
	n := b.tasks(100_000, 1000)
	producer, err := b.driver()
	if err != nil {
		return err
	}
	conn, err := redis.Dial("tcp", b.server.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	lock := func() error {
		_, err := producer.do(&request{Op: "enqueue", N: n, Producers: paceCallers, Form: "lapsing"})
		return err
	}
	if err := lock(); err != nil {
		return err
	}
	time.Sleep(lockLife)
	if err := b.watched(count(n)+" lapsed locks, taken anew", n, lock); err != nil {
		return err
	}
	time.Sleep(lockLife)
	rdb, err := delayed.Dial("redis://" + b.addr)
	if err != nil {
		return err
	}
	defer rdb.Close()
	sweeper, err := delayed.NewSweeper(rdb, delayed.SweeperConfig{Queues: []string{pendingKey(0)}})
	if err != nil {
		return err
	}
	return b.watched(count(n)+" lapsed locks, swept", 0, func() error {
		ctx, stop := context.WithCancel(context.Background())
		swept := make(chan error, 1)
		go func() { swept <- sweeper.Run(ctx) }()
		err := until("the locks were dropped", func() (bool, error) {
			held, err := redis.Int(conn.Do("HLEN", pendingKey(0)+"_locks"))
			return held == 0, err
		})
		stop()
		if err != nil {
			return err
		}
		return <-swept
	})
}

// worstGroup gathers 100,000 calls in one group while nobody serves the queue, and then lets a worker combine them.
func worstGroup(b *bed) error {
	n := b.tasks(100_000, 1000)
	producer, err := b.driver()
	if err != nil {
		return err
	}
	of := count(n) + " calls in a group, "
	if err := b.watched(of+"gathering", n, func() error {
		_, err := producer.do(&request{Op: "enqueue", N: n, Producers: paceCallers, Form: "gathered"})
		return err
	}); err != nil {
		return err
	}
	worker, err := b.driver()
	if err != nil {
		return err
	}
	return b.watched(of+"combined and run", n, func() error {
		_, err := worker.do(&request{Op: "work", N: n, Concurrency: baseConcurrency})
		return err
	})
}
