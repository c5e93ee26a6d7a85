package faultnet

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// Proxy forwards TCP connections to a server until it is made to do otherwise. Its methods are safe for concurrent use.
type Proxy struct {
	listener *net.TCPListener
	counters counters
	done     sync.WaitGroup // of all goroutines

	mu      sync.Mutex // protects the following fields
	target  string
	closed  bool
	links   map[*link]struct{}
	mode    mode
	refuse  bool
	changed chan struct{} // closed and replaced when mode changes
	latency time.Duration
	delay   time.Duration
	plan    Plan
}

// mode is what happens to bytes that are under way.
type mode uint8

const (
	forward mode = iota
	hold
	swallow
)

// NewProxy starts a proxy in front of the server at target. It ends with the test.
func NewProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatalf("faultnet: %v", err)
	}
	p := &Proxy{target: target, listener: listener, links: map[*link]struct{}{}, changed: make(chan struct{})}
	p.done.Go(p.accept)
	t.Cleanup(p.Close)
	return p
}

// Addr returns the host and port to connect to instead of the server's.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// URL returns the address as delayed.Dial takes it.
func (p *Proxy) URL() string { return "redis://" + p.Addr() + "/0" }

// Counts returns what has happened so far on all connections.
func (p *Proxy) Counts() Counts { return p.counters.counts() }

// SetLatency makes every byte arrive d later, in each direction, so that a round trip takes 2d more.
func (p *Proxy) SetLatency(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.latency = d
}

// SetPlan decides what happens to each request from now on; delay is that of the plan's delays. A nil plan breaks
// nothing.
func (p *Proxy) SetPlan(plan Plan, delay time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.plan, p.delay = plan, delay
}

// Hold keeps everything that is under way, in both directions, until Heal lets it go on. This is a network that is down
// for a while: a request whose sender has given up and closed the connection still reaches the server, late.
func (p *Proxy) Hold() { p.setMode(hold) }

// BlackHole discards everything that is under way, in both directions, while connections stay open. Heal cuts those
// that have lost bytes.
func (p *Proxy) BlackHole() { p.setMode(swallow) }

// Refuse resets every new connection at once; existing ones go on.
func (p *Proxy) Refuse() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = true
}

// SetTarget makes new connections lead to another server; existing ones go on. This is a fail-over behind an address.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Strand discards everything that is under way on some of the open connections, from now on, while they stay open and
// new ones work: their packets are dropped without a sign. which is given their numbers, the oldest first, from 0.
// Strand returns how many connections there were.
func (p *Proxy) Strand(which func(n int) bool) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := slices.SortedFunc(maps.Keys(p.links), func(a, b *link) int { return cmp.Compare(a.number, b.number) })
	links = slices.DeleteFunc(links, func(l *link) bool { return l.stranded.Load() })
	for n, l := range links {
		if which(n) {
			l.stranded.Store(true)
		}
	}
	close(p.changed)
	p.changed = make(chan struct{})
	return len(links)
}

// Heal ends Hold, BlackHole and Refuse.
func (p *Proxy) Heal() {
	p.mu.Lock()
	p.refuse = false
	p.mu.Unlock()
	p.setMode(forward)
}

func (p *Proxy) setMode(m mode) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mode == swallow && m != swallow {
		for l := range p.links {
			if l.lossy.Load() {
				l.cut()
			}
		}
	}
	p.mode = m
	close(p.changed)
	p.changed = make(chan struct{})
}

// CutAll resets every open connection and returns their number.
func (p *Proxy) CutAll() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.cut()
	}
	return len(p.links)
}

// Close stops the proxy and cuts its connections. Closing twice is harmless.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.listener.Close()
	p.CutAll()
	p.done.Wait()
}

// accept serves connections until the listener is closed.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.AcceptTCP()
		if err != nil {
			return
		}
		p.done.Go(func() { p.serve(client) })
	}
}

// serve forwards one connection until both sides have ended it or it is cut.
func (p *Proxy) serve(client *net.TCPConn) {
	p.mu.Lock()
	refuse, target := p.refuse || p.closed, p.target
	p.mu.Unlock()
	if refuse {
		resetConn(client)
		return
	}
	server, err := dialTCP(target)
	if err != nil {
		resetConn(client)
		return
	}
	p.counters.connections.Add(1)
	l := &link{
		proxy: p, client: client, server: server, number: p.counters.connections.Load(), ended: make(chan struct{}),
	}
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.closed {
		l.cut()
	}
	p.mu.Unlock()
	l.run()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// decide asks the plan about a request that is about to be forwarded.
func (p *Proxy) decide(request []byte) (Fault, time.Duration) {
	p.counters.requests.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.plan == nil {
		return None, 0
	}
	return p.plan(request), p.delay
}

// state returns how bytes are treated now, and a channel that is closed when that changes.
func (p *Proxy) state() (mode, time.Duration, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mode, p.latency, p.changed
}

func dialTCP(addr string) (*net.TCPConn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("faultnet: expected a TCP connection, found %T", c)
	}
	return tcp, nil
}

func resetConn(c *net.TCPConn) {
	_ = c.SetLinger(0) // makes Close send a reset
	c.Close()
}
