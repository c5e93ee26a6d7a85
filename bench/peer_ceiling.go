package main

import (
	"strconv"
	"sync"

	"github.com/gomodule/redigo/redis"
)

func init() {
	register(&peer{
		name:    "ceiling",
		about:   "a bare prototype on Redis lists: no heartbeat, no ownership, no retries, no statistics",
		version: serverVersion,
		open:    openCeiling,
	})
}

// The ceiling is what a Redis list allows when a program does nothing but claim and acknowledge: no crash loses a task,
// but nothing would notice a crash. It enqueues by variadic RPUSH, which coalesces concurrent calls, and drains by
// ceilingFetchers connections that acknowledge and claim ceilingClaim tasks in one script, each with ceilingCallers
// goroutines that decode and call by reflection.
const (
	ceilingClaim    = 200
	ceilingFetchers = 4
	ceilingCallers  = 10
)

// The keys of the ceiling: pending tasks, notifications, claimed tasks.
const (
	ceilingList   = "q"
	ceilingNotify = "noti"
	ceilingHeld   = "p"
)

// ackClaim acknowledges what a fetcher has finished since its last call and claims up to ARGV[1] more tasks, in one
// round trip. When the list is empty, it deletes the notifications.
const ackClaim = `if #ARGV > 2 then redis.call('HDEL', KEYS[2], unpack(ARGV, 3)) end
local ts = redis.call('LPOP', KEYS[1], ARGV[1])
if not ts then redis.call('DEL', KEYS[3]) return nil end
local a, p = {}, ARGV[2]
for i = 1, #ts do a[2*i-1] = p .. i; a[2*i] = ts[i] end
redis.call('HSET', KEYS[2], unpack(a))
return ts`

type ceilingQueue struct {
	addr string

	mu    sync.Mutex
	conn  redis.Conn // of calls for many, and of a lone producer
	alone bool
	co    *coalescer // of plain tasks
	forms map[string]*coalescer
}

func openCeiling(addr string) (queue, error) {
	conn, err := redis.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	return &ceilingQueue{addr: addr, conn: conn, forms: map[string]*coalescer{}}, nil
}

// tune makes a lone producer send its own pair of commands.
func (c *ceilingQueue) tune(producers int) error {
	c.alone = producers == 1
	if c.alone || c.co != nil {
		return nil
	}
	var err error
	c.co, err = c.coalescer(pushVariadic)
	return err
}

// coalescer returns one with a connection of its own.
func (c *ceilingQueue) coalescer(send func(redis.Conn, []*bareRequest) error) (*coalescer, error) {
	conn, err := redis.Dial("tcp", c.addr)
	if err != nil {
		return nil, err
	}
	return newCoalescer(conn, send), nil
}

func (c *ceilingQueue) enqueue(number int64, text string) error {
	b := encodeBare(number, text)
	if c.alone {
		return pushPair(c.conn, b)
	}
	return c.co.enqueue(b, "", 0)
}

func (c *ceilingQueue) enqueueMany(number int64, texts []string) error {
	tasks := make([][]byte, len(texts))
	for i, text := range texts {
		tasks[i] = encodeBare(number, text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return pushMany(c.conn, tasks, len(tasks))
}

// work starts the fetchers, whose number does not depend on the concurrency.
func (c *ceilingQueue) work(_ int, handle func(int64, string)) (func(), error) {
	script := redis.NewScript(3, ackClaim)
	var conns []redis.Conn
	call := newBareHandler(handle)
	for f := range ceilingFetchers {
		conn, err := redis.Dial("tcp", c.addr)
		if err != nil {
			return nil, err
		}
		if f == 0 {
			if err := script.Load(conn); err != nil {
				return nil, err
			}
		}
		conns = append(conns, conn)
		fetcher := &bareFetcher{
			conn: conn, script: script, name: "w" + strconv.Itoa(f) + "-", claim: ceilingClaim, callers: ceilingCallers,
			handler: call, waits: true,
		}
		go func() { _ = fetcher.run() }() // ends with its connection
	}
	return func() {
		for _, conn := range conns {
			conn.Close()
		}
	}, nil
}

func (c *ceilingQueue) close() { c.conn.Close() }
