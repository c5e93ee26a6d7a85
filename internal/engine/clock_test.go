package engine

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// wrongDay makes a store believe that Redis's clock is days ahead, as if the clock of this machine were wrong.
func wrongDay(s *redisstore.Store) *redisstore.Store {
	s.RedisTime(time.Now().Add(72 * time.Hour))
	return s
}

// TestWorkersCountersFollowRedis: counters belong to the day by Redis's clock, whatever the clocks of workers show.
func TestWorkersCountersFollowRedis(t *testing.T) {
	b := newBench(t)
	if have, want := wrongDay(redisstore.NewStore(b.rdb.loops, "", b.Name)).StatsKey(),
		b.q.store.StatsKey(); have == want {
		t.Fatalf("counters of %s three days later, too", want)
	}
	ran := make(chan struct{})
	f := b.fn("f", func() { close(ran) })
	cfg := b.config()
	cfg.NoSweeper = true
	w, err := NewWorker(b.rdb, cfg)
	b.Must(err)
	b.Must(w.Register([]*Function{f}, nil))
	wrongDay(w.lanes[0].Store)
	running := b.start(w)
	b.delay(f)
	await(b, "the task", ran)
	b.Idle()
	running.mustStop()
	days, err := redis.Strings(b.Conn.Do("KEYS", b.Name+"_stats:*"))
	b.Must(err)
	today := b.Name + "_stats:" + time.UnixMilli(redistest.Time(t, b.Conn)).UTC().Format("20060102")
	if len(days) != 1 || days[0] != today || b.counters()["processed"] != 1 {
		t.Errorf("%v on %v", b.counters(), days)
	}
}
