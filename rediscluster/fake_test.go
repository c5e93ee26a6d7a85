package rediscluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/fakeredis"
)

// startFake starts a node that answers as a test wants.
func startFake(t *testing.T, answer func(args []string) string) *fakeredis.Server {
	t.Helper()
	s, err := fakeredis.Start(answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// slotsReply says that one node serves all slots. A null host is what a node answers that does not know its name.
func slotsReply(host, port string) string {
	return fakeredis.Array(slotsEntry(0, 16383, host, port))
}

// slotsEntry is the part of such an answer about the slots of one node.
func slotsEntry(first, last int, host, port string) string {
	name := fakeredis.Null
	if host != "" {
		name = fakeredis.Bulk(host)
	}
	node := fakeredis.Array(name, ":"+port+"\r\n", fakeredis.Bulk("id"))
	return fakeredis.Array(fmt.Sprintf(":%d\r\n", first), fmt.Sprintf(":%d\r\n", last), node)
}

func isClusterSlots(args []string) bool {
	return len(args) == 2 && args[0] == "CLUSTER" && args[1] == "SLOTS"
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

func connTo(t *testing.T, src *source, key string) redis.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := src.Conn(ctx, key)
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
	for deadline := time.Now().Add(patience); !ok(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
