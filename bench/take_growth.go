package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Only delayed takes the measurements of growth. Bench itself enqueues messages, with RPUSH, so that the cost of
// scripts is that of claims and acknowledgements alone.
const growthTable = "growth"

// Measures of growth.
const (
	scriptTime = "scripts, time within the server [µs per task]"
	serverCost = "server CPU [s per 100,000]"
)

// belt holds real messages of delayed, and enqueues them again and again.
type belt struct {
	conn     redis.Conn
	messages [][]byte
	next     int
}

// makeBelt takes messages from a queue that a producer has filled. Between two tasks with the same id there are so many
// others that no two of them run at once.
func (b *bed) makeBelt() (*belt, error) {
	const n = 20_000
	producer, err := b.driver()
	if err != nil {
		return nil, err
	}
	if err := b.fill(producer, n, 0, 0); err != nil {
		return nil, err
	}
	conn, err := redis.Dial("tcp", b.server.addr)
	if err != nil {
		return nil, err
	}
	messages, err := redis.ByteSlices(conn.Do("LRANGE", pendingKey(0), 0, -1))
	if err == nil && len(messages) != n {
		err = fmt.Errorf("expected %d messages in %s, found %d; lua/README.md says where they are now", n,
			pendingKey(0), len(messages))
	}
	if err == nil {
		_, err = conn.Do("FLUSHALL")
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &belt{conn: conn, messages: messages}, nil
}

// pendingKey returns the key of the pending list of queue i of the peer, as lua/README.md names it.
func pendingKey(i int) string { return fmt.Sprintf("bench%d", i) }

// push enqueues n messages in a queue, each with its notification.
func (b *belt) push(queue, n int) error {
	for n > 0 {
		k := min(n, 1000)
		tasks, ones := make([]any, 0, k+1), make([]any, 0, k+1)
		tasks, ones = append(tasks, pendingKey(queue)), append(ones, pendingKey(queue)+"_noti")
		for range k {
			tasks, ones = append(tasks, b.messages[b.next]), append(ones, 1)
			b.next = (b.next + 1) % len(b.messages)
		}
		if err := b.conn.Send("RPUSH", tasks...); err != nil {
			return err
		}
		if _, err := b.conn.Do("RPUSH", ones...); err != nil {
			return err
		}
		n -= k
	}
	return nil
}

// takePendingGrowth drains n tasks with a given number of pending tasks: it enqueues as many as are claimed.
func takePendingGrowth(pending, n int) func(*bed) error {
	return func(b *bed) error {
		n := b.tasks(n, 2000)
		pending := pending
		if b.scale < 1 {
			pending = min(pending, int(1e6*b.scale))
		}
		belt, err := b.makeBelt()
		if err != nil {
			return err
		}
		defer belt.conn.Close()
		if err := belt.push(0, pending); err != nil {
			return err
		}
		worker, err := b.driver()
		if err != nil {
			return err
		}
		before, err := b.state()
		if err != nil {
			return err
		}
		start := time.Now()
		if err := worker.begin(&request{Op: "work", N: n, Concurrency: baseConcurrency}); err != nil {
			return err
		}
		done := make(chan error, 1)
		go func() {
			_, err := worker.receive()
			done <- err
		}()
		err = belt.topUp(pending, done)
		took := time.Since(start)
		if err != nil {
			return err
		}
		after, err := b.state()
		if err != nil {
			return err
		}
		_, spent := after.since(before).scripts()
		row := count(pending) + " pending"
		b.record(growthTable, row, scriptTime, true, spent/float64(n))
		b.record(growthTable, row, perSecond, false, float64(n)/took.Seconds())
		return nil
	}
}

// topUp keeps the number of pending tasks at pending until it receives from done.
func (b *belt) topUp(pending int, done <-chan error) error {
	for {
		select {
		case err := <-done:
			return err
		default:
		}
		length, err := redis.Int(b.conn.Do("LLEN", pendingKey(0)))
		if err != nil {
			return err
		}
		if missing := pending - length; missing >= min(pending, 1000)/4 {
			if err := b.push(0, min(missing, 1000)); err != nil {
				return err
			}
		} else {
			time.Sleep(100 * time.Microsecond)
		}
	}
}

// takeWorkersGrowth lets a number of workers drain n tasks, after measuring their cost while they are idle.
func takeWorkersGrowth(workers, n int) func(*bed) error {
	return func(b *bed) error {
		n := b.tasks(n, 2000)
		belt, err := b.makeBelt()
		if err != nil {
			return err
		}
		defer belt.conn.Close()
		worker, err := b.driver()
		if err != nil {
			return err
		}
		if err := worker.begin(&request{Op: "work", N: n, Concurrency: baseConcurrency, Workers: workers}); err != nil {
			return err
		}
		row := count(workers) + " workers"
		if workers == 1 {
			row = "1 worker"
		}
		time.Sleep(2 * time.Second) // they register and begin to wait
		if err := b.idle(row, workers); err != nil {
			return err
		}
		return b.flow(row, n, worker, func() error { return belt.push(0, n) })
	}
}

// idle records the load that idle workers put on the server.
func (b *bed) idle(row string, workers int) error {
	const look = 3 * time.Second
	before, err := b.state()
	if err != nil {
		return err
	}
	time.Sleep(look)
	after, err := b.state()
	if err != nil {
		return err
	}
	delta := after.since(before)
	b.record(growthTable, row, "idle: commands per second and worker", true,
		delta.commands()/look.Seconds()/float64(workers))
	b.record(growthTable, row, "idle: server CPU [%]", true, delta.cpu/look.Seconds()*100)
	return nil
}

// flow enqueues n tasks for a driver whose worker is running and records the rate.
func (b *bed) flow(row string, n int, worker *program, push func() error) error {
	before, err := b.state()
	if err != nil {
		return err
	}
	start := time.Now()
	if err := push(); err != nil {
		return err
	}
	if _, err := worker.receive(); err != nil {
		return err
	}
	took := time.Since(start)
	after, err := b.state()
	if err != nil {
		return err
	}
	delta := after.since(before)
	_, spent := delta.scripts()
	b.record(growthTable, row, scriptTime, true, spent/float64(n))
	b.record(growthTable, row, serverCost, true, delta.cpu/float64(n)*1e5)
	b.record(growthTable, row, perSecond, false, float64(n)/took.Seconds())
	return nil
}

// takeQueuesGrowth lets one worker serve a number of queues, with n tasks spread over them.
func takeQueuesGrowth(queues, n int) func(*bed) error {
	return func(b *bed) error {
		n := b.tasks(n, 2000)
		if n < queues {
			return errors.New("expected at least one task for each queue; raise -scale")
		}
		belt, err := b.makeBelt()
		if err != nil {
			return err
		}
		defer belt.conn.Close()
		worker, err := b.driver()
		if err != nil {
			return err
		}
		total := n / queues * queues
		if err := worker.begin(&request{
			Op: "work", N: total, Concurrency: baseConcurrency,
			Queues: queues,
		}); err != nil {
			return err
		}
		time.Sleep(2 * time.Second) // it registers with each of them
		row := count(queues) + " queues"
		if queues == 1 {
			row = "1 queue"
		}
		if err := b.idle(row, 1); err != nil {
			return err
		}
		return b.flow(row, total, worker, func() error {
			for q := range queues {
				if err := belt.push(q, total/queues); err != nil {
					return err
				}
			}
			return nil
		})
	}
}
