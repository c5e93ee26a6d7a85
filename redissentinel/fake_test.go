package redissentinel

import (
	"context"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/fakeredis"
)

// startFake starts a server that answers as a test wants.
func startFake(t *testing.T, answer func(args []string) string) *fakeredis.Server {
	t.Helper()
	s, err := fakeredis.Start(answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// startSentinel starts a Sentinel that knows the master m, whose port is what the function returns; "" if it does not
// know it.
func startSentinel(t *testing.T, port func() string) *fakeredis.Server {
	t.Helper()
	return startFake(t, func(args []string) string {
		switch {
		case args[0] != "SENTINEL":
			return "+OK\r\n"
		case args[2] != "m" || port() == "":
			return "*-1\r\n"
		case args[1] == "MASTER":
			return masterReply(port(), "1")
		}
		return fakeredis.Array(fakeredis.Bulk("127.0.0.1"), fakeredis.Bulk(port()))
	})
}

// masterReply is an answer to SENTINEL MASTER.
func masterReply(port, epoch string) string {
	return fakeredis.Array(
		fakeredis.Bulk("name"), fakeredis.Bulk("m"), fakeredis.Bulk("ip"), fakeredis.Bulk("127.0.0.1"),
		fakeredis.Bulk("port"), fakeredis.Bulk(port), fakeredis.Bulk("config-epoch"), fakeredis.Bulk(epoch))
}

func roleReply(role string) string {
	return fakeredis.Array(fakeredis.Bulk(role), ":0\r\n", fakeredis.Array())
}

// startMaster starts a server that says that it is a master and answers other commands with the reply.
func startMaster(t *testing.T, reply string) *fakeredis.Server {
	t.Helper()
	return startFake(t, func(args []string) string {
		if args[0] == "ROLE" {
			return roleReply("master")
		}
		return reply
	})
}

func open(t *testing.T, url string) *source {
	t.Helper()
	src, err := newSource(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// openDeaf opens a source that does not listen to Sentinels, for tests that count what arrives.
func openDeaf(t *testing.T, url string) *source {
	t.Helper()
	src := open(t, url)
	src.listening = true
	return src
}

func connTo(t *testing.T, src *source) redis.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := src.Conn(ctx, "k")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// patience bounds each wait of a test. Nothing is measured with it: it only ends tests that hang.
const patience = 60 * time.Second

// receive receives from a channel, or fails the test.
func receive[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(patience):
		t.Fatalf("waited %v in vain for %s", patience, what)
	}
	return v
}

// eventually waits until ok holds.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !ok(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
