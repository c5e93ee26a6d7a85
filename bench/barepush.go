package main

import (
	"sync"

	"github.com/gomodule/redigo/redis"
)

// pushPair enqueues a task and its notification in one round trip.
func pushPair(conn redis.Conn, task []byte) error {
	if err := conn.Send("RPUSH", ceilingList, task); err != nil {
		return err
	}
	_, err := conn.Do("RPUSH", ceilingNotify, 1)
	return err
}

// pushMany enqueues tasks and a number of notifications, with two commands in one round trip.
func pushMany(conn redis.Conn, tasks [][]byte, notifications int) error {
	args, ones := make([]any, 0, len(tasks)+1), make([]any, 0, notifications+1)
	args, ones = append(args, ceilingList), append(ones, ceilingNotify)
	for _, task := range tasks {
		args = append(args, task)
	}
	for range notifications {
		ones = append(ones, 1)
	}
	if err := conn.Send("RPUSH", args...); err != nil {
		return err
	}
	_, err := conn.Do("RPUSH", ones...)
	return err
}

// coalescer sends the tasks of concurrent callers together on one connection: those that have arrived while the last
// request was under way. Each call returns once Redis has its own task.
type coalescer struct {
	requests chan *bareRequest
	done     chan struct{}
}

// bareRequest is a call that enqueues. key and score are what bareForms need: a lock or a group, and when it is due.
type bareRequest struct {
	task  []byte
	key   string
	score int64
	err   chan error
}

var bareRequests = sync.Pool{New: func() any { return &bareRequest{err: make(chan error, 1)} }}

// newCoalescer sends piles of requests on conn.
func newCoalescer(conn redis.Conn, send func(redis.Conn, []*bareRequest) error) *coalescer {
	c := &coalescer{make(chan *bareRequest, 4096), make(chan struct{})}
	go func() {
		defer close(c.done)
		defer conn.Close()
		for first := range c.requests {
			batch := c.pile(first)
			err := send(conn, batch)
			for _, r := range batch {
				r.err <- err
			}
		}
	}()
	return c
}

// pile adds the other waiting requests to the first one, up to 1,000.
func (c *coalescer) pile(first *bareRequest) []*bareRequest {
	batch := []*bareRequest{first}
	for len(batch) < 1000 {
		select {
		case r, ok := <-c.requests:
			if !ok {
				return batch
			}
			batch = append(batch, r)
		default:
			return batch
		}
	}
	return batch
}

// pushPairs sends a pair of commands for each task.
func pushPairs(conn redis.Conn, pile []*bareRequest) error {
	for _, r := range pile {
		if err := conn.Send("RPUSH", ceilingList, r.task); err != nil {
			return err
		}
		if err := conn.Send("RPUSH", ceilingNotify, 1); err != nil {
			return err
		}
	}
	_, err := conn.Do("")
	return err
}

// pushVariadic sends two commands for all tasks.
func pushVariadic(conn redis.Conn, pile []*bareRequest) error {
	tasks := make([][]byte, len(pile))
	for i, r := range pile {
		tasks[i] = r.task
	}
	return pushMany(conn, tasks, len(tasks))
}

func (c *coalescer) enqueue(task []byte, key string, score int64) error {
	r, _ := bareRequests.Get().(*bareRequest)
	r.task, r.key, r.score = task, key, score
	c.requests <- r
	err := <-r.err
	bareRequests.Put(r)
	return err
}

func (c *coalescer) close() { close(c.requests); <-c.done }
