package delayed_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
)

func TestArchiveBounds(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	fail := b.fn("fail", func(int) error { return errors.New("no") }, delayed.MaxRetry(0))
	cfg := b.config()
	cfg.ArchiveMax, cfg.ArchiveFor = 3, time.Hour
	w := b.work(cfg, fail)
	for i := range 5 {
		b.delay(fail, i)
		b.Until("it is archived", func() bool { return b.counters()["archived"] == i+1 })
	}
	if n := b.Size("_archived"); n != 3 {
		t.Errorf("%d tasks are archived, expected 3", n)
	}
	if n := b.counters()["trimmed"]; n != 2 {
		t.Errorf("%d tasks are counted as trimmed, expected 2", n)
	}
	last := b.Int("EVAL", `return redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]`, 1, b.Name+"_archived")
	if left := time.Until(time.UnixMilli(int64(last))); left > time.Hour || left < 50*time.Minute {
		t.Errorf("the last one is kept for %v, expected an hour", left)
	}
	w.mustStop() // its own sweeper holds the lock
	// A sweeper with narrower bounds keeps to them.
	b.Do("HSET", b.Name+"_results", "old", "r")
	b.Do("ZADD", b.Name+"_completed", 1, "old")
	s, err := delayed.NewSweeper(b.rdb,
		delayed.SweeperConfig{
			Queues: []string{b.Name}, Interval: 10 * time.Millisecond, ArchiveMax: 1,
			Logger: b.log.Logger(),
		})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	b.Until("the sweeper has trimmed",
		func() bool { return b.Size("_archived") == 1 && b.Size("_completed")+b.Size("_results") == 0 })
	stop()
	if err := await(b, "the sweeper's end", done); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		most int
		keep time.Duration
		want string
	}{
		{-1, 0, "ArchiveMax is -1: expected at least 1"},
		{0, time.Millisecond, "ArchiveFor is 1ms: expected at least 1s"},
	} {
		_, err := delayed.NewWorker(b.rdb,
			delayed.WorkerConfig{Queues: delayed.Strict{b.Name}, ArchiveMax: c.most, ArchiveFor: c.keep})
		if err == nil || !strings.Contains(err.Error(), "WorkerConfig."+c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
		_, err = delayed.NewSweeper(b.rdb,
			delayed.SweeperConfig{Queues: []string{b.Name}, ArchiveMax: c.most, ArchiveFor: c.keep})
		if err == nil || !strings.Contains(err.Error(), "SweeperConfig."+c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
}

// The sweeper of a worker archives tasks within the limits of the worker's configuration.
func TestArchiveBoundsOfWhatIsSwept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	cfg := b.config()
	cfg.ArchiveMax, cfg.ArchiveFor = 2, time.Hour
	for range 3 {
		b.deadWorker(oversized)
	}
	b.work(cfg)
	b.Until("all are archived", func() bool { return b.counters()["archived"] == 3 })
	page, total, err := b.q.Archived(t.Context(), 0, 10)
	b.Must(err)
	if total != 2 {
		t.Errorf("%d tasks are archived, expected 2", total)
	}
	for _, task := range page {
		if left := time.Until(task.Due); left > time.Hour {
			t.Errorf("a task is kept for %v, expected an hour", left)
		}
	}
}
