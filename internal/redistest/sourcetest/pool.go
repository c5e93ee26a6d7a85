//go:build unix

package sourcetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

// connections returns how many clients the server has.
func connections(t testing.TB, server *redistest.Server) int {
	t.Helper()
	list, err := redis.String(server.Do(t, "CLIENT", "LIST", "TYPE", "normal"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(list, "\n") - 1 // without the one that asks
}

// testDiscard checks that Close gives connections back to the client's pool, and Discard does not.
func testDiscard(t *testing.T, open Maker) {
	server := redistest.Start(t)
	b := redistest.NewBench(t, server)
	src := open(t, server.Addr(), 1)
	id := func(conn redis.Conn) int64 {
		t.Helper()
		id, err := redis.Int64(conn.Do("CLIENT", "ID"))
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	conn := take(t, src, "k")
	first := id(conn)
	conn.Close()
	conn = take(t, src, "k")
	if second := id(conn); second != first {
		t.Errorf("connection %d behind %d, expected that Close gives it back to the pool", second, first)
	}
	before := connections(t, server)
	discarder, ok := conn.(interface{ Discard() error })
	if !ok {
		t.Fatalf("a %T has no method Discard() error", conn)
	}
	if err := discarder.Discard(); err != nil {
		t.Errorf("Discard: %v", err)
	}
	b.Until("the server has lost the connection", func() bool { return connections(t, server) < before })
	if _, err := conn.Do("PING"); err == nil || conn.Err() == nil {
		t.Errorf("a discarded connection: PING returns %v, Err %v", err, conn.Err())
	}
	if err := conn.Close(); err != nil {
		t.Errorf("Close behind Discard: %v", err)
	}
	conn = take(t, src, "k")
	if third := id(conn); third == first {
		t.Error("the discarded connection came back")
	}
	// A call is canceled, so its reply is to come.
	third := id(conn)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	const slow = "local function ms() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end " +
		"local start = ms() while ms() - start < 200 do end return 'late'"
	if _, err := redis.DoContext(conn, ctx, "EVAL", slow, 0); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a slow script: %v, expected that its context ends", err)
	}
	conn.Close()
	conn = take(t, src, "k")
	if fourth := id(conn); fourth == third {
		t.Error("the connection of a canceled call came back")
	}
	// An answer that only a replica gives means that the pool must not hand the connection out again.
	server.Do(t, "REPLICAOF", "127.0.0.1", "1")
	if _, err := conn.Do("SET", "k", "v"); err == nil || !strings.HasPrefix(err.Error(), "READONLY") {
		t.Errorf("SET on a replica: %v", err)
	}
	if conn.Err() == nil {
		t.Error("the server is a replica, and Err is nil")
	}
	last := newest(t, server)
	conn.Close()
	server.Do(t, "REPLICAOF", "NO", "ONE")
	if now := id(take(t, src, "k")); now < last {
		t.Error("the connection to a replica came back")
	}
}

// newest returns the id of a new connection.
func newest(t testing.TB, server *redistest.Server) int64 {
	t.Helper()
	id, err := redis.Int64(server.Do(t, "CLIENT", "ID"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// testUsedUp takes all connections: the error of the next one says what to do, and one that is given back is usable.
func testUsedUp(t *testing.T, open Maker) {
	src := open(t, redistest.Shared(t).Addr(), 2)
	conns := []redis.Conn{take(t, src, "k"), take(t, src, "k")}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := src.Conn(ctx, "k")
	if err == nil || !strings.Contains(err.Error(), "connections in use") ||
		!strings.Contains(err.Error(), "raise ") {
		t.Errorf("the third connection of two: %v, expected an error that names the pool and what to raise", err)
	}
	for _, conn := range conns {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	for range 2 {
		if _, err := take(t, src, "k").Do("PING"); err != nil {
			t.Errorf("after the others were given back: %v", err)
		}
	}
}
