package main

import (
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// worstQueues lets one worker serve 1,000 queues: its start, its cost while idle, its wake-up, and a drain.
func worstQueues(b *bed) error {
	queues := b.tasks(1000, 10)
	of := count(queues) + " queues, "
	belt, err := b.makeBelt()
	if err != nil {
		return err
	}
	defer belt.conn.Close()
	worker, err := b.driver()
	if err != nil {
		return err
	}
	woken := b.tasks(400, 20)
	if err := b.watched(of+"start", 0, func() error {
		if err := worker.begin(&request{
			Op: "work", N: woken, Concurrency: baseConcurrency, Queues: queues, Latency: true,
		}); err != nil {
			return err
		}
		return until("the worker was registered with each queue", func() (bool, error) {
			return b.allRegistered(belt.conn, queues)
		})
	}); err != nil {
		return err
	}
	if err := b.watchIdle(of+"idle", 5*time.Second); err != nil {
		return err
	}
	producer, err := b.driver()
	if err != nil {
		return err
	}
	row := of + "wake-up"
	var a *response
	if err := b.watched(row, woken, func() error {
		r := &request{Op: "enqueue", N: woken, Rate: 100, Producers: 1, Queues: queues}
		if _, err := producer.do(r); err != nil {
			return err
		}
		a, err = worker.receive()
		return err
	}); err != nil {
		return err
	}
	b.recordAges(row, a.Latencies)
	worker.close()
	if _, err := belt.conn.Do("FLUSHALL"); err != nil {
		return err
	}
	return b.drainQueues(belt, of+"drain", queues, b.tasks(100_000, 2000)/queues)
}

// drainQueues lets a new worker run so many tasks of each queue.
func (b *bed) drainQueues(belt *belt, row string, queues, each int) error {
	worker, err := b.driver()
	if err != nil {
		return err
	}
	total := queues * each
	if err := worker.begin(&request{
		Op: "work", N: total, Concurrency: baseConcurrency, Queues: queues,
	}); err != nil {
		return err
	}
	if err := until("the worker was registered with each queue", func() (bool, error) {
		return b.allRegistered(belt.conn, queues)
	}); err != nil {
		return err
	}
	return b.watched(row, total, func() error {
		for q := range queues {
			if err := belt.push(q, each); err != nil {
				return err
			}
		}
		_, err := worker.receive()
		return err
	})
}

// watchIdle watches the server for d, or less at a smaller scale.
func (b *bed) watchIdle(row string, d time.Duration) error {
	return b.watched(row, 0, func() error {
		time.Sleep(max(time.Duration(float64(d)*min(b.scale, 1)), d/10))
		return nil
	})
}

// allRegistered reports whether each queue has a worker.
func (b *bed) allRegistered(conn redis.Conn, queues int) (bool, error) {
	keys := make([]any, queues)
	for i := range keys {
		keys[i] = pendingKey(i) + "_workers"
	}
	n, err := redis.Int(conn.Do("EXISTS", keys...))
	return n == queues, err
}

// worstWorkers lets 10,000 pretended workers register at once, beat, and end at once without a word, beside a real
// worker, which sweeps.
func worstWorkers(b *bed) error {
	n := b.tasks(10_000, 100)
	of := count(n) + " workers, "
	conn, err := redis.Dial("tcp", b.server.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Do("CONFIG", "SET", "maxclients", n+100); err != nil {
		return fmt.Errorf("%w; raise the limit of open files with ulimit -n", err)
	}
	workers := func(want int) func() (bool, error) {
		return func() (bool, error) {
			found, err := redis.Int(conn.Do("SCARD", pendingKey(0)+"_workers"))
			return found == want, err
		}
	}
	worker, err := b.driver()
	if err != nil {
		return err
	}
	if err := worker.begin(&request{Op: "work", N: 1, Concurrency: baseConcurrency}); err != nil {
		return err
	}
	if err := until("the worker was registered", workers(1)); err != nil {
		return err
	}
	others, err := b.driver()
	if err != nil {
		return err
	}
	if err := b.watched(of+"start", 0, func() error {
		life := 15.0 // the default
		if b.scale < 1 {
			life = 2
		}
		_, err := others.do(&request{Op: "pretend", N: n, Life: life})
		return err
	}); err != nil {
		return err
	}
	if err := b.watchIdle(of+"idle", 15*time.Second); err != nil {
		return err
	}
	return b.watched(of+"all die at once", 0, func() error {
		others.close()
		return until("the dead workers were forgotten", workers(1))
	})
}
