//go:build unix

// Package sourcetest has the tests that every source of connections must pass. It is for tests only.
package sourcetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
)

// Maker returns a source for the server at addr, over a client with at most poolSize connections in its pool. It is
// closed at the end of the test.
type Maker func(t testing.TB, addr string, poolSize int) delayed.Source

// poolSize is enough for every test here.
const poolSize = 10

// Run runs all tests with each maker: clients of one kind with different settings, by name.
func Run(t *testing.T, makers map[string]Maker) {
	store := buildStore(t)
	tests := map[string]func(*testing.T, Maker){
		"replies":                      testReplies,
		"errors":                       testErrors,
		"pipeline":                     testPipeline,
		"transaction is not passed on": testTransaction,
		"long wait":                    testLongWait,
		"canceled wait":                testCanceledWait,
		"canceled call":                testCanceledCall,
		"sent once":                    testSentOnce,
		"messages":                     testMessages,
		"discard":                      testDiscard,
		"used up":                      testUsedUp,
		"store":                        func(t *testing.T, open Maker) { testStore(t, store, open) },
		"worker":                       testWorker,
		"killed worker":                testKilledWorker,
	}
	for kind, open := range makers {
		for name, test := range tests {
			t.Run(kind+"/"+name, func(t *testing.T) {
				t.Parallel()
				test(t, open)
			})
		}
	}
}

// take takes a connection that is closed at the end of the test.
func take(t testing.TB, src delayed.Source, key string) redis.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	conn, err := src.Conn(ctx, key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// testReplies compares the replies to commands of all kinds with those that redigo returns.
func testReplies(t *testing.T, open Maker) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	conn, other := take(t, open(t, server.Addr(), poolSize), name), server.Dial(t)
	for _, cmd := range [][]any{
		{"PING"},
		{"SET", name, "1.5"},
		{"GET", name},
		{"GET", name + "none"},
		{"INCRBYFLOAT", name, "0.25"},
		{"DEL", name},
		{"SET", name, []byte("a\r\n\x00b")},
		{"GET", name},
		{"STRLEN", name},
		{"DEL", name},
		{"SET", name, 4.5e20},
		{"GET", name},
		{"SET", name, true},
		{"GET", name},
		{"SET", name, nil},
		{"GET", name},
		{"SET", name, int64(-7)},
		{"GET", name},
		{"DEL", name},
		{"HSET", name, "a", "1"},
		{"HGETALL", name},
		{"HMGET", name, "b", "none"},
		{"HGET", name, "a"},
		{"HKEYS", name},
		{"HGETALL", name + "none"},
		{"DEL", name},
		{"ZADD", name, "1.5", "a", "4000000000000", "b", "inf", "c", "-0.1", "d", "17", "e"},
		{"ZSCORE", name, "a"},
		{"ZRANGE", name, 0, -1, "WITHSCORES"},
		{"ZRANGE", name, 0, -1},
		{"ZRANGE", name + "none", 0, -1, "WITHSCORES"},
		{"ZRANGE", name, 0, 0, "WITHSCORES"},
		{"ZMSCORE", name, "a", "none", "b"},
		{"ZINCRBY", name, "2", "a"},
		{"ZPOPMIN", name},
		{"ZPOPMIN", name, 2},
		{"ZRANGEBYSCORE", name, "-inf", "+inf", "WITHSCORES"},
		{"ZSCORE", name, "none"},
		{"DEL", name},
		{"RPUSH", name, "x", "y"},
		{"LRANGE", name, 0, -1},
		{"LPOP", name},
		{"BLPOP", name, 1},
		{"BLPOP", name, 0.01},
		{"SADD", name, "x"},
		{"SMEMBERS", name},
		{"SISMEMBER", name, "x"},
		{"SSCAN", name, 0},
		{"TYPE", name},
		{"DEL", name},
		{"CONFIG", "GET", "maxmemory"},
		{"EXISTS", name},
		{"SCRIPT", "EXISTS", strings.Repeat("0", 40)},
		{"EVAL", "return {1, 'a', false, {ok='fine'}, {'b', {2.9, ''}}, redis.status_reply('x'), {}}", 0},
		{"EVAL", "return redis.call('ZADD', KEYS[1], '1.25', 'm')", 1, name},
		{"EVAL", "return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')", 1, name},
		{"EVAL", "return redis.call('ZSCORE', KEYS[1], 'm')", 1, name},
		{"DEL", name},
		{"EVAL", "return redis.pcall('GET')", 0},
		{"EVAL", "return {redis.pcall('GET'), 1}", 0},
		{"NONSENSE"},
		{"EVALSHA", strings.Repeat("0", 40), 0},
		{"ROLE"},
		{"PUBLISH", name, "m"},
		{"PTTL", name},
		{"WAIT", 0, 1},
	} {
		twin := make([]any, len(cmd))
		for i, arg := range cmd {
			if twin[i] = arg; reflect.DeepEqual(arg, name) {
				twin[i] = name + twinKey
			}
		}
		got, err := conn.Do(fmt.Sprint(cmd[0]), cmd[1:]...)
		want, wantErr := other.Do(fmt.Sprint(cmd[0]), twin[1:]...)
		if !reflect.DeepEqual(texts(got), texts(want)) || fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Errorf("%q: %#v, %v; redigo returns %#v, %v", cmd, got, err, want, wantErr)
		}
	}
}

// twinKey ends the key on which redigo does the same.
const twinKey = ":twin"

// texts prepares replies for comparison. Not every library tells simple strings from bulk strings.
func texts(reply any) any {
	switch r := reply.(type) {
	case []byte:
		if r != nil {
			return "text " + strings.TrimSuffix(string(r), twinKey)
		}
	case string:
		return "text " + r
	case []any:
		out := make([]any, len(r))
		for i := range r {
			out[i] = texts(r[i])
		}
		return out
	}
	return reply
}

// testErrors checks which errors leave a connection in order.
func testErrors(t *testing.T, open Maker) {
	server := redistest.Start(t)
	conn := take(t, open(t, server.Addr(), poolSize), "k")
	var answer redis.Error
	if _, err := conn.Do("LPUSH"); !errors.As(err, &answer) || !strings.HasPrefix(string(answer), "ERR wrong number") {
		t.Errorf("a wrong call: %v, expected the error of Redis", err)
	}
	if _, err := conn.Do("EVALSHA", strings.Repeat("0", 40), 0); !errors.As(err, &answer) ||
		!strings.HasPrefix(string(answer), "NOSCRIPT") {
		t.Errorf("an unknown script: %v, expected NOSCRIPT", err)
	}
	if err := conn.Err(); err != nil {
		t.Errorf("after errors that Redis answers: Err is %v, expected nil", err)
	}
	server.Kill(t)
	if _, err := conn.Do("PING"); err == nil || errors.As(err, &answer) {
		t.Errorf("a server that is gone: %v, expected an error of the network", err)
	}
	if conn.Err() == nil {
		t.Error("the connection is broken, and Err is nil")
	}
	if _, err := conn.Do("PING"); err == nil {
		t.Error("a broken connection answers")
	}
}

func testPipeline(t *testing.T, open Maker) {
	server := redistest.Shared(t)
	name := redistest.Name(t)
	conn := take(t, open(t, server.Addr(), poolSize), name)
	send := func(cmd string, args ...any) {
		t.Helper()
		if err := conn.Send(cmd, args...); err != nil {
			t.Fatal(err)
		}
	}
	send("SET", name, "1")
	send("LPUSH", name, "x")
	send("WAIT", 0, 10)
	if err := conn.Flush(); err != nil {
		t.Fatal(err)
	}
	if reply, err := redis.String(conn.Receive()); reply != "OK" || err != nil {
		t.Errorf("SET: %q, %v", reply, err)
	}
	var answer redis.Error
	if _, err := redis.ReceiveWithTimeout(conn, time.Second); !errors.As(err, &answer) {
		t.Errorf("LPUSH on a string: %v, expected WRONGTYPE", err)
	}
	if n, err := redis.Int(redis.ReceiveContext(conn, t.Context())); n != 0 || err != nil {
		t.Errorf("WAIT: %d, %v", n, err)
	}
	send("INCR", name)
	if n, err := redis.Int(conn.Do("INCR", name)); n != 3 || err != nil {
		t.Errorf("Do behind Send: %d, %v, expected its own reply", n, err)
	}
	send("INCR", name)
	send("DEL", name)
	if replies, err := redis.Ints(conn.Do("")); !reflect.DeepEqual(replies, []int{4, 1}) || err != nil {
		t.Errorf("Do without a command: %v, %v, expected all replies", replies, err)
	}
	send("MULTI")
	send("SET", name, "1")
	replies, err := redis.Values(conn.Do("EXEC"))
	if len(replies) != 1 || err != nil {
		t.Errorf("EXEC: %q, %v", replies, err)
	}
	server.Do(t, "DEL", name)
}

// testTransaction leaves a transaction open: who gets the next connection must not be in it.
func testTransaction(t *testing.T, open Maker) {
	name := redistest.Name(t)
	src := open(t, redistest.Shared(t).Addr(), 1)
	conn := take(t, src, name)
	if _, err := conn.Do("MULTI"); err != nil {
		t.Fatal(err)
	}
	conn.Close()
	if n, err := redis.Int(take(t, src, name).Do("EXISTS", name)); n != 0 || err != nil {
		t.Errorf("the next user of the pool: %d, %v, expected no transaction", n, err)
	}
}

// testLongWait blocks for longer than clients wait for ordinary replies.
func testLongWait(t *testing.T, open Maker) {
	name := redistest.Name(t)
	conn := take(t, open(t, redistest.Shared(t).Addr(), poolSize), name)
	if reply, err := redis.DoWithTimeout(conn, 20*time.Second, "BLPOP", name, 6); reply != nil || err != nil {
		t.Errorf("BLPOP for 6 s: %v, %v, expected nil", reply, err)
	}
	if _, err := conn.Do("PING"); err != nil {
		t.Errorf("PING after it: %v", err)
	}
}

// testCanceledWait cancels a wait: it ends at once, and takes no element that comes later.
func testCanceledWait(t *testing.T, open Maker) {
	server := redistest.Start(t)
	b := redistest.NewBench(t, server)
	src := open(t, server.Addr(), poolSize)
	conn := take(t, src, b.Name)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() {
		_, err := redis.DoContext(conn, ctx, "BLPOP", b.Name, 0)
		result <- err
	}()
	b.Until("Redis holds the wait", func() bool { return blocked(t, server) == 1 })
	cancel()
	if err := redistest.Await(b, "the wait ends", result); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled wait: %v, expected context.Canceled", err)
	}
	if conn.Err() == nil {
		t.Error("a wait was canceled, and Err is nil")
	}
	conn.Close()
	b.Until("Redis has forgotten the wait", func() bool { return blocked(t, server) == 0 })
	b.Do("RPUSH", b.Name, "x")
	if n := b.Int("LLEN", b.Name); n != 1 {
		t.Errorf("%d elements, expected that the canceled wait has taken none", n)
	}
	if _, err := take(t, src, b.Name).Do("PING"); err != nil {
		t.Errorf("the next connection: %v", err)
	}
}

// blocked returns how many clients wait.
func blocked(t testing.TB, server *redistest.Server) int {
	t.Helper()
	info, err := redis.String(server.Do(t, "INFO", "clients"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var n int
	for line := range strings.Lines(info) {
		if _, err := fmt.Sscanf(line, "blocked_clients:%d", &n); err == nil {
			break
		}
	}
	return n
}

// testCanceledCall cancels calls whose replies come late: nobody else may get those replies.
func testCanceledCall(t *testing.T, open Maker) {
	server := redistest.Shared(t)
	proxy := faultnet.NewProxy(t, server.Addr())
	b := redistest.NewBench(t, server)
	src := open(t, proxy.Addr(), poolSize)
	for range poolSize / 2 {
		conn, second := take(t, src, b.Name), take(t, src, b.Name)
		for _, c := range []redis.Conn{conn, second} {
			if _, err := c.Do("PING"); err != nil {
				t.Fatal(err)
			}
		}
		proxy.Hold()
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, err := redis.DoContext(conn, ctx, "ECHO", "late")
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || conn.Err() == nil {
			t.Errorf("a call whose time is over: %v, then Err %v", err, conn.Err())
		}
		_, err = redis.DoWithTimeout(second, 20*time.Millisecond, "ECHO", "late")
		if err == nil || second.Err() == nil {
			t.Errorf("a call with a time-out: %v, then Err %v", err, second.Err())
		}
		conn.Close()
		second.Close()
		proxy.Heal()
		b.Until("connections answer again", func() bool {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			conn, err := src.Conn(ctx, b.Name)
			if err != nil {
				return false
			}
			defer conn.Close()
			reply, err := redis.String(redis.DoContext(conn, ctx, "ECHO", "prompt"))
			if err == nil && reply != "prompt" {
				t.Fatalf("the reply is %q, which belongs to another call", reply)
			}
			return err == nil
		})
	}
}

// testSentOnce loses replies: the command must not be sent again.
func testSentOnce(t *testing.T, open Maker) {
	server := redistest.Shared(t)
	proxy := faultnet.NewProxy(t, server.Addr())
	b := redistest.NewBench(t, server)
	src := open(t, proxy.Addr(), poolSize)
	calls := map[string]func(conn redis.Conn) error{
		"Do": func(c redis.Conn) error { _, err := c.Do("INCR", b.Name); return err },
		"DoWithTimeout": func(c redis.Conn) error {
			_, err := redis.DoWithTimeout(c, 5*time.Second, "INCR", b.Name)
			return err
		},
		"DoContext": func(c redis.Conn) error {
			_, err := redis.DoContext(c, t.Context(), "INCR", b.Name)
			return err
		},
		"pipeline": func(c redis.Conn) error {
			if err := errors.Join(c.Send("INCR", b.Name), c.Send("PING"), c.Flush()); err != nil {
				return err
			}
			_, err := c.Receive()
			return err
		},
		"blocking": func(c redis.Conn) error {
			server.Do(t, "RPUSH", b.Name+"l", 1, 2, 3)
			server.Do(t, "INCR", b.Name)
			_, err := redis.DoContext(c, t.Context(), "BLPOP", b.Name+"l", 5)
			if n := server.Do(t, "LLEN", b.Name+"l"); n != int64(2) {
				t.Errorf("BLPOP has left %v of 3 elements, expected 2", n)
			}
			server.Do(t, "DEL", b.Name+"l")
			return err
		},
	}
	for name, call := range calls {
		server.Do(t, "DEL", b.Name)
		conn := take(t, src, b.Name)
		if _, err := conn.Do("PING"); err != nil {
			t.Fatal(err)
		}
		proxy.SetPlan(faultnet.Once(faultnet.DropReply, func(request []byte) bool {
			return strings.Contains(string(request), "INCR") || strings.Contains(string(request), "BLPOP")
		}), 0)
		err := call(conn)
		var answer redis.Error
		if err == nil || errors.As(err, &answer) {
			t.Errorf("%s: its reply was lost, and it returns %v", name, err)
		}
		if n := b.Int("GET", b.Name); n != 1 {
			t.Errorf("%s: Redis has carried it out %d times, expected once", name, n)
		}
		if conn.Err() == nil {
			t.Errorf("%s: Err is nil", name)
		}
		conn.Close()
		proxy.SetPlan(nil, 0)
	}
	server.Do(t, "DEL", b.Name)
}

func testMessages(t *testing.T, open Maker) {
	server := redistest.Shared(t)
	b := redistest.NewBench(t, server)
	conn := take(t, open(t, server.Addr(), poolSize), b.Name)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got, end, start := make(chan string, 100), make(chan error, 1), make(chan struct{})
	go func() {
		<-start
		for {
			reply, err := redis.Values(redis.ReceiveContext(conn, ctx))
			if err != nil {
				end <- err
				return
			}
			got <- strings.TrimSpace(fmt.Sprintln(show(reply)...))
		}
	}()
	send := func(cmd string, args ...any) {
		t.Helper()
		if err := errors.Join(conn.Send(cmd, args...), conn.Flush()); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want string) {
		t.Helper()
		if m := redistest.Await(b, want, got); m != want {
			t.Fatalf("received %s, expected %s", m, want)
		}
	}
	send("SUBSCRIBE", b.Name, b.Name+"2")
	close(start)
	expect("subscribe " + b.Name + " 1")
	expect("subscribe " + b.Name + "2 2")
	send("PING")
	expect("pong")
	server.Do(t, "PUBLISH", b.Name, "hello")
	expect("message " + b.Name + " hello")
	send("UNSUBSCRIBE", b.Name)
	expect("unsubscribe " + b.Name + " 1")
	server.Do(t, "PUBLISH", b.Name, "lost")
	server.Do(t, "PUBLISH", b.Name+"2", "hello")
	expect("message " + b.Name + "2 hello")
	send("SUBSCRIBE", b.Name+"2") // again: the confirmation comes again
	expect("subscribe " + b.Name + "2 1")
	cancel()
	if err := redistest.Await(b, "the reader ends", end); !errors.Is(err, context.Canceled) {
		t.Errorf("Receive: %v, expected context.Canceled", err)
	}
	conn.Close()
	b.Until("the subscription is gone", func() bool {
		reply, err := redis.Values(server.Do(t, "PUBSUB", "NUMSUB", b.Name+"2"), nil)
		return err == nil && reply[1] == int64(0)
	})
}

func show(reply []any) []any {
	for i, e := range reply {
		if text, ok := e.([]byte); ok {
			reply[i] = string(text)
		}
	}
	return reply
}
