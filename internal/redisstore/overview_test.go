package redisstore

import (
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// TestOverviewsCountTheDayOfRedis looks at queues with clocks that are days off: Redis says which day it is.
func TestOverviewsCountTheDayOfRedis(t *testing.T) {
	t.Parallel()
	b := redistest.NewBench(t, redistest.Shared(t))
	l := dialled(t, b.Server.URL())
	now, err := NewStore(l, "", b.Name).Time(bg)
	b.Must(err)
	const day = 24 * time.Hour
	var stores []*Store
	for i, off := range []time.Duration{0, -2 * day, 2 * day} {
		s := NewStore(l, "", b.Name+string(rune('a'+i)))
		b.Do("HSET", s.keys.statsOf(now), "processed", i+1)
		s.RedisTime(now.Add(off))
		stores = append(stores, s)
	}
	all, err := Overviews(bg, stores)
	b.Must(err)
	for i, o := range all {
		if o.Today["processed"] != int64(i+1) {
			t.Errorf("store %d counts %v today, expected %d processed", i, o.Today, i+1)
		}
		if off := stores[i].Now().Sub(o.Now).Abs(); off > time.Hour {
			t.Errorf("store %d stays %v off", i, off)
		}
		b.Do("DEL", stores[i].keys.statsOf(now))
	}
}
