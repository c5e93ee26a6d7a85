package delayed_test

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// fleet is a worker with a periodic entry, and a scheduler of another queue.
type fleet struct {
	*bench
	ticks  string // the scheduler's queue
	worker *delayed.Worker
}

// newFleet starts a fleet on a server of its own. It does not wait until Redis knows it.
func newFleet(t *testing.T, b *bench) *fleet {
	t.Helper()
	fn := b.fn("f", func() {})
	f := &fleet{bench: b, ticks: b.Name + ".ticks"}
	entries := []delayed.Entry{{Name: "e", Spec: "@yearly", Task: delayed.Call(fn)}}
	cfg := b.config()
	cfg.Schedulers = []delayed.SchedulerConfig{{Queue: b.Name, Owner: "worker", Entries: entries}}
	var err error
	f.worker, err = delayed.NewWorker(b.rdb, cfg)
	b.Must(err)
	b.Must(f.worker.Register(fn))
	s, err := delayed.NewScheduler(b.rdb, delayed.SchedulerConfig{
		Queue: f.ticks, Owner: "alone", Entries: entries, Logger: b.log.Logger(),
	})
	b.Must(err)
	ctx, cancel := context.WithCancel(bg)
	over := make(chan error, 2)
	go func() { over <- f.worker.Run(ctx) }()
	go func() { over <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		for range 2 {
			if err := await(b, "the end of the fleet", over); err != nil {
				t.Errorf("Run: %v", err)
			}
		}
	})
	return f
}

// missing returns what Redis does not have of all that the fleet has told it.
func (f *fleet) missing() (missing []string) {
	id := f.worker.ID()
	for _, has := range [][]any{
		{"HEXISTS", "delayed_queues", f.Name},
		{"HEXISTS", "delayed_queues", f.ticks},
		{"EXISTS", f.Name + "_worker:" + id},
		{"SISMEMBER", f.Name + "_workers", id},
		{"HEXISTS", f.Name + "_functions", id},
		{"HEXISTS", f.Name + "_functions", id + " status"},
		{"HEXISTS", f.Name + "_periodic", "e"},
		{"ZSCORE", f.Name + "_ticks", "e"},
		{"HEXISTS", f.ticks + "_periodic", "e"},
		{"ZSCORE", f.ticks + "_ticks", "e"},
	} {
		cmd, _ := has[0].(string)
		if found, err := redis.Int64(f.Conn.Do(cmd, has[1:]...)); err != nil || found == 0 {
			key, _ := has[1].(string)
			missing = append(missing, key)
		}
	}
	return missing
}

func (f *fleet) complete(what string) {
	f.T.Helper()
	f.Until(what+": Redis has everything", func() bool { return len(f.missing()) == 0 })
}

// TestLostKeys loses each key of a live fleet in turn, each pair of those that belong together, and all at once.
func TestLostKeys(t *testing.T) {
	t.Parallel()
	f := newFleet(t, newBenchOn(t, redistest.Start(t)))
	f.complete("at the start")
	for _, keys := range [][]string{
		{"delayed_queues"},
		{f.Name + "_worker:" + f.worker.ID()},
		{f.Name + "_workers"},
		{f.Name + "_functions"},
		{f.Name + "_workers", f.Name + "_functions"},
		{f.Name + "_periodic", f.ticks + "_periodic"},
		{f.Name + "_ticks", f.ticks + "_ticks"},
		{f.Name + "_periodic", f.Name + "_ticks", f.ticks + "_periodic", f.ticks + "_ticks"},
		nil,
	} {
		what := strings.Join(keys, " ")
		if keys == nil {
			what = "all"
			f.Do("FLUSHALL")
		} else {
			f.Do("DEL", redis.Args{}.AddFlat(keys)...)
		}
		f.complete("lost " + what)
	}
}

// TestRestartWithoutData: Redis comes back empty.
func TestRestartWithoutData(t *testing.T) {
	t.Parallel()
	f := newFleet(t, newBenchOn(t, redistest.Start(t)))
	f.complete("at the start")
	f.Server.Stop(t)
	f.Server.Restart(t)
	f.Conn = f.Server.Dial(t)
	f.complete("restarted")
}

// TestRefusedWrites starts a fleet on a server that refuses writes, in each of the ways that servers have.
func TestRefusedWrites(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ refuse, allow func(b *bench) }{
		"OOM": {
			refuse: func(b *bench) { b.Do("CONFIG", "SET", "maxmemory", "1") },
			allow:  func(b *bench) { b.Do("CONFIG", "SET", "maxmemory", "0") },
		},
		"NOREPLICAS": {
			refuse: func(b *bench) { b.Do("CONFIG", "SET", "min-replicas-to-write", "1") },
			allow:  func(b *bench) { b.Do("CONFIG", "SET", "min-replicas-to-write", "0") },
		},
		"MISCONF": {
			refuse: func(b *bench) {
				b.Do("CONFIG", "SET", "save", "3600 1")
				b.Do("BGSAVE") // its directory is gone
				b.Until("Redis refuses writes", func() bool {
					_, err := b.Conn.Do("SET", "x", "y")
					return err != nil && strings.Contains(err.Error(), "MISCONF")
				})
			},
			allow: func(b *bench) { b.Do("CONFIG", "SET", "stop-writes-on-bgsave-error", "no") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := os.MkdirTemp(t.TempDir(), "gone") //nolint:usetesting // the test removes it
			if err != nil {
				t.Fatal(err)
			}
			b := newBenchOn(t, redistest.Start(t, "--dir", dir))
			b.Must(os.RemoveAll(dir))
			c.refuse(b)
			f := newFleet(t, b)
			f.Until("it complains", func() bool {
				return strings.Contains(f.log.String(), "level=warning msg=\"cannot")
			})
			if len(f.missing()) == 0 {
				t.Fatal("Redis has accepted everything")
			}
			c.allow(b)
			f.complete("accepted again")
		})
	}
}

// TestLostIsNotRemoved: an entry that somebody has removed does not come back while the program runs, one that was lost
// does, and an old version of the program leaves it to the new one to declare its entries again.
func TestLostIsNotRemoved(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	fn := b.fn("f", func() {})
	entry := func(name string) delayed.Entry {
		return delayed.Entry{Name: name, Spec: "@yearly", Task: delayed.Call(fn)}
	}
	looking := func(entries ...delayed.Entry) {
		s := b.scheduler(b.rdb, "shop", entries...)
		delayed.LookEvery(s, 50*time.Millisecond)
		b.schedule(s)
	}
	looking(entry("a"), entry("old"))
	b.Until("the old version has declared", func() bool { return b.entryNames() == "a/shop old/shop" })
	looking(entry("a"), entry("b"), entry("new"))
	b.Until("the new version has declared", func() bool { return b.entryNames() == "a/shop b/shop new/shop" })
	b.Must(b.periodic().Remove(bg, "b"))
	looks := func() int64 { return b.Server.CommandStats(t)["zmscore"] }
	for end := looks() + 6; looks() < end; {
		b.Until("they look", func() bool { return looks() >= end })
	}
	if names := b.entryNames(); names != "a/shop new/shop" {
		t.Fatalf("after b was removed: found %s", names)
	}
	b.Do("DEL", b.Name+"_periodic")
	b.Until("the new version has declared again", func() bool { return b.entryNames() == "a/shop b/shop new/shop" })
	if slices.Contains(strings.Fields(b.entryNames()), "old/shop") {
		t.Error("the old version has declared its entries")
	}
}
