package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/godelayed/delayed/internal/fakeredis"
	"github.com/godelayed/delayed/internal/limits"
)

// pair is a node that serves all slots and answers GET as a test wants, and another one.
func pair(t *testing.T, first, second func(args []string) string) (a, b *fakeredis.Server) {
	t.Helper()
	b = startFake(t, second)
	a = startFake(t, func(args []string) string {
		if isClusterSlots(args) {
			return slotsReply("127.0.0.1", a.Port())
		}
		return first(args)
	})
	return a, b
}

var slotK = redisc.Slot("k")

func TestAskIsFollowedOnce(t *testing.T) {
	var b *fakeredis.Server
	a, b := pair(t,
		func([]string) string { return fmt.Sprintf("-ASK %d %s\r\n", slotK, b.Addr()) },
		func([]string) string { return "+OK\r\n" })
	c := connTo(t, open(t, "redis://"+a.Addr()), "k")
	for range 2 {
		if reply, err := c.Do("GET", "k"); err != nil || reply != "OK" {
			t.Fatalf("GET: %v, %v", reply, err)
		}
	}
	if got, want := b.Names(), "ASKING GET ASKING GET"; got != want {
		t.Errorf("the importing node saw %q, expected %q", got, want)
	}
	if got, want := a.Names(), "CLUSTER GET GET"; got != want {
		t.Errorf("the owner saw %q, expected %q: it owns the slot as long as it says ASK", got, want)
	}
}

func TestMovedTakesTheConnectionAlong(t *testing.T) {
	for _, form := range []string{"127.0.0.1:%s", ":%s"} { // without a host: the one that was asked
		var b *fakeredis.Server
		a, b := pair(t,
			func([]string) string { return fmt.Sprintf("-MOVED %d "+form+"\r\n", slotK, b.Port()) },
			func(args []string) string {
				if isClusterSlots(args) {
					return slotsReply("", b.Port())
				}
				return "+OK\r\n"
			})
		src := open(t, "redis://"+a.Addr())
		c := connTo(t, src, "k")
		for range 2 {
			if reply, err := c.Do("GET", "k"); err != nil || reply != "OK" {
				t.Fatalf("GET: %v, %v", reply, err)
			}
		}
		if got, want := strings.ReplaceAll(b.Names(), " CLUSTER", ""), "GET GET"; got != want {
			t.Errorf("the new node saw %q, expected %q", got, want)
		}
		if reply, err := connTo(t, src, "k").Do("GET", "k"); err != nil || reply != "OK" {
			t.Errorf("GET on another connection: %v, %v", reply, err)
		}
		if n := strings.Count(a.Names(), "GET"); n != 1 {
			t.Errorf("the old node saw %d times GET, expected once", n)
		}
	}
}

func TestTryAgainIsTriedAgain(t *testing.T) {
	var n atomic.Int32
	a, _ := pair(t, func([]string) string {
		if n.Add(1) < 4 {
			return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
		}
		return "+OK\r\n"
	}, nil)
	c := connTo(t, open(t, "redis://"+a.Addr()), "k")
	if reply, err := c.Do("MGET", "k", "l"); err != nil || reply != "OK" || n.Load() != 4 {
		t.Errorf("MGET: %v, %v after %d tries", reply, err, n.Load())
	}
}

func TestRedirectionsEnd(t *testing.T) {
	t.Parallel()
	var a, b *fakeredis.Server
	a, b = pair(t,
		func([]string) string { return fmt.Sprintf("-MOVED %d %s\r\n", slotK, b.Addr()) },
		func(args []string) string {
			if isClusterSlots(args) {
				return slotsReply("127.0.0.1", b.Port())
			}
			return fmt.Sprintf("-MOVED %d %s\r\n", slotK, a.Addr())
		})
	src := open(t, "redis://"+a.Addr())
	var answer redis.Error
	for try := 1; ; try++ {
		before := strings.Count(a.Names(), "GET")
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := redis.DoContext(connTo(t, src, "k"), ctx, "GET", "k")
		cancel()
		if n := strings.Count(a.Names(), "GET") - before; n > 10 {
			t.Errorf("%d times GET within 300 ms: expected pauses", n)
		}
		if errors.As(err, &answer) && strings.HasPrefix(string(answer), "MOVED ") &&
			errors.Is(err, context.DeadlineExceeded) {
			break
		}
		var network net.Error // the time was over while an answer was under way: of that, nothing is known
		if !errors.As(err, &network) || !network.Timeout() || try == 20 {
			t.Fatalf("expected MOVED and the context's error, found %v", err)
		}
	}

	c := connTo(t, src, "k")
	start := time.Now()
	_, err := c.Do("GET", "k")
	if took := time.Since(start); took < redirectTimeout {
		t.Errorf("gave up after %v, expected %v", took, redirectTimeout)
	} else if took > redirectTimeout+5*time.Second {
		limits.Errorf(t, "gave up after %v, expected %v", took, redirectTimeout)
	}
	if !errors.As(err, &answer) || !strings.HasPrefix(string(answer), "MOVED ") {
		t.Errorf("expected MOVED, found %v", err)
	}
}

// TestNodeAwayAfterRedirection expects an error that still says that Redis did not carry out the command.
func TestNodeAwayAfterRedirection(t *testing.T) {
	gone := startFake(t, nil)
	gone.Close()
	for _, kind := range []string{"MOVED", "ASK"} {
		a, _ := pair(t, func([]string) string { return fmt.Sprintf("-%s %d %s\r\n", kind, slotK, gone.Addr()) }, nil)
		_, err := connTo(t, open(t, "redis://"+a.Addr()), "k").Do("GET", "k")
		var answer redis.Error
		if !errors.As(err, &answer) || !strings.HasPrefix(string(answer), kind) ||
			!strings.Contains(err.Error(), "refused") {
			t.Errorf("expected %s and why the node cannot be reached, found: %v", kind, err)
		}
	}
}

// TestBrokenConnectionIsNotRetried counts what arrives: after an unclear reply nothing may be sent again.
func TestBrokenConnectionIsNotRetried(t *testing.T) {
	a, _ := pair(t, func(args []string) string {
		if args[0] == "INCR" {
			return ""
		}
		return "+OK\r\n"
	}, nil)
	src := open(t, "redis://"+a.Addr())
	idle := connTo(t, src, "k")
	if _, err := idle.Do("GET", "k"); err != nil {
		t.Fatal(err)
	}
	c := connTo(t, src, "k")
	pool := src.pools[a.Addr()]
	idle.Close()
	if n := pool.IdleCount(); n != 1 {
		t.Fatalf("%d idle connections, expected one", n)
	}
	if reply, err := c.Do("INCR", "k"); err == nil {
		t.Errorf("INCR: %v, expected an error", reply)
	}
	if n := strings.Count(a.Names(), "INCR"); n != 1 {
		t.Errorf("%d times INCR, expected once", n)
	}
	if n := pool.IdleCount(); n != 0 {
		t.Errorf("%d connections that idled beside a broken one are kept", n)
	}
	if _, err := connTo(t, src, "k").Do("GET", "k"); err != nil {
		t.Errorf("GET on a new connection: %v", err)
	}
}

func TestPipelineIsRedirected(t *testing.T) {
	var b *fakeredis.Server
	a, b := pair(t,
		func(args []string) string {
			if args[1] == "moves" {
				return fmt.Sprintf("-MOVED %d %s\r\n", slotK, b.Addr())
			}
			return "+a\r\n"
		},
		func(args []string) string {
			if isClusterSlots(args) {
				return slotsReply("127.0.0.1", b.Port())
			}
			return "+b\r\n"
		})
	src := open(t, "redis://"+a.Addr())
	send := func(c redis.Conn, keys ...string) {
		t.Helper()
		for _, key := range keys {
			if err := c.Send("GET", key); err != nil {
				t.Fatal(err)
			}
		}
	}

	c := connTo(t, src, "k")
	send(c, "1", "moves", "2", "moves")
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	for i, receive := range []func() (any, error){
		c.Receive,
		func() (any, error) { return redis.ReceiveWithTimeout(c, time.Second) },
		func() (any, error) { return redis.ReceiveContext(c, t.Context()) },
		c.Receive,
	} {
		if reply, err := receive(); err != nil || reply != []string{"a", "b", "a", "b"}[i] {
			t.Errorf("reply %d: %v, %v", i, reply, err)
		}
	}
	// The last reply was redirected, and none is to come: the connection has moved.
	if reply, err := c.Do("GET", "1"); err != nil || reply != "b" {
		t.Errorf("after the pipeline: %v, %v", reply, err)
	}

	src.layout.mu.Lock()
	src.layout.slots[slotK] = a.Addr()
	src.layout.mu.Unlock()
	c = connTo(t, src, "k")
	send(c, "1", "moves")
	if reply, err := c.Do("GET", "2"); err != nil || reply != "a" && reply != "b" {
		t.Errorf("Do after Send: %v, %v", reply, err)
	}
	send(c, "1", "moves")
	if replies, err := redis.Strings(c.Do("")); err != nil || len(replies) != 2 || replies[1] != "b" {
		t.Errorf("Do without a command: %v, %v", replies, err)
	}
}

func TestTransactionIsNotRedirected(t *testing.T) {
	var b *fakeredis.Server
	a, b := pair(t,
		func(args []string) string {
			switch args[0] {
			case "MULTI":
				return "+OK\r\n"
			case "EXEC":
				return "-EXECABORT Transaction discarded because of previous errors.\r\n"
			}
			return fmt.Sprintf("-MOVED %d %s\r\n", slotK, b.Addr())
		},
		func(args []string) string {
			if isClusterSlots(args) {
				return slotsReply("127.0.0.1", b.Port())
			}
			return "+b\r\n"
		})
	src := open(t, "redis://"+a.Addr())
	c := connTo(t, src, "k")
	for _, name := range []string{"MULTI", "INCR", "EXEC"} {
		if err := c.Send(name, "k"); err != nil {
			t.Fatal(err)
		}
	}
	replies, err := redis.Values(c.Do(""))
	if err != nil || len(replies) != 3 {
		t.Fatalf("%v, %v", replies, err)
	}
	if text := fmt.Sprint(replies[1]); !strings.HasPrefix(text, "MOVED") {
		t.Errorf("INCR within MULTI: %v", text)
	}
	if strings.Contains(b.Names(), "INCR") {
		t.Error("a command of a transaction was carried out alone, on another node")
	}
	if reply, err := c.Do("GET", "k"); err != nil || reply != "b" {
		t.Errorf("after the transaction: %v, %v", reply, err)
	}
}

// TestWaitGoesAlong sends a command with WAIT behind it to a node that refuses it: the node that carries it out must be
// asked, on the same connection. Of the redirections it meets ASK, also beside MOVED.
func TestWaitGoesAlong(t *testing.T) {
	for _, kind := range []string{"ASK", "MOVED"} {
		t.Run(kind, func(t *testing.T) {
			var b *fakeredis.Server
			a, b := pair(t,
				func(args []string) string {
					if args[0] == "WAIT" {
						return ":7\r\n"
					}
					return fmt.Sprintf("-%s %d %s\r\n", kind, slotK, b.Addr())
				},
				func(args []string) string {
					switch {
					case isClusterSlots(args):
						return slotsReply("127.0.0.1", b.Port())
					case args[0] == "WAIT":
						return ":1\r\n"
					}
					return "+OK\r\n"
				})
			c := connTo(t, open(t, "redis://"+a.Addr()), "k")
			for range 2 {
				for _, cmd := range [][]any{{"SET", "k", "v"}, {"WAIT", 1, 100}} {
					if err := c.Send(cmd[0].(string), cmd[1:]...); err != nil { //nolint:errcheck // a literal above
						t.Fatal(err)
					}
				}
				if err := c.Flush(); err != nil {
					t.Fatal(err)
				}
				reply, err := c.Receive()
				n, err2 := redis.Int(c.Receive())
				if reply != "OK" || n != 1 || err != nil || err2 != nil {
					t.Errorf("expected OK and 1, found %v, %v and %d, %v", reply, err, n, err2)
				}
			}
			want := map[string]string{"ASK": "ASKING SET WAIT ASKING SET WAIT", "MOVED": "SET WAIT SET WAIT"}[kind]
			if got := strings.ReplaceAll(b.Names(), " CLUSTER", ""); got != want {
				t.Errorf("the node that carries it out saw %q, expected %q", got, want)
			}
		})
	}
}

// TestPipelineIsTriedAgain answers TRYAGAIN to the first of two commands, as while the keys of a slot are on both
// sides. The reply to the second must not be taken for that to the first, nor be missing afterwards.
func TestPipelineIsTriedAgain(t *testing.T) {
	for _, second := range []string{"WAIT", "GET"} {
		t.Run(second, func(t *testing.T) {
			var tries atomic.Int32
			a, _ := pair(t, func(args []string) string {
				switch {
				case args[0] != "SET":
					return ":1\r\n"
				case tries.Add(1) <= hurriedTries+2:
					return "-TRYAGAIN Multiple keys request during rehashing of slot\r\n"
				}
				return "+OK\r\n"
			}, nil)
			c := connTo(t, open(t, "redis://"+a.Addr()), "k")
			for range 2 {
				for _, cmd := range [][]any{{"SET", "k", "v"}, {second, "k"}} {
					if err := c.Send(cmd[0].(string), cmd[1:]...); err != nil { //nolint:errcheck // a literal above
						t.Fatal(err)
					}
				}
				if err := c.Flush(); err != nil {
					t.Fatal(err)
				}
				reply, err := c.Receive()
				n, err2 := redis.Int(redis.ReceiveWithTimeout(c, redirectTimeout))
				if reply != "OK" || n != 1 || err != nil || err2 != nil || c.Err() != nil {
					t.Fatalf("expected OK and 1, found %v, %v and %d, %v; the connection: %v", reply, err, n, err2,
						c.Err())
				}
			}
		})
	}
}

// TestAskBesideMoved lets the slot of a connection move while another one begins to: the node that took the first over
// says ASK, first for good as it must be asked each time.
func TestAskBesideMoved(t *testing.T) {
	third := startFake(t, func([]string) string { return "+third\r\n" })
	var b *fakeredis.Server
	a, b := pair(t,
		func([]string) string { return fmt.Sprintf("-MOVED %d %s\r\n", slotK, b.Addr()) },
		func(args []string) string {
			switch {
			case isClusterSlots(args):
				return slotsReply("127.0.0.1", b.Port())
			case args[1] == "gone":
				return fmt.Sprintf("-ASK %d %s\r\n", slotK, third.Addr())
			}
			return "+second\r\n"
		})
	src := open(t, "redis://"+a.Addr())
	c := connTo(t, src, "k")
	for _, key := range []string{"gone", "gone", "here", "gone"} {
		want := map[string]string{"gone": "third", "here": "second"}[key]
		if reply, err := c.Do("GET", key); err != nil || reply != want {
			t.Errorf("GET %s: expected %s, found %v, %v", key, want, reply, err)
		}
	}
	if got, want := third.Names(), "ASKING GET ASKING GET ASKING GET"; got != want {
		t.Errorf("the importing node saw %q, expected %q", got, want)
	}
	if got, want := strings.ReplaceAll(b.Names(), " CLUSTER", ""), "GET GET GET GET"; got != want {
		t.Errorf("the owner saw %q, expected %q: it owns the slot as long as it says ASK", got, want)
	}
	if got := strings.Count(a.Names(), "GET"); got != 1 {
		t.Errorf("the old owner saw GET %d times, expected once", got)
	}
	if addr, err := src.layout.node(t.Context(), slotK); err != nil || addr != b.Addr() {
		t.Errorf("the slot is taken to be at %s, %v; expected %s", addr, err, b.Addr())
	}
}
