package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// tableC enqueues a task and its notification, one by one, coalesced, and many in a call.
func (c *ceilingRun) tableC() error {
	c.head("(c) enqueue: RPUSH of the task and RPUSH of its notification", "tasks/s", "server CPU [s per 100,000]")
	n := c.slow(c.n, 10)
	for _, producers := range []int{1, 16} {
		name := fmt.Sprintf("%d goroutines, a connection each, a pair in one round trip", producers)
		if err := c.row(name, 2, func() (bareRun, error) { return c.pairs(producers, n/4) }); err != nil {
			return err
		}
	}
	for _, producers := range []int{1, 16, 64, 256, 1024} {
		for _, variadic := range []bool{false, true} {
			kind, m := "pair", n
			if variadic {
				kind = "variadic"
			}
			if producers == 1 {
				m /= 4
			}
			name := fmt.Sprintf("coalesced, %d goroutines, %s", producers, kind)
			if err := c.row(name, 2,
				func() (bareRun, error) { return c.coalesced(producers, m, variadic) }); err != nil {
				return err
			}
		}
	}
	for _, size := range []int{100, 1000} {
		for _, notifications := range []int{size, 1} {
			kind := "variadic notify"
			if notifications == 1 {
				kind = "one notify"
			}
			name := fmt.Sprintf("1 goroutine, variadic RPUSH of %d and %s", size, kind)
			if err := c.row(name, 2,
				func() (bareRun, error) { return c.batches(size, notifications, 2*n) }); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *ceilingRun) pairs(producers, n int) (bareRun, error) {
	conns := make([]redis.Conn, producers)
	for i := range conns {
		var err error
		if conns[i], err = redis.Dial("tcp", c.server.addr); err != nil {
			return bareRun{}, err
		}
		defer conns[i].Close()
	}
	return c.timed(nil, func() (int, error) {
		errs := make([]error, producers)
		var group sync.WaitGroup
		for g := range producers {
			group.Go(func() {
				for i := 0; i < n/producers && errs[g] == nil; i++ {
					errs[g] = pushPair(conns[g], encodeBare(baseNumber, baseText))
				}
			})
		}
		group.Wait()
		return n / producers * producers, errors.Join(errs...)
	})
}

func (c *ceilingRun) coalesced(producers, n int, variadic bool) (bareRun, error) {
	conn, err := redis.Dial("tcp", c.server.addr)
	if err != nil {
		return bareRun{}, err
	}
	send := pushPairs
	if variadic {
		send = pushVariadic
	}
	co := newCoalescer(conn, send)
	defer co.close()
	return c.timed(nil, func() (int, error) {
		return n, fanOut(producers, n, func(int) error { return co.enqueue(encodeBare(baseNumber, baseText), "", 0) })
	})
}

func (c *ceilingRun) batches(size, notifications, n int) (bareRun, error) {
	return c.timed(nil, func() (int, error) {
		tasks := make([][]byte, size)
		for range n / size {
			for i := range tasks {
				tasks[i] = encodeBare(baseNumber, baseText)
			}
			if err := pushMany(c.ctl, tasks, notifications); err != nil {
				return 0, err
			}
		}
		return n / size * size, nil
	})
}

// tableD measures from the call that enqueues to the woken worker that holds the task, once with the cores as they are
// and once with the cores kept awake.
func (c *ceilingRun) tableD() error {
	c.head("(d) wake-up: from the enqueueing call to the woken worker holding the task", "p50 [µs]", "p99 [µs]",
		"cores kept awake: p50 [µs]", "p99 [µs]")
	for _, kind := range []string{"BLPOP of the notification, then the claim script", "BLMOVE straight from the list"} {
		asIs, err := c.wakeUps(kind[2] == 'P')
		if err != nil {
			return err
		}
		a, err := keepAwake()
		if err != nil {
			return err
		}
		awake, err := c.wakeUps(kind[2] == 'P')
		a.stop()
		if err != nil {
			return err
		}
		fmt.Fprintf(c.out, "| %s | %.0f | %.0f | %.0f | %.0f |\n", kind, quantile(asIs, 0.5), quantile(asIs, 0.99),
			quantile(awake, 0.5), quantile(awake, 0.99))
	}
	return nil
}

// wakeUps returns the duration of each wake-up in µs, sorted.
func (c *ceilingRun) wakeUps(notified bool) ([]float64, error) {
	const n = 300
	var all []float64
	for range c.rounds {
		if _, err := c.ctl.Do("FLUSHALL"); err != nil {
			return nil, err
		}
		worker, err := redis.Dial("tcp", c.server.addr)
		if err != nil {
			return nil, err
		}
		held, failed := make(chan time.Time, 1), make(chan error, 1)
		go func() { failed <- wait(worker, n, notified, held) }()
		for range min(n, c.n) {
			time.Sleep(5 * time.Millisecond) // the worker starts to wait
			start := time.Now()
			if notified {
				err = pushPair(c.ctl, encodeBare(baseNumber, baseText))
			} else {
				_, err = c.ctl.Do("RPUSH", ceilingList, encodeBare(baseNumber, baseText))
			}
			if err != nil {
				worker.Close()
				return nil, err
			}
			select {
			case at := <-held:
				all = append(all, at.Sub(start).Seconds()*1e6)
			case err := <-failed:
				return nil, errors.Join(errors.New("the waiting worker ended"), err)
			}
		}
		worker.Close()
	}
	slices.Sort(all)
	return all, nil
}

// wait is a worker that holds n tasks, one after the other.
func wait(conn redis.Conn, n int, notified bool, held chan<- time.Time) error {
	script := redis.NewScript(2, claimOnce)
	for i := range n {
		var err error
		if notified {
			if _, err = conn.Do("BLPOP", ceilingNotify, 30); err == nil {
				_, err = script.Do(conn, ceilingList, ceilingHeld, 1, fmt.Sprintf("w-%d-", i))
			}
		} else {
			_, err = conn.Do("BLMOVE", ceilingList, "mine", "LEFT", "RIGHT", 30)
		}
		if err != nil {
			return err
		}
		held <- time.Now()
	}
	return nil
}
