package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestDialUnderstandsURLs(t *testing.T) {
	for url, want := range map[string]string{
		"redis://localhost":                    "tcp localhost:6379",
		"redis://:secret@h:1/3":                "tcp h:1",
		"rediss://u:secret@[::1]:7":            "tcp [::1]:7",
		"unix:///run/redis.sock?db=2":          "unix /run/redis.sock",
		"redis://a:1,b:2":                      "error rediscluster",
		"redis://a:1?master=m":                 "error redissentinel",
		"http://h":                             "error scheme",
		"redis://h/x":                          "error database",
		"redis://h/-1":                         "error database",
		"redis://u:secret@h:port":              "error port",
		"://":                                  "error scheme",
		"redis+sentinel://u:secret@h/0":        "error scheme",
		"redis://user:secret@a,b,c:1/0":        "error rediscluster",
		"redis://user:sec%ret@h":               "error malformed",
		"redis://127.0.0.1:6379/15":            "tcp 127.0.0.1:6379",
		"redis://[fe80::1]":                    "tcp [fe80::1]:6379",
		"unix:///var/run/redis/redis.sock":     "unix /var/run/redis/redis.sock",
		"unix:///var/run/redis/redis.sock?db=": "unix /var/run/redis/redis.sock",
		"unix:///r.sock?db=x":                  "error database",
		"unix://":                              "error malformed",
		"redis://h?x=1":                        "error parameter",
	} {
		network, addr, _, _, err := redisstore.ParseURL(url)
		got := fmt.Sprint(network, " ", addr)
		if err != nil {
			got = "error " + err.Error()
		}
		if !strings.HasPrefix(got, strings.SplitAfter(want, " ")[0]) ||
			!strings.Contains(got, strings.SplitN(want, " ", 2)[1]) {
			t.Errorf("%s: %s, expected %s", url, got, want)
		}
		if strings.Contains(got, "secret") {
			t.Errorf("%s: the error shows the password: %s", url, got)
		}
	}
}

func TestHandle(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	if err := b.rdb.Ping(ctx); err != nil {
		t.Error(err)
	}
	rdb, _ := delayed.Dial(b.Server.URL())
	if err := rdb.Close(); err != nil {
		t.Error(err)
	}
	if _, err := delayed.NewQueue(b.Name, rdb).Delay(plainForTest, 1); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := rdb.Ping(ctx); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("Ping after Close: %v", err)
	}
	rdb, _ = delayed.Dial("redis://127.0.0.1:1")
	defer rdb.Close()
	if err := rdb.Ping(ctx); err == nil {
		t.Error("Ping of nobody")
	}
	if _, err := delayed.NewQueue(b.Name, rdb).Delay(plainForTest, 1); err == nil ||
		errors.Is(err, delayed.ErrUnknown) {
		t.Errorf("nobody listens: %v: nothing was sent, so nothing is unknown", err)
	}
}

func TestProducersShareABoundedNumberOfConnections(t *testing.T) {
	b := newBench(t)
	src := &countingSource{Source: b.src, hold: make(chan struct{})}
	rdb := delayed.FromSource(src)
	queues := make([]*delayed.Queue, 3*redisstore.CallerConns) // the calls of one queue are shared
	var group sync.WaitGroup
	for i := range queues {
		queues[i] = delayed.NewQueue(b.Name+"."+strconv.Itoa(i), rdb)
		for n := range 3 { // alone, with others, and in a call for many
			group.Go(func() {
				tasks := []*delayed.Task{delayed.Call(plainForTest, n), delayed.Call(plainForTest, n)}
				if n < 2 {
					tasks = tasks[:1]
					if _, err := queues[i].Enqueue(t.Context(), tasks[0]); err != nil {
						t.Error(err)
					}
				} else if _, err := queues[i].DelayMany(t.Context(), tasks...); err != nil {
					t.Error(err)
				}
			})
		}
	}
	b.Until("all places are taken", func() bool { return src.now.Load() == redisstore.CallerConns })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := b.q.DelayContext(ctx, plainForTest, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	close(src.hold)
	group.Wait()
	if n := src.most.Load(); n > redisstore.CallerConns {
		t.Errorf("%d connections at once", n)
	}
	for _, q := range queues {
		if n, err := q.Len(t.Context()); n != 4 || err != nil {
			t.Errorf("%s has %d tasks, %v", q.Name(), n, err)
		}
	}
}

// TestPoolUsedUp takes all connections of a pool of the program: calls say that the pool is why they fail, whether the
// pool waits or not.
func TestPoolUsedUp(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	for _, wait := range []bool{false, true} {
		pool := server.Pool(t)
		pool.MaxActive, pool.Wait = 2, wait
		rdb := delayed.FromPool(pool)
		q := delayed.NewQueue(redistest.Name(t), rdb)
		taken := []redis.Conn{pool.Get(), pool.Get()}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := q.Len(ctx)
		cancel()
		const want = "the pool has all its 2 connections in use: expected a free one: raise its MaxActive"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Wait %t: %v, expected %q", wait, err, want)
		}
		if cause := context.DeadlineExceeded; wait && !errors.Is(err, cause) {
			t.Errorf("%v, expected that it wraps %v", err, cause)
		}
		taken[0].Close()
		if _, err := q.Len(t.Context()); err != nil {
			t.Errorf("Wait %t: a connection is free: %v", wait, err)
		}
		// A context that ends for another reason says nothing about the pool.
		canceled, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := q.Len(canceled); err == nil || strings.Contains(err.Error(), "the pool") {
			t.Errorf("Wait %t: a cancelled call: %v", wait, err)
		}
	}
}
