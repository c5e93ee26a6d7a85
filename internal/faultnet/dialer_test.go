//go:build unix

package faultnet_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	redistest.StopShared()
	os.Exit(code)
}

// dial connects to the shared server through d.
func dial(t *testing.T, d *faultnet.Dialer, opts ...redis.DialOption) redis.Conn {
	t.Helper()
	return redistest.Shared(t).Dial(t, append(opts, redis.DialContextFunc(d.DialContext))...)
}

// counter is a key of this test, read and written without faults.
type counter struct {
	t    *testing.T
	conn redis.Conn
	key  string
}

func newCounter(t *testing.T) counter {
	t.Helper()
	return counter{t, redistest.Shared(t).Dial(t), redistest.Name(t)}
}

func (c counter) expect(want int) {
	c.t.Helper()
	n, err := redis.Int(c.conn.Do("GET", c.key))
	if errors.Is(err, redis.ErrNil) {
		n, err = 0, nil
	}
	if err != nil || n != want {
		c.t.Errorf("the server counted %d, %v, expected %d", n, err, want)
	}
}

// await polls until the counter has the value.
func (c counter) await(want int) {
	c.t.Helper()
	late := time.After(10 * time.Second)
	for {
		if n, err := redis.Int(c.conn.Do("GET", c.key)); err == nil && n == want {
			return
		}
		select {
		case <-late:
			c.t.Fatalf("the server did not count to %d within 10 s", want)
		case <-time.After(time.Millisecond):
		}
	}
}

func isReset(err error) bool { return errors.Is(err, syscall.ECONNRESET) }

func TestDropReply(t *testing.T) {
	n := newCounter(t)
	d := faultnet.NewDialer(faultnet.Once(faultnet.DropReply,
		func(req []byte) bool { return bytes.Contains(req, []byte("INCR")) }), 0)
	conn := dial(t, d)
	if _, err := conn.Do("PING"); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Do("INCR", n.key); !isReset(err) {
		t.Errorf("expected a reset, found %v", err)
	}
	n.expect(1)
	if _, err := conn.Do("INCR", n.key); err == nil {
		t.Error("the connection should be closed")
	}
	if _, err := dial(t, d).Do("INCR", n.key); err != nil {
		t.Errorf("only one reply should be dropped: %v", err)
	}
	n.expect(2)
	if c := d.Counts(); c != (faultnet.Counts{Connections: 2, Requests: 3, DroppedReplies: 1}) {
		t.Errorf("counts: %v", c)
	}
}

func TestDropRequest(t *testing.T) {
	n := newCounter(t)
	d := faultnet.NewDialer(faultnet.Once(faultnet.DropRequest, nil), 0)
	if _, err := dial(t, d).Do("INCR", n.key); !isReset(err) {
		t.Errorf("expected a reset, found %v", err)
	}
	n.expect(0)
	if c := d.Counts(); c != (faultnet.Counts{Connections: 1, Requests: 1, DroppedRequests: 1}) {
		t.Errorf("counts: %v", c)
	}
}

func TestDelay(t *testing.T) {
	const delay = 50 * time.Millisecond
	for _, fault := range []faultnet.Fault{faultnet.DelayRequest, faultnet.DelayReply} {
		t.Run(fault.String(), func(t *testing.T) {
			n := newCounter(t)
			d := faultnet.NewDialer(faultnet.Once(fault, nil), delay)
			conn := dial(t, d)
			start := time.Now()
			if _, err := conn.Do("INCR", n.key); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took < delay {
				t.Errorf("took %v, expected at least %v", took, delay)
			}
			if _, err := conn.Do("INCR", n.key); err != nil {
				t.Error(err)
			}
			n.expect(2)
			if c := d.Counts(); c.DelayedRequests+c.DelayedReplies != 1 ||
				(c.DelayedReplies == 1) != (fault == faultnet.DelayReply) {
				t.Errorf("counts: %v", c)
			}
		})
	}
}

func TestDelayBeyondDeadline(t *testing.T) {
	for fault, counted := range map[faultnet.Fault]int{faultnet.DelayRequest: 0, faultnet.DelayReply: 1} {
		t.Run(fault.String(), func(t *testing.T) {
			n := newCounter(t)
			d := faultnet.NewDialer(faultnet.Once(fault, nil), time.Hour)
			conn := dial(t, d, redis.DialReadTimeout(30*time.Millisecond), redis.DialWriteTimeout(30*time.Millisecond))
			_, err := conn.Do("INCR", n.key)
			var timeout net.Error
			if !errors.As(err, &timeout) || !timeout.Timeout() {
				t.Errorf("expected a timeout, found %v", err)
			}
			n.expect(counted)
		})
	}
}

func TestCloseEndsDelay(t *testing.T) {
	for _, fault := range []faultnet.Fault{faultnet.DelayRequest, faultnet.DelayReply} {
		t.Run(fault.String(), func(t *testing.T) {
			d := faultnet.NewDialer(faultnet.Once(fault, nil), time.Hour)
			conn, err := d.Dial("tcp", redistest.Shared(t).Addr())
			if err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(20*time.Millisecond, func() { conn.Close() })
			if _, err = conn.Write([]byte("PING\r\n")); err == nil {
				_, err = conn.Read(make([]byte, 100))
			}
			if !errors.Is(err, net.ErrClosed) {
				t.Errorf("found %v", err)
			}
		})
	}
}

// TestLongRequest: a request that is written in many pieces counts as one request.
func TestLongRequest(t *testing.T) {
	n := newCounter(t)
	d := faultnet.NewDialer(nil, 0)
	conn := dial(t, d)
	value := strings.Repeat("x", 1<<20)
	if _, err := conn.Do("SET", n.key, value); err != nil {
		t.Fatal(err)
	}
	if got, err := redis.String(conn.Do("GET", n.key)); err != nil || got != value {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if c := d.Counts(); c.Requests != 2 {
		t.Errorf("counts: %v", c)
	}
	d.SetPlan(faultnet.Once(faultnet.DropReply, nil))
	if _, err := conn.Do("GET", n.key); !isReset(err) {
		t.Errorf("SetPlan on an open connection: %v", err)
	}
}

// TestLongReply: a reply that is read in many pieces triggers its fault once.
func TestLongReply(t *testing.T) {
	n := newCounter(t)
	if _, err := n.conn.Do("SET", n.key, strings.Repeat("x", 1<<20)); err != nil {
		t.Fatal(err)
	}
	d := faultnet.NewDialer(faultnet.Once(faultnet.DelayReply, nil), time.Millisecond)
	if got, err := redis.Bytes(dial(t, d).Do("GET", n.key)); err != nil || len(got) != 1<<20 {
		t.Errorf("%d bytes came back, %v", len(got), err)
	}
	if c := d.Counts(); c != (faultnet.Counts{Connections: 1, Requests: 1, DelayedReplies: 1}) {
		t.Errorf("counts: %v", c)
	}
}

func TestPipelineIsOneRequest(t *testing.T) {
	n := newCounter(t)
	d := faultnet.NewDialer(faultnet.Once(faultnet.DropReply, nil), 0)
	conn := dial(t, d)
	for range 10 {
		if err := conn.Send("INCR", n.key); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Do(""); !isReset(err) {
		t.Errorf("expected a reset, found %v", err)
	}
	n.expect(10)
}

func TestRandom(t *testing.T) {
	const draws = 200_000
	rates := faultnet.Rates{DropReply: 0.01, DropRequest: 0.005, Delay: 0.005}
	plan, same, other := faultnet.Random(1, rates), faultnet.Random(1, rates), faultnet.Random(2, rates)
	seen := map[faultnet.Fault]int{}
	differs := false
	for range draws {
		f := plan(nil)
		seen[f]++
		if f != same(nil) {
			t.Fatal("two plans with one seed differ")
		}
		differs = differs || f != other(nil)
	}
	if !differs {
		t.Error("two plans with two seeds are the same")
	}
	for fault, want := range map[faultnet.Fault]float64{
		faultnet.DropReply: 0.01, faultnet.DropRequest: 0.005, faultnet.DelayRequest: 0.0025,
		faultnet.DelayReply: 0.0025, faultnet.None: 0.98,
	} {
		if got := float64(seen[fault]) / draws; math.Abs(got-want) > 0.2*want {
			t.Errorf("%v: share %.4f, expected %.4f", fault, got, want)
		}
	}
}

// TestManyConnections is for the race detector, and compares the counts with what clients and server have seen.
func TestManyConnections(t *testing.T) {
	n := newCounter(t)
	d := faultnet.NewDialer(faultnet.Random(3, faultnet.Rates{DropReply: 0.05, DropRequest: 0.05, Delay: 0.1}),
		time.Millisecond)
	pool := redistest.Shared(t).Pool(t, redis.DialContextFunc(d.DialContext))
	var mu sync.Mutex
	good, bad := 0, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				conn := pool.Get()
				_, err := conn.Do("INCR", n.key)
				conn.Close()
				mu.Lock()
				if err == nil {
					good++
				} else {
					bad++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	c := d.Counts()
	n.expect(good + int(c.DroppedReplies))
	if c.Requests != 1600 || int(c.DroppedReplies+c.DroppedRequests) != bad || bad == 0 || c.DelayedReplies == 0 ||
		c.DelayedRequests == 0 {
		t.Errorf("%d good, %d bad, counts: %v", good, bad, c)
	}
}

func TestStrings(t *testing.T) {
	if s := fmt.Sprint(faultnet.DropReply, faultnet.Fault(9)); s != "dropped reply Fault(9)" {
		t.Error(s)
	}
	want := "1 connections, 2 requests, dropped 3 requests and 4 replies, delayed 5 requests and 6 replies"
	if s := fmt.Sprint(faultnet.Counts{1, 2, 3, 4, 5, 6}); s != want {
		t.Error(s)
	}
}

func TestDialFails(t *testing.T) {
	if _, err := new(faultnet.Dialer).Dial("tcp", "127.0.0.1:1"); err == nil {
		t.Error("expected an error")
	}
}
