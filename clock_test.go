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

// TestCountersFollowRedis: the day that something is counted on is Redis's, whatever the clocks of producers say.
func TestCountersFollowRedis(t *testing.T) {
	b := newBench(t)
	if have, want := wrongDay(redisstore.NewStore(b.rdb.loops, "", b.Name)).StatsKey(),
		b.q.store.StatsKey(); have == want {
		t.Fatalf("counters of %s three days later, too", want)
	}
	wrongDay(b.q.store)
	ref := b.delayWith(b.q.With(In(time.Hour)), b.fn("f", func() {}))
	if err := ref.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	days, err := redis.Strings(b.Conn.Do("KEYS", b.Name+"_stats:*"))
	b.Must(err)
	today := b.Name + "_stats:" + time.UnixMilli(redistest.Time(t, b.Conn)).UTC().Format("20060102")
	if len(days) != 1 || days[0] != today || b.counters()["canceled"] != 1 {
		t.Errorf("%v on %v", b.counters(), days)
	}
}
