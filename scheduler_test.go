package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/schedule"
)

// shortEvery is the shortest interval that tests may use.
const shortEvery = 10 * time.Millisecond

// scheduler returns a scheduler of the queue whose entries may tick quickly.
func (b *bench) scheduler(rdb *delayed.Redis, owner string, entries ...delayed.Entry) *delayed.Scheduler {
	b.T.Helper()
	cfg := delayed.SchedulerConfig{Queue: b.Name, Owner: owner, Entries: entries, Logger: b.log.Logger()}
	s, err := delayed.NewQuickScheduler(rdb, cfg, shortEvery)
	if err != nil {
		b.T.Fatal(err)
	}
	return s
}

// schedule runs a scheduler until the function it returns is called, or the test ends.
func (b *bench) schedule(s *delayed.Scheduler) (stop func()) {
	b.T.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := await(b, "the scheduler to stop", done); err != nil {
			b.T.Errorf("Run: %v", err)
		}
	})
	b.T.Cleanup(stop)
	return stop
}

// periodic returns the control of the queue's entries, which may tick quickly.
func (b *bench) periodic() *delayed.PeriodicControl { return b.periodicOn(b.rdb) }

func (b *bench) periodicOn(rdb *delayed.Redis) *delayed.PeriodicControl {
	return delayed.Quicken(delayed.NewQueue(b.Name, rdb).Periodic(), shortEvery)
}

// entry returns what List knows about an entry.
func (b *bench) entry(name string) delayed.PeriodicEntry {
	b.T.Helper()
	all, err := b.periodic().List(bg)
	b.Must(err)
	for _, e := range all {
		if e.Name == name {
			return e
		}
	}
	b.T.Fatalf("no entry %q in %+v", name, all)
	return delayed.PeriodicEntry{}
}

// history returns the outcomes of an entry's ticks, the latest first.
func (b *bench) history(name string) (lines []string) {
	b.T.Helper()
	runs, err := b.periodic().History(bg, name)
	b.Must(err)
	for _, r := range runs {
		lines = append(lines, strings.TrimSpace(r.ID+" "+r.Skipped))
	}
	return lines
}

// rewind makes an entry look as if no scheduler had served it for a while.
func (b *bench) rewind(name string, d time.Duration) {
	b.T.Helper()
	v, err := b.store.Entry(bg, name)
	b.Must(err)
	r, err := schedule.Decode(v)
	b.Must(err)
	tt, err := r.Def.Timetable(name)
	b.Must(err)
	r.Prev = r.Prev.Add(-d)
	r.Next = tt.Next(r.Prev)
	due, err := r.Due()
	b.Must(err)
	b.Must(b.store.SetEntry(bg, v, r.Encode(), due))
}

// pendingIDs returns the ids of all pending tasks.
func (b *bench) pendingIDs() (ids []string) {
	b.T.Helper()
	for _, raw := range b.List("") {
		ids = append(ids, idInMessage(b.T, raw))
	}
	return ids
}

// TestEachTickOnce runs three schedulers. At random times it cuts some of their connections, and stops and replaces
// schedulers: each tick is enqueued once, under its id, and none is left out.
func TestEachTickOnce(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	const every = 10 * time.Millisecond
	fn := b.fn("tick", func(string) {})
	entries := []delayed.Entry{
		{Name: "a", Spec: "@every 10ms", Task: delayed.Call(fn, "a")},
		{Name: "b", Spec: "@every 10ms", Task: delayed.Call(fn, "b"), Jitter: 7 * time.Millisecond},
		{Name: "c", Spec: "@every 25ms", Task: delayed.Call(fn, "c"), CatchUp: -1},
	}
	var stops [3]func()
	start := func(i int) {
		rdb, err := delayed.Dial(b.Server.URL())
		b.Must(err)
		stop := b.schedule(b.scheduler(rdb, "test", entries...))
		stops[i] = func() {
			stop()
			rdb.Close()
		}
	}
	for i := range stops {
		start(i)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for pending := 0; pending < 1000; {
		switch i := rnd.IntN(3); rnd.IntN(3) {
		case 0:
			stops[i]()
			start(i)
		case 1:
			b.Server.Do(t, "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
			b.Conn = b.Server.Dial(t)
		case 2:
			b.Server.Do(t, "SCRIPT", "FLUSH")
		}
		n := pending
		b.Until("more ticks are pending", func() bool {
			pending = b.Size("")
			return pending > n+20
		})
	}
	for _, stop := range stops {
		stop()
	}
	ticks := map[string][]int64{}
	for _, id := range b.pendingIDs() {
		name, tick, _ := strings.Cut(id, "@")
		var ms int64
		if _, err := fmt.Sscan(tick, &ms); err != nil {
			t.Fatal(err)
		}
		ticks[name] = append(ticks[name], ms)
	}
	for _, name := range []string{"a", "b", "c"} {
		step := every.Milliseconds()
		if name == "c" {
			step = 25
		}
		for i, ms := range ticks[name] {
			if i > 0 && ms != ticks[name][i-1]+step {
				t.Errorf("entry %s: tick %d follows %d", name, ms, ticks[name][i-1])
			}
		}
		if len(ticks[name]) < 100 {
			t.Errorf("entry %s: %d ticks", name, len(ticks[name]))
		}
		e := b.entry(name)
		if last := ticks[name][len(ticks[name])-1]; e.Previous.UnixMilli() != last || e.Next.UnixMilli() != last+step {
			t.Errorf("entry %s: the last tick was %d, the list says %v and %v", name, last, e.Previous, e.Next)
		}
	}
	b.Check(redistest.Invariants{})
}

// TestMissedTicks starts schedulers after none ran for a while.
func TestMissedTicks(t *testing.T) {
	b := newBench(t)
	fn := b.fn("tick", func() {})
	missed := map[string]int{"skip": -1, "latest": 0, "three": 3}
	for name, n := range missed {
		b.Must(b.periodic().Set(bg, delayed.Entry{Name: name, Spec: "@every 1h", Task: delayed.Call(fn), CatchUp: n}))
		b.rewind(name, 10*time.Hour)
	}
	for range 3 {
		b.schedule(b.scheduler(b.rdb, ""))
	}
	b.Until("all have been seen to", func() bool {
		for name := range missed {
			if time.Until(b.entry(name).Next) <= 0 {
				return false
			}
		}
		return true
	})
	for name, want := range map[string]int{"skip": 0, "latest": 1, "three": 3} {
		e := b.entry(name)
		var ids []string
		for i := range want {
			ids = append(ids, schedule.TickID(name, e.Previous.Add(-time.Duration(want-1-i)*time.Hour)))
		}
		got := slices.DeleteFunc(b.pendingIDs(), func(id string) bool { return !strings.HasPrefix(id, name) })
		// in the first 30 seconds of an hour, the tick of that hour is on time
		if !slices.Equal(got, ids) && time.Since(e.Previous) > 30*time.Second {
			t.Errorf("%s: %v are pending, expected %v", name, got, ids)
		}
		if lines := b.history(name); len(lines) != len(got)+1 || lines[len(lines)-1] != "missed" {
			t.Errorf("%s: history %v", name, lines)
		}
	}
}

// TestOverlap runs a task for longer than its entry ticks.
func TestOverlap(t *testing.T) {
	t.Parallel()
	for _, policy := range []delayed.Overlap{delayed.OverlapAllow, delayed.OverlapSkip, delayed.OverlapQueue} {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			var running atomic.Int32
			var mu sync.Mutex // protects the following
			var most int32
			ran := map[string]int{}
			hold := make(chan struct{})
			fn := b.fn("long", func(ctx context.Context) {
				n := running.Add(1)
				mu.Lock()
				most = max(most, n)
				task := delayed.TaskFromContext(ctx)
				ran[task.ID()]++
				mu.Unlock()
				<-hold
				running.Add(-1)
			})
			w := b.work(b.config(), fn)
			stop := b.schedule(b.scheduler(b.rdb, "test",
				delayed.Entry{Name: "e", Spec: "@every 50ms", Task: delayed.Call(fn), Overlap: policy}))
			b.Until("it has ticked over a task that runs", func() bool {
				lines := b.history("e")
				if policy == delayed.OverlapAllow {
					// It is not enough that ticks are enqueued: the worker may not have claimed the second task before
					// hold ends.
					return len(lines) > 5 && running.Load() > 1
				}
				return len(lines) > 5 && running.Load() > 0 && strings.HasSuffix(lines[0], "overlap")
			})
			close(hold)
			b.Until("further tasks are over", func() bool {
				mu.Lock()
				defer mu.Unlock()
				return len(ran) > 3
			})
			stop()
			b.Idle()
			w.mustStop()
			mu.Lock()
			defer mu.Unlock()
			if (most > 1) != (policy == delayed.OverlapAllow) {
				t.Errorf("%d tasks ran at once", most)
			}
			for id, n := range ran {
				if n != 1 {
					t.Errorf("task %s ran %d times", id, n)
				}
			}
			if locks := b.Hash("_locks"); len(locks) > 0 {
				t.Errorf("locks are left: %v", locks)
			}
			queued := 0
			for _, line := range b.history("e") {
				if strings.HasSuffix(line, "queued") {
					queued++
				}
			}
			if (queued > 0) != (policy == delayed.OverlapQueue) {
				t.Errorf("%d ticks were queued: %v", queued, b.history("e"))
			}
			t.Log(slices.Sorted(maps.Keys(ran)), b.history("e"))
		})
	}
}

// TestPeriodicBesideWorker: a scheduler needs no process of its own.
func TestPeriodicBesideWorker(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan string, 100)
	fn := b.fn("beside", func(ctx context.Context, text string) {
		task := delayed.TaskFromContext(ctx)
		ran <- task.ID() + " " + text
	})
	cfg := b.config()
	cfg.Schedulers = []delayed.SchedulerConfig{{
		Queue: b.Name, Owner: "test",
		Entries: []delayed.Entry{{Name: "e", Spec: "@every 1s", Task: delayed.Call(fn, "hello")}},
	}}
	w := b.work(cfg, fn)
	got := await(b, "a tick", ran)
	if want := b.history("e"); !slices.Contains(want, strings.TrimSuffix(got, " hello")) {
		t.Errorf("ran %s, history %v", got, want)
	}
	w.mustStop()
	if _, err := delayed.NewWorker(b.rdb,
		delayed.WorkerConfig{Queues: delayed.Strict{b.Name}, Schedulers: []delayed.SchedulerConfig{{}}}); err == nil {
		t.Error("a faulty scheduler, and no error")
	}
}

// TestChangesAreNoticed sets an entry while a scheduler sleeps; a signal wakes the scheduler.
func TestChangesAreNoticed(t *testing.T) {
	b := newBench(t)
	s := b.scheduler(b.rdb, "")
	delayed.LookEvery(s, time.Hour) // too long without a signal
	b.schedule(s)
	b.Until("the scheduler listens", func() bool {
		n, err := redis.Ints(b.Conn.Do("EVAL", "return {#redis.call('PUBSUB', 'CHANNELS', ARGV[1])}", 0,
			b.store.String()+"_signals"))
		return err == nil && n[0] > 0
	})
	b.Must(b.periodic().Set(bg,
		delayed.Entry{Name: "e", Spec: "@every 10ms", Task: delayed.Call(b.fn("x", func() {}))}))
	b.Until("it ticks", func() bool { return b.Size("") > 0 })
}

// TestSchedulerWithoutRedis: the scheduler goes on when Redis is back, and logs no error at its end.
func TestSchedulerWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "yes")
	b := newBenchOn(t, server)
	fn := b.fn("x", func() {})
	server.Stop(t)
	stop := b.schedule(b.scheduler(b.rdb, "test",
		delayed.Entry{Name: "e", Spec: "@every 10ms", Task: delayed.Call(fn)}))
	b.Until("it complains", func() bool { return strings.Contains(b.log.String(), "cannot declare periodic entries") })
	server.Restart(t)
	b.Conn = server.Dial(t)
	b.Until("it ticks", func() bool { return b.Size("") > 0 })
	server.Stop(t)
	b.Until("it complains again",
		func() bool { return strings.Contains(b.log.String(), "cannot look for periodic entries") })
	server.Restart(t)
	b.Conn = server.Dial(t)
	n := b.Size("")
	b.Until("it ticks again", func() bool { return b.Size("") > n })
	stop()
	if err := b.scheduler(b.rdb, "").Run(canceled()); err != nil {
		t.Errorf("Run with a context that has ended: %v", err)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// TestSecondRunOfScheduler: a second Run is refused.
func TestSecondRunOfScheduler(t *testing.T) {
	b := newBench(t)
	s := b.scheduler(b.rdb, "")
	b.Must(s.Run(canceled()))
	if err := s.Run(canceled()); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("second Run: %v", err)
	}
}

// TestSchedulerLooksAfterABreak: an empty message means that others may have been lost, so the scheduler looks.
func TestSchedulerLooksAfterABreak(t *testing.T) {
	b := newBench(t)
	s := b.scheduler(b.rdb, "")
	for message, looks := range map[string]bool{"": true, "periodic": true, "pause": false} {
		told := make(chan string, 1)
		told <- message
		limit := patience
		if !looks {
			limit = 50 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		delayed.Rest(ctx, s, time.Hour, told)
		if early := ctx.Err() == nil; early != looks {
			t.Errorf("%q: looks at once: %t, expected %t", message, early, looks)
		}
		cancel()
	}
}

// TestSchedulersOfAWorkerLogToItsLogger has one scheduler with a logger of its own, and one without. Both complain that
// an entry is somebody else's.
func TestSchedulersOfAWorkerLogToItsLogger(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	f := b.fn("f", func() {})
	entries := []delayed.Entry{{Name: "taken", Spec: "@yearly", Task: delayed.Call(f)}}
	first, err := delayed.NewScheduler(b.rdb, delayed.SchedulerConfig{
		Queue: b.Name, Owner: "first", Entries: entries, Logger: b.log.Logger(),
	})
	b.Must(err)
	ctx, cancel := context.WithCancel(bg)
	done := make(chan error, 1)
	go func() { done <- first.Run(ctx) }()
	b.Until("the entry is declared", func() bool {
		all, err := b.periodic().List(bg)
		return err == nil && len(all) == 1
	})
	cancel()
	b.Must(await(b, "the end of the first scheduler", done))
	own := new(redistest.Log)
	cfg := b.config()
	cfg.Schedulers = []delayed.SchedulerConfig{
		{Queue: b.Name, Owner: "without", Entries: entries},
		{Queue: b.Name, Owner: "with", Entries: entries, Logger: own.Logger()},
	}
	b.workWith(b.rdb, cfg, f)
	const complaint = "declared by another owner"
	b.Until("both have complained", func() bool {
		return strings.Contains(b.log.String(), complaint) && strings.Contains(own.String(), complaint)
	})
}
