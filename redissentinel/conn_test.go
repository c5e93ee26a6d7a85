package redissentinel

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/fakeredis"
)

// twoMasters is a Sentinel that names the first of two servers, or the second when the flag is set.
func twoMasters(
	t *testing.T, first func(args []string) string,
) (src *source, a, b *fakeredis.Server, over *atomic.Bool) {
	t.Helper()
	over = &atomic.Bool{}
	a, b = startFake(t, first), startMaster(t, "+new\r\n")
	s := startSentinel(t, func() string {
		if over.Load() {
			return b.Port()
		}
		return a.Port()
	})
	return openDeaf(t, "redis://"+s.Addr()+"?master=m"), a, b, over
}

// TestDemotedMaster lets the first server become a replica behind the back of its clients.
func TestDemotedMaster(t *testing.T) {
	for _, answer := range []string{
		"READONLY You can't write against a read only replica.",
		"ERR Error running script (call to f_0): @user_script:1: @user_script: 1: -READONLY You can't write against " +
			"a read only replica.",
		"UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)",
	} {
		var demoted *atomic.Bool
		src, a, _, demoted := twoMasters(t, func(args []string) string {
			switch {
			case args[0] == "ROLE" && demoted.Load():
				return roleReply("slave")
			case args[0] == "ROLE":
				return roleReply("master")
			case demoted.Load():
				return "-" + answer + "\r\n"
			}
			return "+old\r\n"
		})
		idle, c := connTo(t, src), connTo(t, src)
		if reply, err := idle.Do("INCR", "k"); err != nil || reply != "old" {
			t.Fatalf("INCR: %v, %v", reply, err)
		}
		idle.Close()
		pool := src.pool
		demoted.Store(true)
		var refused redis.Error
		if _, err := c.Do("INCR", "k"); !errors.As(err, &refused) || string(refused) != answer {
			t.Errorf("INCR on a replica: expected %q, found %v", answer, err)
		}
		if c.Err() == nil {
			t.Error("the connection to a replica counts as good")
		}
		if n := pool.IdleCount(); n != 0 {
			t.Errorf("%d idle connections to the replica are kept", n)
		}
		c.Close()
		before := strings.Count(a.Names(), "INCR")
		if reply, err := connTo(t, src).Do("INCR", "k"); err != nil || reply != "new" {
			t.Errorf("INCR on a new connection: %v, %v", reply, err)
		}
		if strings.Count(a.Names(), "INCR") != before {
			t.Error("a new connection went to the replica")
		}
	}
}

// TestRoleIsCheckedOnBorrow lets the first server become a replica while a connection idles.
func TestRoleIsCheckedOnBorrow(t *testing.T) {
	t.Parallel()
	var demoted *atomic.Bool
	src, a, _, demoted := twoMasters(t, func(args []string) string {
		switch {
		case args[0] == "ROLE" && demoted.Load():
			return roleReply("slave")
		case args[0] == "ROLE":
			return roleReply("master")
		}
		return "+old\r\n"
	})
	for range 3 {
		c := connTo(t, src)
		if _, err := c.Do("INCR", "k"); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if got, want := a.Names(), "ROLE INCR INCR INCR"; got != want {
		t.Errorf("the master saw %q, expected %q: the role need not be asked for within %v", got, want, roleAfter)
	}
	demoted.Store(true)
	<-time.After(roleAfter)
	c := connTo(t, src)
	if reply, err := c.Do("INCR", "k"); err != nil || reply != "new" {
		t.Errorf("INCR: %v, %v", reply, err)
	}
}

// TestBrokenConnection expects that the connections that idle beside one that breaks are given up, and nothing is sent
// twice.
func TestBrokenConnection(t *testing.T) {
	src, a, _, _ := twoMasters(t, func(args []string) string {
		switch args[0] {
		case "ROLE":
			return roleReply("master")
		case "INCR":
			return ""
		}
		return "+OK\r\n"
	})
	ctx := t.Context()
	afterSend := func(receive func(c redis.Conn) (any, error)) func(c redis.Conn) (any, error) {
		return func(c redis.Conn) (any, error) {
			if err := errors.Join(c.Send("INCR"), c.Flush()); err != nil {
				t.Fatal(err)
			}
			return receive(c)
		}
	}
	for name, fail := range map[string]func(c redis.Conn) (any, error){
		"Do":            func(c redis.Conn) (any, error) { return c.Do("INCR") },
		"DoWithTimeout": func(c redis.Conn) (any, error) { return redis.DoWithTimeout(c, time.Minute, "INCR") },
		"DoContext":     func(c redis.Conn) (any, error) { return redis.DoContext(c, ctx, "INCR") },
		"Receive":       afterSend(redis.Conn.Receive),
		"ReceiveWithTimeout": afterSend(func(c redis.Conn) (any, error) {
			return redis.ReceiveWithTimeout(c, time.Minute)
		}),
		"ReceiveContext": afterSend(func(c redis.Conn) (any, error) { return redis.ReceiveContext(c, ctx) }),
	} {
		idle, c := connTo(t, src), connTo(t, src)
		idle.Close()
		pool := src.pool
		before := strings.Count(a.Names(), "INCR")
		if reply, err := fail(c); err == nil {
			t.Errorf("%s: %v, expected an error", name, reply)
		}
		if n := pool.IdleCount(); n != 0 {
			t.Errorf("%s: %d idle connections are kept", name, n)
		}
		if n := strings.Count(a.Names(), "INCR") - before; n != 1 {
			t.Errorf("%s: INCR was sent %d times", name, n)
		}
		if src.pool == pool {
			t.Errorf("%s: the pool was not replaced", name)
		}
	}
}

// TestPatienceOfOneCall expects that others do not suffer when a call was given too little time.
func TestPatienceOfOneCall(t *testing.T) {
	release := make(chan struct{})
	src, _, _, _ := twoMasters(t, func(args []string) string {
		switch args[0] {
		case "ROLE":
			return roleReply("master")
		case "BLPOP":
			<-release
			return "*-1\r\n"
		}
		return "+OK\r\n"
	})
	defer close(release)
	pool := src.pool
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(20*time.Millisecond, cancel)
	if _, err := redis.DoContext(connTo(t, src), ctx, "BLPOP", "k", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("expected %v, found %v", context.Canceled, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := redis.DoContext(connTo(t, src), ctx, "BLPOP", "k", 0); err == nil {
		t.Error("expected that the deadline ends the call")
	}
	if _, err := redis.DoWithTimeout(connTo(t, src), 20*time.Millisecond, "BLPOP", "k", 0); err == nil {
		t.Error("expected that the timeout ends the call")
	}
	if src.pool != pool {
		t.Error("the connections of others were given up")
	}
}
