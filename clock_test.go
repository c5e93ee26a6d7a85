package delayed

import (
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

// wrongDay makes a store believe that Redis's clock is days ahead of what it is, as the clock of this machine may be.
func wrongDay(s *redisstore.Store) *redisstore.Store {
	s.RedisTime(time.Now().Add(72 * time.Hour))
	return s
}

// TestCountersFollowRedis: the day that something is counted on is Redis's, whatever the clocks of workers, sweepers
// and producers say.
func TestCountersFollowRedis(t *testing.T) {
	b := newBench(t)
	if have, want := wrongDay(redisstore.NewStore(b.rdb.loops, "", b.Name)).StatsKey(),
		b.q.store.StatsKey(); have == want {
		t.Fatalf("counters of %s three days later, too", want)
	}
	counted := func(what, counter string, n int) {
		t.Helper()
		days, err := redis.Strings(b.Conn.Do("KEYS", b.Name+"_stats:*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, day := range days {
			if day != b.Name+"_stats:"+time.UnixMilli(redistest.Time(t, b.Conn)).UTC().Format("20060102") {
				t.Fatalf("%s counts on %v", what, days)
			}
		}
		if len(days) != 1 || b.counters()[counter] != n {
			t.Errorf("%s: %v on %v", what, b.counters(), days)
		}
	}

	ran := make(chan struct{})
	f := b.fn("f", func() { close(ran) })
	cfg := b.config()
	cfg.NoSweeper = true
	w, err := NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	wrongDay(w.engine.lanes[0].store)
	running := b.start(w)
	b.delay(f)
	await(b, "the task", ran)
	b.Idle()
	running.mustStop()
	counted("a worker", "processed", 1)

	wrongDay(b.q.store)
	ref := b.delayWith(b.q.With(In(time.Hour)), f)
	if err := ref.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	counted("a producer", "canceled", 1)

	b.Do("ZADD", b.Name+"_archived", past, "old")
	b.Do("HSET", b.Name+"_tasks", "old", "m")
	g := b.sweepGroup(time.Minute, time.Minute)
	g.server = ""
	wrongDay(b.q.store)
	for range trimEvery {
		b.pass(g)
	}
	counted("a sweeper", "trimmed", 1)
}

// TestDeathsFollowRedis: when a task has died, and whether its deaths have lapsed, is told by Redis's clock, also if
// the sweeper's is wrong by an hour.
func TestDeathsFollowRedis(t *testing.T) {
	for name, tt := range map[string]struct {
		skew, ago time.Duration
		deaths    int
	}{
		"its clock is slow": {time.Hour, lifecycle.DeathLife + time.Hour/2, 1},
		"its clock is fast": {-time.Hour, lifecycle.DeathLife - time.Hour/2, 3},
	} {
		s := redisstore.NewStore(nil, "", "q")
		s.RedisTime(time.Now().Add(tt.skew))
		task := Call(strings.ToUpper, "a")
		task.msg.Extend()
		task.msg.Meta.ID, task.msg.Meta.Deaths = wire.NewTaskID(), 2
		task.msg.Meta.DiedAt = s.Now().Add(-tt.ago).UnixMilli()
		g := newSweepGroup(nil, "w", time.Minute, newContact(time.Minute), loop.NewJournal((&logText{}).logger()))
		before := s.Now().UnixMilli()
		v := g.verdicts(s, []redisstore.Claimed{{Token: "1-1", Message: task.msg.Append(nil)}}, redisstore.Death{})[0]
		msg, err := wire.Parse(v.Renewed, wire.WorkerLimits)
		if err != nil {
			t.Fatal(err)
		}
		if at := msg.Meta.DiedAt; at < before || at > s.Now().UnixMilli() || msg.Meta.Deaths != tt.deaths {
			t.Errorf("%s: died at %d, expected %d or just after; %d deaths, expected %d",
				name, at, before, msg.Meta.Deaths, tt.deaths)
		}
	}
}
