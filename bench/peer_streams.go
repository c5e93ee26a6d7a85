package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/gomodule/redigo/redis"
)

func init() {
	register(&peer{
		name: "streams",
		about: "a bare consumer group on a Redis stream: XREADGROUP of 1,000, then XACK and XDEL of all in one round " +
			"trip; as the ceiling it has no retries and no statistics, and nothing looks for what a dead " +
			"consumer holds",
		version: serverVersion,
		open:    openStreams,
	})
}

const (
	streamKey     = "stream"
	streamGroup   = "workers"
	streamClaim   = 1000 // entries of one XREADGROUP
	streamReaders = 4    // consumers of one worker
)

type streamsQueue struct {
	pool redis.Pool
}

func openStreams(addr string) (queue, error) {
	q := &streamsQueue{redis.Pool{MaxIdle: 256, Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr) }}}
	conn := q.pool.Get()
	defer conn.Close()
	_, err := conn.Do("XGROUP", "CREATE", streamKey, streamGroup, "0", "MKSTREAM")
	if err != nil && !strings.HasPrefix(err.Error(), "BUSYGROUP") { // the other process was faster
		return nil, err
	}
	return q, nil
}

func (q *streamsQueue) enqueue(number int64, text string) error {
	conn := q.pool.Get()
	defer conn.Close()
	_, err := conn.Do("XADD", streamKey, "*", "t", encodeBare(number, text))
	return err
}

func (q *streamsQueue) enqueueMany(number int64, texts []string) error {
	conn := q.pool.Get()
	defer conn.Close()
	for _, text := range texts {
		if err := conn.Send("XADD", streamKey, "*", "t", encodeBare(number, text)); err != nil {
			return err
		}
	}
	replies, err := redis.Values(conn.Do(""))
	for _, reply := range replies {
		if failed, ok := reply.(redis.Error); ok {
			err = errors.Join(err, failed)
		}
	}
	return err
}

func (q *streamsQueue) work(concurrency int, handle func(int64, string)) (func(), error) {
	handler := newBareHandler(handle)
	var conns []redis.Conn
	for i := range streamReaders {
		conn, err := q.pool.Dial()
		if err != nil {
			return nil, err
		}
		conns = append(conns, conn)
		r := &streamReader{conn, "w" + strconv.Itoa(i), max(1, concurrency/streamReaders), handler}
		go func() { _ = r.run() }() // ends with its connection
	}
	return func() {
		for _, conn := range conns {
			conn.Close()
		}
	}, nil
}

func (q *streamsQueue) close() { q.pool.Close() }

// streamReader is one consumer of the group.
type streamReader struct {
	conn    redis.Conn
	name    string
	callers int
	handler *bareHandler
}

// run reads entries, runs them, and ends them together with the next read.
func (r *streamReader) run() error {
	var done []any // ids
	for {
		ends := 0
		if len(done) > 0 {
			ends = 2
			ack := append([]any{streamKey, streamGroup}, done...)
			if err := r.conn.Send("XACK", ack...); err != nil {
				return err
			}
			if err := r.conn.Send("XDEL", append([]any{streamKey}, done...)...); err != nil {
				return err
			}
		}
		if err := r.conn.Send("XREADGROUP", "GROUP", streamGroup, r.name, "COUNT", streamClaim, "BLOCK", 0,
			"STREAMS", streamKey, ">"); err != nil {
			return err
		}
		if err := r.conn.Flush(); err != nil {
			return err
		}
		for range ends {
			if _, err := r.conn.Receive(); err != nil {
				return err
			}
		}
		ids, tasks, err := streamEntries(r.conn.Receive())
		if err != nil {
			return err
		}
		if err := r.call(tasks); err != nil {
			return err
		}
		done = ids
	}
}

// call runs tasks, some at a time.
func (r *streamReader) call(tasks [][]byte) error {
	var group sync.WaitGroup
	errs := make([]error, min(r.callers, len(tasks)))
	for g := range errs {
		group.Go(func() {
			for i := g; i < len(tasks) && errs[g] == nil; i += len(errs) {
				errs[g] = r.handler.run(tasks[i])
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// streamEntries reads the reply of XREADGROUP for one stream: [[stream, [[id, [field, value]], …]]].
func streamEntries(reply any, err error) (ids []any, tasks [][]byte, _ error) {
	streams, err := redis.Values(reply, err)
	if err != nil {
		return nil, nil, err
	}
	for _, stream := range streams {
		pair, err := redis.Values(stream, nil)
		if err != nil || len(pair) != 2 {
			return nil, nil, fmt.Errorf("expected a stream and its entries, found %v, %w", stream, err)
		}
		entries, err := redis.Values(pair[1], nil)
		if err != nil {
			return nil, nil, err
		}
		for _, entry := range entries {
			var id string
			var fields [][]byte
			values, err := redis.Values(entry, nil)
			if err == nil {
				_, err = redis.Scan(values, &id, &fields)
			}
			if err != nil || len(fields) != 2 {
				return nil, nil, fmt.Errorf("expected an id, a field and a value, found %v, %w", entry, err)
			}
			ids, tasks = append(ids, id), append(tasks, fields[1])
		}
	}
	return ids, tasks, nil
}
