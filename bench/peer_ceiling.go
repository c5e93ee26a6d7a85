package main

import (
	"sync"

	"github.com/gomodule/redigo/redis"
)

// The ceiling is what a Redis list allows when a program does nothing but claim and acknowledge: no crash loses a task,
// but nothing would notice a crash. It enqueues by variadic RPUSH, which coalesces concurrent calls, and drains by
// ceilingFetchers connections that acknowledge and claim ceilingClaim tasks in one script, each with ceilingCallers
// goroutines that decode and call by reflection.
var ceilingPeer = &peer{
	name:    "ceiling",
	about:   "a bare prototype on Redis lists: no heartbeat, no ownership, no retries, no statistics",
	version: serverVersion,
	open:    openCeiling,
}

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
var ackClaim = redis.NewScript(3, `if #ARGV > 2 then redis.call('HDEL', KEYS[2], unpack(ARGV, 3)) end
local ts = redis.call('LPOP', KEYS[1], ARGV[1])
if not ts then redis.call('DEL', KEYS[3]) return nil end
local a, p = {}, ARGV[2]
for i = 1, #ts do a[2*i-1] = p .. i; a[2*i] = ts[i] end
redis.call('HSET', KEYS[2], unpack(a))
return ts`)

type ceilingQueue struct {
	addr  string
	alone bool       // there is one producer, which sends its own pair of commands
	conn  redis.Conn // of a lone producer
	// requests are the calls of concurrent producers; the goroutine of coalesce sends them together.
	requests chan *bareRequest
}

// bareRequest is a call that enqueues.
type bareRequest struct {
	task []byte
	err  chan error
}

var bareRequests = sync.Pool{New: func() any { return &bareRequest{err: make(chan error, 1)} }}

func openCeiling(addr string) (queue, error) {
	conn, err := redis.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	own, err := redis.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &ceilingQueue{addr: addr, conn: conn, requests: make(chan *bareRequest, 4096)}
	go c.coalesce(own)
	return c, nil
}

func (c *ceilingQueue) set(r *request) { c.alone = r.Producers <= 1 }

// coalesce sends the tasks that have arrived while the last request was under way, up to 1,000, with two commands.
func (c *ceilingQueue) coalesce(conn redis.Conn) {
	for first := range c.requests {
		pile, tasks := []*bareRequest{first}, [][]byte{first.task}
		for more := true; more && len(pile) < 1000; {
			select {
			case r := <-c.requests:
				pile, tasks = append(pile, r), append(tasks, r.task)
			default:
				more = false
			}
		}
		err := push(conn, tasks)
		for _, r := range pile {
			r.err <- err
		}
	}
}

// push enqueues tasks, each with a notification, with two commands in one round trip.
func push(conn redis.Conn, tasks [][]byte) error {
	args, ones := make([]any, 1, len(tasks)+1), make([]any, 1, len(tasks)+1)
	args[0], ones[0] = ceilingList, ceilingNotify
	for _, task := range tasks {
		args, ones = append(args, task), append(ones, 1)
	}
	if err := conn.Send("RPUSH", args...); err != nil {
		return err
	}
	_, err := conn.Do("RPUSH", ones...)
	return err
}

func (c *ceilingQueue) enqueue(number int64, text string) error {
	task := encodeBare(number, text)
	if c.alone {
		return push(c.conn, [][]byte{task})
	}
	r, _ := bareRequests.Get().(*bareRequest)
	defer bareRequests.Put(r)
	r.task = task
	c.requests <- r
	return <-r.err
}

func (c *ceilingQueue) enqueueMany(number int64, texts []string) error {
	tasks := make([][]byte, len(texts))
	for i, text := range texts {
		tasks[i] = encodeBare(number, text)
	}
	return push(c.conn, tasks)
}

// work starts the fetchers, whose number does not depend on the concurrency.
func (c *ceilingQueue) work(_ int, handle func(int64, string)) error {
	handler := newBareHandler(handle)
	for i := range ceilingFetchers {
		conn, err := redis.Dial("tcp", c.addr)
		if err == nil {
			err = ackClaim.Load(conn)
		}
		if err != nil {
			return err
		}
		go func() { _ = (&bareFetcher{conn: conn, number: i, handler: handler}).run() }() // until the server has ended
	}
	return nil
}
