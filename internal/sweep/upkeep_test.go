package sweep

import (
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redistest"
)

func TestSweeperMendsNotifications(t *testing.T) {
	b := newBench(t)
	g := b.group(time.Minute, time.Hour)
	for range 2500 {
		b.Do("RPUSH", b.Name, "m")
	}
	b.pass(g)
	if b.Size("_noti") != 0 {
		t.Fatal("a deficit was mended at first sight")
	}
	b.pass(g)
	if n := b.Size("_noti"); n != 2500 {
		t.Fatalf("%d notifications, expected 2500", n)
	}
	for range 500 {
		b.Do("RPUSH", b.Name+"_noti", "1")
	}
	b.pass(g)
	if n := b.Size("_noti"); n != 2500 {
		t.Fatalf("%d notifications, expected the surplus to be gone at once", n)
	}
}

// TestTrimmedCountsFollowRedis: a sweeper that runs alone asks Redis for the day, whatever its own clock says.
func TestTrimmedCountsFollowRedis(t *testing.T) {
	b := newBench(t)
	b.Do("ZADD", b.Name+"_archived", 1000, "old")
	b.Do("HSET", b.Name+"_tasks", "old", "m")
	g := b.group(time.Minute, time.Minute)
	b.store.RedisTime(time.Now().Add(72 * time.Hour))
	for range trimEvery {
		b.pass(g)
	}
	today := b.Name + "_stats:" + time.UnixMilli(redistest.Time(t, b.Conn)).UTC().Format("20060102")
	days, err := redis.Strings(b.Conn.Do("KEYS", b.Name+"_stats:*"))
	b.Must(err)
	if len(days) != 1 || days[0] != today || b.counters()["trimmed"] != 1 {
		t.Errorf("counted %v on %v, expected one trimmed task on %s", b.counters(), days, today)
	}
}

// A sweeper whose clock is wrong does not archive parked tasks before their time: a script compares with Redis's clock.
func TestSweeperWithWrongClockLeavesParkedTasks(t *testing.T) {
	b := newBench(t)
	due := time.Now().Add(7 * 24 * time.Hour).UnixMilli()
	redistest.Seed(t, b.Conn, b.Name, redistest.State{
		"_parked": redistest.Zset{"x": due}, "_tasks": redistest.Hash{"x": "m"},
	})
	g := b.group(2*time.Second, time.Hour)
	b.store.Now = func() time.Time { return time.Now().Add(8 * 24 * time.Hour) }
	b.pass(g)
	if b.Size("_parked") != 1 {
		t.Errorf("a sweeper whose clock is a week ahead archived a task that was parked a moment ago: %v", b.counters())
	}
}
