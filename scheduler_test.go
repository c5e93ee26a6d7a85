package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/engine/move"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/schedule"
)

// shortEvery is the shortest interval that tests may use.
const shortEvery = 10 * time.Millisecond

// scheduler returns a scheduler of the queue whose entries may tick quickly.
func (b *bench) scheduler(rdb *delayed.Store, owner string, entries ...delayed.Entry) *delayed.Scheduler {
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

func (b *bench) periodicOn(rdb *delayed.Store) *delayed.PeriodicControl {
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

// TestSchedulerLooksAfterABreak: an empty message means that others may have been lost, so the scheduler looks.
func TestSchedulerLooksAfterABreak(t *testing.T) {
	b := newBench(t)
	s := b.scheduler(b.rdb, "")
	for message, looks := range map[string]bool{"": true, "periodic": true, "pause": false} {
		changes := make(chan string, 1)
		changes <- message
		limit := patience
		if !looks {
			limit = 50 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		delayed.Rest(ctx, s, time.Hour, changes)
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

// tickServer answers the commands of schedulers from memory, by the clock of a synctest bubble, so that each tick has
// its exact time.
type tickServer struct {
	mute bool // whether it publishes no signals

	mu      sync.Mutex // protects the following
	values  map[string]string
	dues    map[string]int64
	handles []*delayed.Store
	ticks   []string // id and the time at which it was enqueued, in order
	looks   int
}

func newTickServer(mute bool) *tickServer {
	return &tickServer{mute: mute, values: map[string]string{}, dues: map[string]int64{}}
}

// handle returns another handle on the server.
func (s *tickServer) handle() *delayed.Store {
	rdb := delayed.FromSource(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.handles = append(s.handles, rdb)
	return rdb
}

func (s *tickServer) Conn(context.Context, string) (redis.Conn, error) { return tickConn{s: s}, nil }
func (s *tickServer) Slot(string) int                                  { return 0 }
func (s *tickServer) Close() error                                     { return nil }

// tickConn is a connection. It cannot subscribe; publish calls the listeners.
type tickConn struct{ s *tickServer }

func (c tickConn) Close() error                   { return nil }
func (c tickConn) Err() error                     { return nil }
func (c tickConn) Send(string, ...any) error      { return io.EOF }
func (c tickConn) Flush() error                   { return io.EOF }
func (c tickConn) Receive() (any, error)          { return nil, io.EOF }
func (c tickConn) Do(string, ...any) (any, error) { return nil, io.EOF }
func (c tickConn) DoContext(_ context.Context, cmd string, args ...any) (any, error) {
	return c.s.do(cmd, args)
}
func (c tickConn) ReceiveContext(context.Context) (any, error) { return nil, io.EOF }
func (c tickConn) DoWithTimeout(_ time.Duration, cmd string, args ...any) (any, error) {
	return c.s.do(cmd, args)
}
func (c tickConn) ReceiveWithTimeout(time.Duration) (any, error) { return nil, io.EOF }

// do executes a command. Scripts do what those in lua do, as far as entries without a lock need it.
func (s *tickServer) do(cmd string, args []any) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	text := func(i int) string { return fmt.Sprintf("%s", args[i]) }
	switch cmd {
	case "TIME":
		return []any{fmt.Append(nil, now.Unix()), fmt.Append(nil, now.Nanosecond()/1000)}, nil
	case "HGET":
		if v := s.values[text(1)]; v != "" {
			return []byte(v), nil
		}
		return nil, nil
	case "HKEYS":
		names := []any{}
		for name := range s.values {
			names = append(names, []byte(name))
		}
		return names, nil
	case "HMGET":
		values := []any{}
		for i := range args[1:] {
			values = append(values, []byte(s.values[text(i+1)]))
		}
		return values, nil
	case "INFO":
		return []byte("role:master\r\n"), nil
	case "PUBLISH":
		for _, rdb := range s.handles {
			s.tell(rdb, text(0), text(1))
		}
		return int64(0), nil
	}
	if cmd != "EVALSHA" {
		return nil, io.EOF
	}
	n, _ := args[1].(int)
	sha := args[0]
	args = args[2+n:]
	switch sha {
	case redisstore.Scripts["agenda"].Sha:
		return s.agenda(now.UnixMilli()), nil
	case redisstore.Scripts["entry"].Sha:
		name, due := text(0), args[3]
		if s.values[name] != text(1) {
			return int64(0), nil
		}
		s.file(name, text(2), due)
		return int64(1), nil
	case redisstore.Scripts["tick"].Sha:
		name, earlier := text(0), args[6].(int64) //nolint:errcheck // by contract
		switch {
		case s.values[name] != text(1):
			return []any{int64(0), now.UnixMilli(), []byte{}}, nil
		case now.UnixMilli() < earlier:
			return []any{int64(-1), now.UnixMilli(), []byte{}}, nil
		}
		for i := 10; i < len(args); i += 5 {
			s.ticks = append(s.ticks, fmt.Sprintf("%s at %d", args[i+1], now.UnixMilli()))
		}
		s.file(name, text(2), args[4])
		return []any{int64(1), now.UnixMilli(), []byte{}}, nil
	}
	return nil, redis.Error("ERR an unexpected script")
}

// file stores an entry.
func (s *tickServer) file(name, value string, due any) {
	s.values[name] = value
	delete(s.dues, name)
	if ms, ok := due.(int64); ok {
		s.dues[name] = ms
	}
}

// agenda returns what is due now, and when the next entry is due.
func (s *tickServer) agenda(now int64) []any {
	s.looks++
	next, due := int64(-1), []string{}
	for name, at := range s.dues {
		switch wait := at - now; {
		case wait <= 0:
			due = append(due, name)
		case next < 0 || wait < next:
			next = wait
		}
	}
	slices.Sort(due)
	reply := []any{now, next}
	for _, name := range due {
		reply = append(reply, []byte(name), []byte(s.values[name]))
	}
	return reply
}

// tell sends a message to those who listen on a handle.
func (s *tickServer) tell(rdb *delayed.Store, channel, message string) {
	if s.mute {
		return
	}
	delayed.Signals(rdb).Mu.Lock()
	defer delayed.Signals(rdb).Mu.Unlock()
	if ch := delayed.Signals(rdb).Channels[channel]; ch != nil {
		ch.Send(message)
	}
}

// since returns the ticks of an entry that were enqueued since the last call, and forgets all ticks.
func (s *tickServer) since() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	ticks := s.ticks
	s.ticks, s.looks = nil, 0
	return ticks
}

// schedule runs a scheduler in the bubble until it is stopped.
func (s *tickServer) schedule(t *testing.T, entries ...delayed.Entry) (stop func()) {
	t.Helper()
	rdb := s.handle()
	cfg := delayed.SchedulerConfig{Queue: "q", Entries: entries, Logger: new(redistest.Log).Logger()}
	if len(entries) > 0 {
		cfg.Owner = "test"
	}
	sch, err := delayed.NewScheduler(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- sch.Run(ctx) }()
	synctest.Wait()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		delayed.Signals(rdb).Close()
	}
}

// punctual checks that each tick of the entries since a time was enqueued, in order, exactly when it was due.
func (s *tickServer) punctual(t *testing.T, what string, from time.Time, entries ...delayed.Entry) {
	t.Helper()
	synctest.Wait()
	var want []string
	now := time.Now()
	for _, e := range entries {
		tt, err := (&schedule.Definition{Spec: e.Spec, Jitter: e.Jitter}).Timetable(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		for tick := tt.Next(from.Add(-e.Jitter - 1)); !tick.After(now); tick = tt.Next(tick) {
			if due := tt.Due(tick); due.After(from) && !due.After(now) {
				want = append(want, fmt.Sprintf("%s at %d", schedule.TickID(e.Name, tick), due.UnixMilli()))
			}
		}
	}
	found := s.since()
	slices.Sort(want)
	slices.Sort(found)
	if len(want) == 0 || !slices.Equal(found, want) {
		t.Errorf("%s: found ticks\n%q\nexpected\n%q", what, found, want)
	}
}

// TestTicksArePunctual: each tick is enqueued once, in the millisecond in which it is due, by one scheduler or several,
// when one ends and another takes over, and after the entry was changed. There are about as many looks as ticks.
func TestTicksArePunctual(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTickServer(false)
		task := delayed.Call(delayed.Func(func() {}, delayed.Name("f")))
		second := delayed.Entry{Name: "second", Spec: "@every 1s", Task: task}
		spread := delayed.Entry{Name: "spread", Spec: "@every 7s", Task: task, Jitter: 3 * time.Second}
		minute := delayed.Entry{Name: "minute", Spec: "* * * * *", Task: task}
		entries := []delayed.Entry{second, spread, minute}
		time.Sleep(300 * time.Millisecond) //nolint:forbidigo // of the bubble's clock
		start := time.Now()
		pass := func(what string, d time.Duration) {
			t.Helper()
			time.Sleep(d) //nolint:forbidigo // as above
			s.punctual(t, what, start, entries...)
			start = time.Now()
		}
		stopA := s.schedule(t, entries...)
		s.mu.Lock()
		s.looks = 0
		s.mu.Unlock()
		time.Sleep(70 * time.Second) //nolint:forbidigo // as above
		synctest.Wait()
		// one look serves each tick, and one follows it; some find none
		if s.mu.Lock(); s.looks > 3*len(s.ticks)+14 {
			t.Errorf("%d looks for %d ticks", s.looks, len(s.ticks))
		}
		s.mu.Unlock()
		s.punctual(t, "one scheduler", start, entries...)
		start = time.Now()
		stopB := s.schedule(t, entries...)
		stopC := s.schedule(t)
		pass("three schedulers", 70*time.Second)
		stopA()
		pass("two, after one has ended", 70*time.Second)
		stopB()
		stopC()
		stopD := s.schedule(t, entries...)
		pass("another one, which takes over", 70*time.Second)

		// Entries change while a scheduler rests: some tick sooner, some later.
		p := delayed.NewQueue("q", s.handle()).Periodic()
		second.Spec, minute.Spec = "@every 3s", "@every 2s"
		for _, e := range []delayed.Entry{second, minute} {
			if err := p.Set(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		entries = []delayed.Entry{second, spread, minute}
		pass("changed", 70*time.Second)
		for _, e := range []delayed.Entry{second, minute} {
			if err := p.Pause(t.Context(), e.Name); err != nil {
				t.Fatal(err)
			}
		}
		entries = []delayed.Entry{spread}
		pass("paused", 70*time.Second)
		if err := p.Resume(t.Context(), "second"); err != nil {
			t.Fatal(err)
		}
		entries = []delayed.Entry{second, spread}
		pass("resumed", 70*time.Second)
		stopD()
	})
}

// TestTicksWithoutSignals: a scheduler that gets no signals notices a change within five seconds, enqueues the ticks
// that were due meanwhile, and the others at their times.
func TestTicksWithoutSignals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTickServer(true)
		stop := s.schedule(t)
		e := delayed.Entry{Name: "e", Spec: "@every 1s", Task: delayed.Call(delayed.Func(func() {}, delayed.Name("f")))}
		time.Sleep(19500 * time.Millisecond) //nolint:forbidigo // of the bubble's clock
		if err := delayed.NewQueue("q", s.handle()).Periodic().Set(t.Context(), e); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		time.Sleep(move.CheckInterval) //nolint:forbidigo // as above
		synctest.Wait()
		late := s.since()
		for i, tick := range late {
			id := schedule.TickID("e", start.Truncate(time.Second).Add(time.Duration(i+1)*time.Second))
			if !strings.HasPrefix(tick, id+" ") {
				t.Errorf("tick %d is %s, expected %s", i, tick, id)
			}
		}
		if len(late) != int(move.CheckInterval/time.Second) {
			t.Errorf("after %v, found %q", move.CheckInterval, late)
		}
		start = time.Now()
		time.Sleep(time.Minute) //nolint:forbidigo // as above
		s.punctual(t, "noticed", start, e)
		stop()
	})
}

// TestWaitingTickIsNoTrouble: a tick waits for a task that does not end. Other entries keep ticking, and the log
// contains no error.
func TestWaitingTickIsNoTrouble(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s, err := delayed.NewScheduler(b.rdb, delayed.SchedulerConfig{
		Queue: b.Name, Owner: "o", Logger: b.config().Logger, Entries: []delayed.Entry{
			{
				Name: "held", Spec: "@every 2s", Task: delayed.Call(b.fn("held", func() {})),
				Overlap: delayed.OverlapQueue,
			},
			{Name: "free", Spec: "@every 1s", Task: delayed.Call(b.fn("free", func() {}))},
		},
	})
	b.Must(err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	waits := func() bool {
		entries, err := b.q.Periodic().List(t.Context())
		b.Must(err)
		return len(entries) == 2 && entries[1].Waiting
	}
	b.Until("it is declared", func() bool { return b.Size("_ticks") == 2 })
	var ticked *delayed.DuplicateError // a tick came before
	if _, err = b.q.Periodic().RunNow(t.Context(), "held"); !errors.As(err, &ticked) {
		b.Must(err)
	}
	b.Until("a tick waits", waits)
	lines, err := b.q.Periodic().History(t.Context(), "free")
	b.Must(err)
	before := len(lines)
	b.Until("others have ticked twice", func() bool {
		lines, err = b.q.Periodic().History(t.Context(), "free")
		b.Must(err)
		return len(lines) >= before+2
	})
	if !waits() {
		t.Error("the tick does not wait any more")
	}
	cancel()
	b.Must(redistest.Await(b.Bench, "the end of Run", ended))
	if text := b.log.String(); strings.Contains(text, "cannot") {
		t.Errorf("the log says\n%s", text)
	}
}

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
	cfg.HeartbeatLife = time.Second // with each heartbeat the worker looks whether Redis has lost something
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

// missing returns what Redis does not have of all that the fleet writes.
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

// TestLostWhileDeclaring loses all data right before each of the writes of a declaration, and refuses that write when
// the entries are declared again: what is lost comes back.
func TestLostWhileDeclaring(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	task := delayed.Call(b.fn("f", func() {}))
	for at := 1; ; at++ {
		writes, disturb := 0, func() error { b.Do("FLUSHALL"); return nil }
		src := redistest.Intercept(b.src, func(cmd string, args []any, send func() (any, error)) (any, error) {
			if cmd == "EVALSHA" && args[0] == redisstore.Scripts["entry"].Sha {
				if writes++; writes == at {
					if err := disturb(); err != nil {
						return nil, err
					}
				}
			}
			return send()
		})
		s := b.scheduler(delayed.FromSource(src), "shop", delayed.Entry{Name: "a", Spec: "@yearly", Task: task},
			delayed.Entry{Name: "b", Spec: "@yearly", Task: task})
		b.Must(delayed.Declare(bg, s))
		if writes < at {
			return
		}
		b.Must(delayed.Restore(bg, s))
		if names := b.entryNames(); names != "a/shop b/shop" {
			t.Errorf("lost before write %d: expected a and b, found %q", at, names)
		}
		other := b.scheduler(delayed.FromSource(b.src), "shop", delayed.Entry{Name: "a", Spec: "@yearly", Task: task},
			delayed.Entry{Name: "b", Spec: "@yearly", Task: task})
		b.Must(delayed.Declare(bg, other))
		// The second time the other one finishes what is left, as if this one had ended.
		for _, finisher := range []*delayed.Scheduler{s, other} {
			b.Do("FLUSHALL")
			writes, disturb = 0, func() error { return redis.Error("OOM refused") }
			if err := delayed.Restore(bg, s); err == nil {
				t.Errorf("write %d was refused: expected an error", at)
			}
			b.Must(delayed.Restore(bg, finisher))
			if names := b.entryNames(); names != "a/shop b/shop" {
				t.Errorf("write %d was refused: expected a and b, found %q", at, names)
			}
		}
		b.Do("FLUSHALL")
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
