package delayed_test

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestCountersFollowRedis: counters belong to the day by Redis's clock, whatever the clocks of producers show.
func TestCountersFollowRedis(t *testing.T) {
	b := newBench(t)
	const ahead = 72 * time.Hour
	script := redisstore.Scripts["look"]
	rdb := delayed.FromSource(redistest.Intercept(b.src,
		func(_ string, args []any, send func() (any, error)) (any, error) {
			reply, err := send()
			if err == nil && len(args) > 0 && (args[0] == script.Sha || args[0] == script.Source) {
				values, _ := redis.Values(reply, nil)
				now, _ := redis.Int64(values[0], nil)
				values[0] = now + ahead.Milliseconds()
			}
			return reply, err
		}))
	ref := b.delayWith(delayed.NewQueue(b.Name, rdb).With(delayed.In(time.Hour)), b.fn("f", func() {}))
	if err := ref.Cancel(t.Context()); err != nil {
		t.Fatal(err)
	}
	days, err := redis.Strings(b.Conn.Do("KEYS", b.Name+"_stats:*"))
	b.Must(err)
	today := "_stats:" + time.UnixMilli(redistest.Time(t, b.Conn)).Add(ahead).UTC().Format("20060102")
	if len(days) != 1 || days[0] != b.Name+today || b.Int("HGET", b.Name+today, "canceled") != 1 {
		t.Errorf("counters on %v, expected one cancellation on %s", days, today)
	}
}
