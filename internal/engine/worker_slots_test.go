package engine

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
)

// twoShards is a source of two servers: keys with {b} are on the second.
type twoShards struct{ pools [2]*redis.Pool }

func (s *twoShards) Slot(key string) int {
	if strings.Contains(key, "{b}") {
		return 1
	}
	return 0
}

func (s *twoShards) Conn(ctx context.Context, key string) (redis.Conn, error) {
	return s.pools[s.Slot(key)].GetContext(ctx)
}

func (s *twoShards) Close() error { return nil }

type shards struct {
	*bench
	servers [2]*redistest.Server
	rdb2    *Redis
	name2   string // on the second shard
}

func newShards(t *testing.T) *shards {
	t.Helper()
	a, c := redistest.Start(t), redistest.Start(t)
	src := &twoShards{pools: [2]*redis.Pool{a.Pool(t), c.Pool(t)}}
	b := newBenchOn(t, a)
	rdb := FromSource(src)
	return &shards{bench: b, servers: [2]*redistest.Server{a, c}, rdb2: rdb, name2: b.Name + "{b}"}
}

func testOtherShardGoesOn(t *testing.T, fail, heal func(*redistest.Server)) {
	t.Helper()
	s := newShards(t)
	ran := make(chan int, 1000)
	f := s.fn("f", func(i int) { ran <- i })
	cfg := s.config()
	cfg.Queues = Strict{s.Name, s.name2} // the first shard is the one that fails
	w := s.workWith(s.rdb2, cfg, f)
	q2 := NewQueue(s.name2, s.rdb2)
	s.delayWith(q2, f, 0)
	await(s.bench, "the first task", ran)
	fail(s.servers[0])
	<-time.After(100 * time.Millisecond)
	n, deadline := 0, time.After(patience)
	start := time.Now()
loop:
	for i := range 20 {
		s.delayWith(q2, f, i)
		select {
		case <-ran:
			n++
		case <-deadline:
			break loop
		}
	}
	var backlog []*Task
	for i := range 400 {
		backlog = append(backlog, Call(f, i))
	}
	if _, err := q2.DelayMany(t.Context(), backlog...); err != nil {
		t.Fatal(err)
	}
backlog:
	for range backlog {
		select {
		case <-ran:
		case <-deadline:
			t.Error("a backlog of 400 tasks on the living shard is not done in time")
			break backlog
		}
	}
	t.Logf("%d of 20 tasks, one after the other, in %v", n, time.Since(start))
	if n < 20 {
		t.Errorf("%d of 20 tasks of the living shard ran while the other shard was away", n)
	} else if took := time.Since(start); took > 10*time.Second {
		limits.Errorf(t, "the tasks of the living shard took %v while the other shard was away", took)
	}
	heal(s.servers[0])
	if err := w.stop(); err != nil {
		t.Log(err)
	}
}

func TestOtherShardGoesOnWhileOneIsDown(t *testing.T) {
	t.Parallel()
	testOtherShardGoesOn(t, func(s *redistest.Server) { s.Kill(t) }, func(s *redistest.Server) { s.Restart(t) })
}

func TestOtherShardGoesOnWhileOneIsFrozen(t *testing.T) {
	t.Parallel()
	testOtherShardGoesOn(t, func(s *redistest.Server) { s.Pause(t) }, func(s *redistest.Server) { s.Resume(t) })
}

// A task that waits for the heartbeat of its shard does not ask for it again with each answer to another shard's
// heartbeat.
func TestHeartbeatOfOneShardIsNotDrivenByAnother(t *testing.T) {
	t.Parallel()
	s := newShards(t)
	entered, leave := make(chan int, 100), make(chan struct{})
	f := s.fn("f", func(i int) { entered <- i; <-leave })
	cfg := s.config()
	cfg.Concurrency, cfg.Prefetch = 2, 4
	cfg.Queues = Strict{s.Name, s.name2}
	w := s.workWith(s.rdb2, cfg, f)
	q1 := NewQueue(s.Name, s.rdb2)
	for i := range 5 {
		s.delayWith(q1, f, i)
	}
	await(s.bench, "a task", entered)
	await(s.bench, "a task", entered)
	s.Until("tasks are claimed ahead",
		func() bool {
			w.exec.Mu.Lock()
			defer w.exec.Mu.Unlock()
			return len(w.exec.Ready) == 3
		})
	s.servers[0].Pause(t)
	<-time.After(2 * time.Second) // a heartbeat's life
	close(leave)
	before := s.servers[1].CommandStats(t)
	<-time.After(2 * time.Second)
	sent := s.servers[1].CommandStats(t).Since(before)
	t.Log(sent.String())
	if n := sent["evalsha"]; n > 200 {
		t.Errorf("%d scripts within two seconds on the shard that is idle", n)
	}
	s.servers[0].Resume(t)
}
