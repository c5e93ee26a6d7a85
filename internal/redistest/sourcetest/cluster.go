//go:build unix

package sourcetest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// RunCluster runs the tests of sources for a cluster. open returns a source over a client that knows the addresses of
// all nodes. It is closed at the end of the test.
func RunCluster(t *testing.T, open func(t testing.TB, addrs []string) delayed.Source) {
	cluster := redistest.StartCluster(t)
	t.Run("slots", func(t *testing.T) {
		src := open(t, cluster.Addrs())
		if a, b := src.Slot("{x}a"), src.Slot("{x}b"); a != b || src.Slot("123456789") != 12739 {
			t.Errorf("slots %d, %d and %d, expected the same twice and 12739", a, b, src.Slot("123456789"))
		}
	})
	t.Run("moving slot", func(t *testing.T) { testMovingSlot(t, cluster, open(t, cluster.Addrs())) })
	t.Run("worker", func(t *testing.T) { testClusterWorker(t, cluster, open(t, cluster.Addrs())) })
}

// testMovingSlot moves a slot to another node while connections for it are in use.
func testMovingSlot(t *testing.T, cluster *redistest.Cluster, src delayed.Source) {
	const key, list = "{moves}n", "{moves}list"
	from := cluster.NodeOf(t, key)
	to := cluster.NodeOf(t, "{others}")
	if from == to {
		t.Fatal("expected keys of two nodes")
	}
	slot := src.Slot(key)
	id := func(s *redistest.Server) string {
		id, err := redis.String(s.Do(t, "CLUSTER", "MYID"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	idle, busy, waits := take(t, src, key), take(t, src, key), take(t, src, key)
	expect := func(what string, want int, reply any, err error) {
		t.Helper()
		if n, err := redis.Int(reply, err); n != want || err != nil {
			t.Errorf("%s: %d, %v, expected %d", what, n, err, want)
		}
	}
	do := func(c redis.Conn, cmd string, args ...any) (any, error) {
		return redis.DoContext(c, t.Context(), cmd, args...)
	}
	reply, err := do(busy, "INCR", key)
	expect("before it moves", 1, reply, err)
	to.Do(t, "CLUSTER", "SETSLOT", slot, "IMPORTING", id(from))
	from.Do(t, "CLUSTER", "SETSLOT", slot, "MIGRATING", id(to))
	reply, err = do(busy, "INCR", key)
	expect("a key that has not moved", 2, reply, err)
	host, port, _ := strings.Cut(to.Addr(), ":")
	from.Do(t, "MIGRATE", host, port, key, 0, 5000)
	reply, err = do(busy, "INCR", key)
	expect("a key that has moved (ASK)", 3, reply, err)
	if err := errors.Join(busy.Send("INCR", key), busy.Send("WAIT", 0, 10), busy.Flush()); err != nil {
		t.Fatal(err)
	}
	reply, err = busy.Receive()
	expect("in a pipeline (ASK)", 4, reply, err)
	if _, err = busy.Receive(); err != nil && !strings.Contains(err.Error(), "WAIT") {
		t.Errorf("WAIT behind it: %v", err)
	}
	from.Do(t, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	to.Do(t, "CLUSTER", "SETSLOT", slot, "NODE", id(to))
	reply, err = do(busy, "INCR", key)
	expect("a slot that has moved (MOVED)", 5, reply, err)
	reply, err = do(idle, "INCR", key)
	expect("on another connection", 6, reply, err)
	reply, err = do(idle, "INCR", key)
	expect("there again", 7, reply, err)
	reply, err = do(take(t, src, key), "INCR", key)
	expect("on a new connection", 8, reply, err)
	reply, err = do(idle, "RPUSH", list, "x")
	expect("a list", 1, reply, err)
	values, err := redis.Strings(do(waits, "BLPOP", list, 1))
	if err != nil || len(values) != 2 {
		t.Errorf("a wait where the slot was: %q, %v", values, err)
	}
	var answer redis.Error
	_, err = do(idle, "MGET", key, "{others}")
	if !errors.As(err, &answer) || !strings.HasPrefix(err.Error(), "the cluster answers: CROSSSLOT") {
		t.Errorf("keys of two slots: %v", err)
	}
}

// testClusterWorker runs a worker on queues of several slots.
func testClusterWorker(t *testing.T, cluster *redistest.Cluster, src delayed.Source) {
	const each = 500
	b := redistest.NewBench(t, cluster.NodeOf(t, "{a}"))
	rdb := delayed.FromSource(src)
	t.Cleanup(func() { rdb.Close() })
	if err := rdb.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := rdb.Check(t.Context()); err != nil {
		t.Errorf("Check: %v", err)
	}
	queues := delayed.Strict{"{a}", "{b}", "{c}", "{d}"}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: queues, Concurrency: 8, Logger: new(redistest.Log).Logger(),
	})
	b.Must(err)
	b.Must(w.Register(Mark))
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	var wg sync.WaitGroup
	for _, name := range queues {
		wg.Go(func() {
			q := delayed.NewQueue(name, rdb)
			for i := range each {
				if _, err := q.DelayContext(t.Context(), Mark, name, i); err != nil {
					t.Errorf("enqueueing: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	for _, name := range queues {
		b.Until("all tasks of "+name+" have run", func() bool { tasks, _ := ran(name); return tasks == each })
	}
	cancel()
	if err := redistest.Await(b, "the worker stops", result); err != nil {
		t.Errorf("Run: %v", err)
	}
}
