package main

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// bed is what one measurement of one peer uses: a fresh server, perhaps behind a proxy, and drivers. Closing it closes
// all of these, even after an error.
type bed struct {
	peer   *peer
	addr   string // that drivers use
	server *server
	scale  float64 // factor for the number of tasks; 1 gives that of the published figures
	record func(table, row, measure string, less bool, value float64)
	middle func(table, row, measure, peer string) float64 // median of the values so far; NaN if none

	proxy *proxy

	mu       sync.Mutex
	programs []*program
	aborted  bool
}

// bare tells makeBed to use no proxy; other delays are for one direction.
const bare = time.Duration(-1)

func makeBed(p *peer, aof string, delay time.Duration) (*bed, error) {
	b := &bed{peer: p, scale: 1}
	var err error
	if p.start != nil {
		b.server, err = p.start(aof)
	} else {
		b.server, err = startServer(aof)
	}
	if err != nil {
		return nil, err
	}
	b.addr = b.server.addr
	if delay == bare {
		return b, nil
	}
	if p.start != nil {
		b.close()
		return nil, fmt.Errorf("%s is not measured behind a proxy", p.name)
	}
	if b.proxy, err = startProxy(b.server.addr, delay); err != nil {
		b.close()
		return nil, err
	}
	b.addr = b.proxy.addr()
	return b, nil
}

// driver starts a driver that ends with the bed.
func (b *bed) driver() (*program, error) {
	d, err := startProgram(b.peer, b.addr)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.programs = append(b.programs, d)
	if b.aborted {
		_ = d.cmd.Process.Kill()
	}
	return d, nil
}

// abort kills the drivers at once, so that nobody waits for them any longer.
func (b *bed) abort() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aborted = true
	for _, d := range b.programs {
		_ = d.cmd.Process.Kill()
	}
}

func (b *bed) close() {
	for _, d := range b.programs {
		d.close()
	}
	if b.proxy != nil {
		b.proxy.stop()
	}
	b.server.stop()
}

// redis reports whether the peer's store is a redis-server, which reports more about itself.
func (b *bed) redis() bool { return b.peer.start == nil }

// tasks returns how many tasks to use where the published figures of delayed use n: at least least.
func (b *bed) tasks(n, least int) int {
	if b.peer.most > 0 {
		least = min(least, b.peer.most)
	}
	return max(least, int(float64(b.peer.tasks(n))*b.scale))
}

// state returns a snapshot of the server, with only as much as the peer's store reports.
func (b *bed) state() (*snapshot, error) {
	if !b.redis() {
		pid := b.server.cmd.Process.Pid
		return &snapshot{cpu: treeCPU(pid), resident: treeRSS(pid)}, nil
	}
	return takeSnapshot(b.server.addr)
}

// fill makes n tasks pending, by the fastest way that the peer has.
func (b *bed) fill(producer *program, n, size, every int) error {
	_, err := producer.do(&request{Op: "enqueue", N: n, Batch: 1000, Size: size, Every: every})
	if errors.Is(err, errNone) {
		_, err = producer.do(&request{Op: "enqueue", N: n, Producers: 64, Size: size, Every: every})
	}
	if errors.Is(err, errNone) {
		_, err = producer.do(&request{Op: "enqueue", N: n, Producers: 1, Size: size, Every: every})
	}
	if err != nil {
		return fmt.Errorf("enqueueing %d tasks: %w", n, err)
	}
	return nil
}
