package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// bed is what one measurement of one peer uses: a fresh server, perhaps behind a proxy, and drivers. Closing it closes
// all of these. An error ends a measurement as Fatal ends a test: check panics with a failure, which recoverFailure
// turns into the measurement's error. So the measurements, which only run on one goroutine, need not pass errors on.
type bed struct {
	ctx     context.Context //nolint:containedctx // of the whole measurement: its end kills the drivers
	peer    *peer
	addr    string // that drivers use
	server  *server
	scale   float64 // factor for the number of tasks; 1 gives that of the published figures
	results *results

	proxy    *proxy
	conn     redis.Conn // of do
	programs []*program
}

// failure is what check panics with.
type failure struct{ err error }

// check ends the measurement if there is an error.
func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// recoverFailure is deferred where a measurement begins.
func recoverFailure(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = f.err
	default:
		panic(f)
	}
}

// makeBed starts the server of a peer. A delay is added in each direction; 0 is no proxy.
func makeBed(ctx context.Context, p *peer, aof string, delay time.Duration) (*bed, error) {
	if aof == "" {
		aof = aofEverysec
	}
	start := p.start
	if start == nil {
		start = startServer
	}
	s, err := start(aof)
	if err != nil {
		return nil, err
	}
	b := &bed{ctx: ctx, peer: p, addr: s.addr, server: s, scale: 1, results: &results{}}
	if delay == 0 {
		return b, nil
	}
	if b.proxy, err = startProxy(s.addr, delay); err != nil {
		b.close()
		return nil, err
	}
	b.addr = b.proxy.addr()
	return b, nil
}

// close ends everything.
func (b *bed) close() {
	for _, d := range b.programs {
		d.close()
	}
	if b.conn != nil {
		b.conn.Close()
	}
	if b.proxy != nil {
		b.proxy.stop()
	}
	b.server.stop()
}

// driver starts a driver that ends with the bed.
func (b *bed) driver() *program {
	d, err := startProgram(b.ctx, b.peer, b.addr)
	check(err)
	b.programs = append(b.programs, d)
	return d
}

// worker starts a driver whose worker has begun to wait; receive then waits for its answer.
func (b *bed) worker(r *request) *program {
	d := b.driver()
	r.Op = "work"
	if r.Concurrency == 0 {
		r.Concurrency = b.peer.executors(baseConcurrency)
	}
	d.begin(r)
	time.Sleep(settle)
	return d
}

// settle is the time for a worker to connect and to begin to wait.
const settle = 300 * time.Millisecond

// redis reports whether the peer's store is a redis-server, which reports more about itself.
func (b *bed) redis() bool { return b.peer.start == nil }

// redisConn returns a connection to the redis-server.
func (b *bed) redisConn() redis.Conn {
	if b.conn == nil {
		conn, err := redis.Dial("tcp", b.server.addr)
		check(err)
		b.conn = conn
	}
	return b.conn
}

// do sends the redis-server a command.
func (b *bed) do(command string, args ...any) any {
	reply, err := b.redisConn().Do(command, args...)
	check(err)
	return reply
}

// until polls done, 5 ms apart, until it reports true.
func until(what string, done func() bool) {
	for deadline := time.Now().Add(workLimit); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			check(fmt.Errorf("it took more than %v until %s", workLimit, what))
		}
	}
}

// record adds a value of this peer to a figure. less is true if less is better.
func (b *bed) record(table, row, measure string, less bool, value float64) {
	b.results.add(table, row, measure, less, b.peer.name, value)
}

// tasks returns how many tasks to use where the published figures of delayed use n: at least least.
func (b *bed) tasks(n, least int) int { return max(least, int(float64(b.peer.tasks(n))*b.scale)) }

// state returns a snapshot of the server, with only as much as the peer's store reports.
func (b *bed) state() *snapshot {
	if !b.redis() {
		return &snapshot{cpu: treeCPU(b.server.cmd.Process.Pid)}
	}
	s, err := takeSnapshot(b.server.addr)
	check(err)
	return s
}

// fill makes n tasks pending, by the fastest way that the peer has.
func (b *bed) fill(producer *program, n, size int) {
	_, err := producer.try(&request{Op: "enqueue", N: n, Batch: 1000, Size: size})
	if errors.Is(err, errNone) {
		_, err = producer.try(&request{Op: "enqueue", N: n, Producers: 64, Size: size})
	}
	check(err)
}
