//go:build unix

package faultnet_test

import (
	"bytes"
	"errors"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
)

func newProxy(t *testing.T) *faultnet.Proxy {
	t.Helper()
	return faultnet.NewProxy(t, redistest.Shared(t).Addr())
}

func dialProxy(t *testing.T, p *faultnet.Proxy, readTimeout time.Duration) redis.Conn {
	t.Helper()
	conn, err := redis.DialURL(p.URL(), redis.DialReadTimeout(readTimeout))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func expectTimeout(t *testing.T, err error) {
	t.Helper()
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("expected a timeout, found %v", err)
	}
}

func TestProxyForwards(t *testing.T) {
	n := newCounter(t)
	p := newProxy(t)
	conn := dialProxy(t, p, 5*time.Second)
	value := strings.Repeat("x", 4<<20)
	if _, err := conn.Do("SET", n.key, value); err != nil {
		t.Fatal(err)
	}
	if got, err := redis.String(conn.Do("GET", n.key)); err != nil || got != value {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if c := p.Counts(); c != (faultnet.Counts{Connections: 1, Requests: 2}) {
		t.Errorf("counts: %v", c)
	}
}

func TestProxyLatency(t *testing.T) {
	p := newProxy(t)
	p.SetLatency(20 * time.Millisecond)
	conn := dialProxy(t, p, 5*time.Second)
	start := time.Now()
	for range 100 {
		if err := conn.Send("PING"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Do(""); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < 40*time.Millisecond {
		t.Errorf("a pipeline took %v, expected 40 ms", took)
	} else if took > time.Second {
		limits.Errorf(t, "a pipeline took %v, expected 40 ms and little more", took)
	}
}

func TestProxyCutAll(t *testing.T) {
	p := newProxy(t)
	a, b := dialProxy(t, p, 5*time.Second), dialProxy(t, p, 5*time.Second)
	for _, conn := range []redis.Conn{a, b} {
		if _, err := conn.Do("PING"); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.CutAll(); n != 2 {
		t.Errorf("cut %d connections", n)
	}
	for _, conn := range []redis.Conn{a, b} {
		if _, err := conn.Do("PING"); err == nil {
			t.Error("a cut connection answers")
		}
	}
	if _, err := dialProxy(t, p, 5*time.Second).Do("PING"); err != nil {
		t.Errorf("new connections should work: %v", err)
	}
}

func TestProxyPlans(t *testing.T) {
	incr := func(req []byte) bool { return bytes.Contains(req, []byte("INCR")) }
	for _, test := range []struct {
		fault   faultnet.Fault
		cut     bool
		counted int
	}{
		{faultnet.DropReply, true, 1},
		{faultnet.DropRequest, true, 0},
		{faultnet.DelayRequest, false, 1},
		{faultnet.DelayReply, false, 1},
	} {
		t.Run(test.fault.String(), func(t *testing.T) {
			const delay = 30 * time.Millisecond
			n := newCounter(t)
			p := newProxy(t)
			p.SetPlan(faultnet.Once(test.fault, incr), delay)
			conn := dialProxy(t, p, 5*time.Second)
			if _, err := conn.Do("PING"); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			_, err := conn.Do("INCR", n.key)
			if (err != nil) != test.cut {
				t.Errorf("error %v", err)
			}
			if took := time.Since(start); !test.cut && took < delay {
				t.Errorf("took %v, expected at least %v", took, delay)
			}
			n.expect(test.counted)
			c := p.Counts()
			if c.DroppedReplies+c.DroppedRequests+c.DelayedReplies+c.DelayedRequests != 1 || c.Requests != 2 {
				t.Errorf("counts: %v", c)
			}
			if _, err := dialProxy(t, p, 5*time.Second).Do("INCR", n.key); err != nil {
				t.Errorf("only one request should meet the fault: %v", err)
			}
		})
	}
}

// TestProxyHoldDeliversLate gives up a request that the server executes afterwards.
func TestProxyHoldDeliversLate(t *testing.T) {
	n := newCounter(t)
	p := newProxy(t)
	quick, patient := dialProxy(t, p, 30*time.Millisecond), dialProxy(t, p, 10*time.Second)
	p.Hold()
	_, err := quick.Do("INCR", n.key)
	expectTimeout(t, err)
	quick.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := patient.Do("INCRBY", n.key, 10)
		answered <- err
	}()
	n.expect(0)
	p.Heal()
	n.await(11)
	if err := <-answered; err != nil {
		t.Errorf("a client that waits should get its answer: %v", err)
	}
}

// TestProxyHoldHidesTheEnd closes a connection while the network is down: the server does not notice yet.
func TestProxyHoldHidesTheEnd(t *testing.T) {
	n := newCounter(t)
	p := newProxy(t)
	conn := dialProxy(t, p, 5*time.Second)
	if _, err := conn.Do("CLIENT", "SETNAME", n.key); err != nil {
		t.Fatal(err)
	}
	known := func() bool {
		clients, err := redis.String(n.conn.Do("CLIENT", "LIST"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(clients, n.key)
	}
	p.Hold()
	conn.Close()
	for late := time.After(50 * time.Millisecond); ; {
		if !known() {
			t.Fatal("the end of the connection reached the server")
		}
		select {
		case <-late:
			p.Heal()
			for known() {
				<-time.After(time.Millisecond)
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

func TestProxyLongReply(t *testing.T) {
	n := newCounter(t)
	if _, err := n.conn.Do("SET", n.key, strings.Repeat("x", 1<<20)); err != nil {
		t.Fatal(err)
	}
	p := newProxy(t)
	p.SetPlan(faultnet.Once(faultnet.DelayReply, nil), time.Millisecond)
	if got, err := redis.Bytes(dialProxy(t, p, 5*time.Second).Do("GET", n.key)); err != nil || len(got) != 1<<20 {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if c := p.Counts(); c != (faultnet.Counts{Connections: 1, Requests: 1, DelayedReplies: 1}) {
		t.Errorf("counts: %v", c)
	}
}

func TestProxyBlackHole(t *testing.T) {
	n := newCounter(t)
	p := newProxy(t)
	asked, idle := dialProxy(t, p, 30*time.Millisecond), dialProxy(t, p, 5*time.Second)
	if _, err := idle.Do("PING"); err != nil {
		t.Fatal(err)
	}
	p.BlackHole()
	_, err := asked.Do("INCR", n.key)
	expectTimeout(t, err)
	p.Heal()
	if _, err := idle.Do("INCR", n.key); err != nil {
		t.Errorf("a connection that lost nothing should go on: %v", err)
	}
	n.expect(1)
}

// TestProxyBlackHoleCuts keeps a connection open through a black hole that has swallowed its request.
func TestProxyBlackHoleCuts(t *testing.T) {
	n := newCounter(t)
	p := newProxy(t)
	conn := dialProxy(t, p, 20*time.Second)
	if _, err := conn.Do("PING"); err != nil {
		t.Fatal(err)
	}
	p.BlackHole()
	answered := make(chan error, 1)
	go func() {
		_, err := conn.Do("INCR", n.key)
		answered <- err
	}()
	select {
	case err := <-answered:
		t.Fatalf("answered through a black hole: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.Heal()
	err := <-answered
	var timeout net.Error
	if err == nil || errors.As(err, &timeout) && timeout.Timeout() {
		t.Errorf("expected a cut connection, found %v", err)
	}
	n.expect(0)
}

func TestProxyRefuse(t *testing.T) {
	p := newProxy(t)
	old := dialProxy(t, p, 5*time.Second)
	if _, err := old.Do("PING"); err != nil {
		t.Fatal(err)
	}
	p.Refuse()
	if conn, err := redis.DialURL(p.URL()); err == nil {
		if _, err = conn.Do("PING"); err == nil {
			t.Error("a refused connection answers")
		}
		conn.Close()
	}
	if _, err := old.Do("PING"); err != nil {
		t.Errorf("existing connections should go on: %v", err)
	}
	p.Heal()
	if _, err := dialProxy(t, p, 5*time.Second).Do("PING"); err != nil {
		t.Error(err)
	}
}

func TestProxyWithoutServer(t *testing.T) {
	p := faultnet.NewProxy(t, "127.0.0.1:1")
	if conn, err := redis.DialURL(p.URL()); err == nil {
		if _, err = conn.Do("PING"); err == nil {
			t.Error("expected an error")
		}
		conn.Close()
	}
}

// TestProxyCloses closes the proxy in every mode, and leaves no goroutine behind.
func TestProxyCloses(t *testing.T) {
	redistest.Shared(t)
	before := runtime.NumGoroutine()
	for _, set := range []func(*faultnet.Proxy){
		func(*faultnet.Proxy) {}, (*faultnet.Proxy).Hold, (*faultnet.Proxy).BlackHole, (*faultnet.Proxy).Refuse,
		func(p *faultnet.Proxy) { p.SetLatency(time.Hour) },
		func(p *faultnet.Proxy) { p.SetPlan(faultnet.Once(faultnet.DelayReply, nil), time.Hour) },
	} {
		p := newProxy(t)
		conn := dialProxy(t, p, 10*time.Millisecond)
		if _, err := redis.DoWithTimeout(conn, redistest.Patience, "PING"); err != nil {
			t.Fatal(err)
		}
		set(p)
		_, _ = conn.Do("PING")
		conn.Close()
		p.Close()
		p.Close()
	}
	for late := time.After(10 * time.Second); runtime.NumGoroutine() > before; {
		select {
		case <-late:
			t.Fatalf("%d goroutines before, %d after", before, runtime.NumGoroutine())
		case <-time.After(time.Millisecond):
		}
	}
}
