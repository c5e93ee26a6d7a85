package delayed

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// wrongDay makes a store believe that Redis's clock is days ahead of what it is, as the clock of this machine may be.
func wrongDay(s *redisstore.Store) *redisstore.Store {
	s.RedisTime(time.Now().Add(72 * time.Hour))
	return s
}

// TestCountersFollowRedis: the day that something is counted on is Redis's, whatever the clocks of workers and
// producers say.
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
	wrongDay(w.engine.Lanes[0].Store)
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
}
