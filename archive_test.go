package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/sweep"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
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

func TestRunAgain(t *testing.T) {
	b := newBench(t)
	var broken atomic.Bool
	broken.Store(true)
	ran := make(chan string, 10)
	f := b.fn("f", func(_ context.Context, name string, n int) (string, error) {
		if broken.Load() {
			return "", errors.New("broken")
		}
		ran <- fmt.Sprint(name, n)
		return name, nil
	}, delayed.MaxRetry(1), delayed.KeepResult(time.Hour))
	b.work(b.config(), f)
	ctx := b.within()
	fail := func(name string) *delayed.Ref {
		t.Helper()
		ref := b.delay(f, name, 1)
		var failed *delayed.TaskError
		if err := ref.Wait(b.within()); !errors.As(err, &failed) || failed.Attempts != 2 {
			t.Fatalf("Wait: %v", err)
		}
		return ref
	}
	first, second := fail("a"), fail("b")
	broken.Store(false)
	if err := first.RunAgain(ctx); err != nil {
		t.Fatal(err)
	}
	if got := await(b, "the first task", ran); got != "a1" {
		t.Errorf("ran %q", got)
	}
	if name, err := delayed.Await[string](ctx, first); name != "a" || err != nil {
		t.Errorf("Await: %q, %v", name, err)
	}
	// With edited arguments, which RunAgainWith checks.
	for _, c := range []struct {
		task *delayed.Task
		is   error
		want string
	}{
		{nil, delayed.ErrArguments, "nil"},
		{delayed.Call(f, "b"), delayed.ErrArguments, "expected 2 arguments"},
		{delayed.Call(f, "b", "one"), delayed.ErrArguments, "argument 2"},
		{
			delayed.Call(b.fn("g", func(string, int) {}), "b", 2), delayed.ErrFunction,
			"expected arguments of " + b.Name + ".f",
		},
		{delayed.NewPyTask("a:b", nil, nil), delayed.ErrFunction, "found those of a:b"},
	} {
		if err := second.RunAgainWith(ctx, c.task); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("found %v, expected %q", err, c.want)
		}
	}
	if err := second.RunAgainWith(ctx, delayed.Call(f, "c", 2)); err != nil {
		t.Fatal(err)
	}
	if got := await(b, "the second task", ran); got != "c2" {
		t.Errorf("ran %q", got)
	}
	if err := second.Wait(ctx); err != nil {
		t.Error(err)
	}
	// By path, for a function that this program does not link.
	broken.Store(true)
	third := fail("d")
	broken.Store(false)
	if err := third.RunAgainWith(ctx, delayed.NewGoTask(b.Name+".f", "e", 3)); err != nil {
		t.Fatal(err)
	}
	if got := await(b, "the third task", ran); got != "e3" {
		t.Errorf("ran %q", got)
	}
	for _, err := range []error{
		first.RunAgain(ctx), b.q.Ref("nobody").RunAgain(ctx), b.q.Ref("nobody").Delete(ctx),
		b.delayWith(b.q.With(delayed.In(time.Hour)), f, "x", 1).RunAgain(ctx),
	} {
		if !errors.Is(err, delayed.ErrNotArchived) {
			t.Errorf("found %v, expected ErrNotArchived", err)
		}
	}
	for _, err := range []error{b.q.Ref("").RunAgain(ctx), b.q.Ref("").Delete(ctx)} {
		if !errors.Is(err, delayed.ErrNoID) {
			t.Errorf("found %v, expected ErrNoID", err)
		}
	}
	if err := first.Delete(ctx); err != nil {
		t.Error(err)
	}
	if where, err := first.State(ctx); where != state.Unknown || err != nil {
		t.Errorf("the state of a deleted task is %v, %v", where, err)
	}
}

// archive fills the archive with tasks of a function.
func (b *bench) archive(n int) {
	b.T.Helper()
	for i := range n {
		id := fmt.Sprintf("t%04d", i)
		msg := wire.Message{
			Kind: wire.GoExtended, Path: "a.b",
			Meta: wire.Meta{ID: id, Retried: 3, Deaths: 1, DiedAt: 5, EnqueuedAt: 7},
		}
		info := wire.Info{
			Reason: []state.Reason{"failed", "deaths"}[i%2], Function: "a.b", Error: "no",
			At: time.UnixMilli(9), Attempts: 4,
		}
		b.Do("HSET", b.Name+"_tasks", id, msg.Append(nil))
		b.Do("HSET", b.Name+"_info", id, info.Encode())
		b.Do("ZADD", b.Name+"_archived", time.Now().Add(time.Hour).UnixMilli()+int64(i), id)
	}
}

func TestArchivedPages(t *testing.T) {
	b := newBench(t)
	b.archive(30)
	ctx := b.within()
	page, total, err := b.q.Archived(ctx, 10, 5)
	if err != nil || total != 30 || len(page) != 5 {
		t.Fatalf("%d of %d, %v", len(page), total, err)
	}
	for i, task := range page {
		due := task.Due
		if task.Task.ID() != task.ID {
			t.Errorf("found %v", task.Task)
		}
		task.Task = nil
		want := delayed.TaskInfo{
			ID: fmt.Sprintf("t%04d", 10+i), State: state.Archived, Function: "a.b", Due: due, At: time.UnixMilli(9),
			EnqueuedAt: time.UnixMilli(7),
			Reason:     []state.Reason{"failed", "deaths"}[i%2],
			Error:      "no", Attempts: 4,
		}
		if task != want || time.Until(due) > time.Hour+time.Minute || time.Until(due) < 50*time.Minute {
			t.Errorf("found %+v, expected %+v", task, want)
		}
	}
	if _, _, err := b.q.Archived(ctx, 0, 0); err == nil || !strings.Contains(err.Error(), "Archived(0, 0): expected") {
		t.Errorf("found %v", err)
	}
}

func TestRunArchivedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 1200 // more than one page
	b.archive(n)
	b.Do("HSET", b.Name+"_tasks", "odd", "no message")
	b.Do("ZADD", b.Name+"_archived", round, "odd")
	ctx := b.within()
	seen := 0
	got, err := b.q.RunArchivedAgain(ctx, func(task delayed.TaskInfo) bool {
		if seen++; seen == 500 {
			// A task that fails again at once stays in the archive.
			b.Do("HSET", b.Name+"_tasks", "later", "m")
			b.Do("ZADD", b.Name+"_archived", later, "later")
		}
		return task.Reason == "deaths"
	})
	if got != n/2 || err != nil || seen != n+1 {
		t.Errorf("%d run again, %v, %d seen; expected %d", got, err, seen, n/2)
	}
	list := b.List("")
	if len(list) != n/2 || b.Size("_noti") != n/2 || b.Size("_archived") != n/2+2 {
		t.Errorf("%d are pending with %d notifications, %d are archived", len(list), b.Size("_noti"),
			b.Size("_archived"))
	}
	msg, err := wire.Parse([]byte(list[0]), wire.WorkerLimits)
	if want := (wire.Meta{ID: "t0001", EnqueuedAt: 7}); err != nil || !reflect.DeepEqual(msg.Meta, want) {
		t.Errorf("found %+v, %v, expected %+v", msg.Meta, err, want)
	}
	got, err = b.q.DeleteArchived(ctx, func(task delayed.TaskInfo) bool { return task.ID > "t" && task.ID < "t0600" })
	if got != 300 || err != nil || b.Size("_archived") != n/2+2-300 {
		t.Errorf("%d deleted, %v, %d are left", got, err, b.Size("_archived"))
	}
	b.Check(redistest.Invariants{})
	if got, err = b.q.RunArchivedAgain(ctx, nil); got != 302 || err != nil ||
		b.Size("_archived")+b.Size("_tasks")+b.Size("_info") != 0 {
		t.Errorf("%d run again, %v, %d are left", got, err, b.Size("_archived"))
	}
	if got, err = b.q.DeleteArchived(ctx, nil); got != 0 || err != nil {
		t.Errorf("%d deleted of none, %v", got, err)
	}
	b.Check(redistest.Invariants{})
}

// TestRerunMessages checks the messages of tasks that run again.
func TestRerunMessages(t *testing.T) {
	now := time.Now().UnixMilli()
	extra := func(x wire.Extra) []byte {
		m := wire.Message{
			Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x01},
			Meta: wire.Meta{ID: "x", Retried: 2, Deaths: 1, DiedAt: 1, Extra: &x},
		}
		return m.Append(nil)
	}
	for _, c := range []struct {
		name string
		old  []byte
		task *delayed.Task
		want wire.Message
		same bool
		due  bool // the message says that it is due now
	}{
		{name: "plain", old: []byte("\x92\xa3a.b\xc4\x01\x01"), same: true},
		{name: "Python", old: []byte("\x91\xa3a:b"), same: true},
		{name: "no message", old: []byte("no message"), same: true},
		{
			name: "times that are over go, others stay", due: true,
			old: extra(wire.Extra{
				Deadline: 5, Expiry: now + 1e6, RetryUntil: now, FirstFailed: 3, AloneDeaths: 2,
				Timeout: 7, KeepResult: 9,
			}),
			want: wire.Message{
				Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x01},
				Meta: wire.Meta{ID: "x", Extra: &wire.Extra{Expiry: now + 1e6, Timeout: 7, KeepResult: 9}},
			},
		},
		{
			name: "arguments of a plain one",
			old:  []byte("\x92\xa3a.b\xc4\x01\x01"), task: delayed.NewGoTask("a.b", 2, 3),
			want: wire.Message{
				Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x92, 2, 3},
				Meta: wire.Meta{HasN: true, N: 2},
			},
		},
		{
			name: "arguments in another form",
			old:  extra(wire.Extra{Timeout: 7}), task: delayed.NewGoTask("a.b", 2),
			want: wire.Message{
				Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x91, 2},
				Meta: wire.Meta{ID: "x", HasN: true, N: 1, Extra: &wire.Extra{Timeout: 7}},
			},
		},
		{
			name: "arguments of a Python task",
			old:  []byte("\x92\xa3a:b\x91\x01"), task: delayed.NewPyTask("a:b", []any{2}, map[string]any{"k": 1}),
			want: wire.Message{
				Kind: wire.Py, Path: "a:b",
				Py: &wire.PyCall{Args: []byte{0x91, 2}, Kwargs: []byte("\x81\xa1k\x01")},
			},
		},
		{
			name: "arguments of what is no message",
			old:  []byte("no message"), task: delayed.NewGoTask("a.b", 2),
			want: wire.Message{
				Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x91, 2},
				Meta: wire.Meta{ID: "f", HasN: true, N: 1},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Do("HSET", b.Name+"_tasks", "f", c.old)
			b.Do("ZADD", b.Name+"_archived", later, "f")
			if c.task != nil {
				b.Must(b.q.Ref("f").RunAgainWith(b.within(), c.task))
			} else {
				b.Must(b.q.Ref("f").RunAgain(b.within()))
			}
			want := c.old
			if c.due {
				begin := redistest.Time(t, b.Conn) - time.Minute.Milliseconds()
				found, err := wire.Parse([]byte(b.List("")[0]), wire.WorkerLimits)
				b.Must(err)
				c.want.Meta.Extra.Due = found.Meta.Extra.Due
				if due := found.Meta.Extra.Due; due < begin || due > begin+time.Hour.Milliseconds() {
					t.Errorf("due at %d, expected the present, about %d", due, begin)
				}
			}
			if !c.same {
				want = c.want.Append(nil)
			}
			if found := b.List(""); len(found) != 1 || found[0] != string(want) {
				t.Errorf("found %q, expected %q", found, want)
			}
			if n := b.Size("_archived") + b.Size("_tasks"); n != 0 {
				t.Errorf("%d elements are left in the archive", n)
			}
		})
	}
}

// TestTaskOnItsWayIsLeftAlone leaves tasks to an inspector that moves them, until it is clear that it has given up.
func TestTaskOnItsWayIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := b.within()
	for id, ago := range map[string]time.Duration{"young": time.Second, "old": time.Hour} {
		b.Do("ZADD", b.Name+"_archived", time.Now().Add(time.Hour).UnixMilli(), id)
		msg := wire.Message{Kind: wire.GoExtended, Path: "a.b", Meta: wire.Meta{ID: id}}
		b.Do("HSET", b.Name+"_tasks", id, msg.Append(nil))
		info := wire.Info{Reason: "moving", At: time.Now().Add(-ago)}
		b.Do("HSET", b.Name+"_info", id, info.Encode())
	}
	young := b.q.Ref("young")
	for what, err := range map[string]error{
		"RunAgain": young.RunAgain(ctx), "RunAgainWith": young.RunAgainWith(ctx, delayed.NewGoTask("a.b", 1)),
		"Delete": young.Delete(ctx),
	} {
		if !errors.Is(err, delayed.ErrNotArchived) || !strings.Contains(err.Error(), "on its way to another queue") {
			t.Errorf("%s: found %v", what, err)
		}
	}
	n, err := b.q.DeleteArchived(ctx, func(i delayed.TaskInfo) bool { return i.ID == "young" })
	if n != 0 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	if n, err := b.q.RunArchivedAgain(ctx, nil); n != 1 || err != nil {
		t.Errorf("%d tasks run again, %v, expected the one that nobody moves any more", n, err)
	}
	if pending := b.pending(); len(pending) != 1 || pending[0].Meta.ID != "old" {
		t.Errorf("pending: %+v", pending)
	}
	b.Do("DEL", b.Name+"_archived", b.Name+"_tasks", b.Name+"_info", b.Name, b.Name+"_noti")
}

// between returns a source that calls a function once, right before the first call of a script that writes an entry.
func between(src delayed.Source, then func()) delayed.Source {
	var once sync.Once
	entry, tick := redisstore.Scripts["entry"].Sha, redisstore.Scripts["tick"].Sha
	return redistest.Intercept(src, func(cmd string, args []any, send func() (any, error)) (any, error) {
		if cmd == "EVALSHA" && (args[0] == entry || args[0] == tick) {
			once.Do(then)
		}
		return send()
	})
}

// TestChangesBetweenReadAndWrite makes one change of an entry after another one has read it and before that one writes
// it: both changes hold, or the later one returns why not.
func TestChangesBetweenReadAndWrite(t *testing.T) {
	type change func(b *bench, rdb *delayed.Store) error
	set := func(b *bench, rdb *delayed.Store) error {
		return b.periodicOn(rdb).Set(bg, delayed.Entry{Name: "e", Spec: "@every 2h"})
	}
	create := func(b *bench, rdb *delayed.Store) error {
		return b.periodicOn(rdb).Set(bg,
			delayed.Entry{Name: "e", Spec: "@every 2h", Task: delayed.Call(b.fn("other", func() {}))})
	}
	pause := func(b *bench, rdb *delayed.Store) error { return b.periodicOn(rdb).Pause(bg, "e") }
	resume := func(b *bench, rdb *delayed.Store) error { return b.periodicOn(rdb).Resume(bg, "e") }
	remove := func(b *bench, rdb *delayed.Store) error { return b.periodicOn(rdb).Remove(bg, "e") }
	run := func(b *bench, rdb *delayed.Store) error { return second(b.periodicOn(rdb).RunNow(bg, "e")) }
	tick := func(b *bench, rdb *delayed.Store) error {
		return seam.Tick(bg, b.scheduler(rdb, ""))
	}
	for _, c := range []struct {
		name          string
		paused        bool // paused at the start
		outer, inner  change
		err           error
		want          string // the expected entry
		tasks, lately int    // pending tasks afterwards, and how many of them belong to the changed entry
	}{
		{name: "pause while it is set", outer: set, inner: pause, want: "@every 2h paused"},
		{name: "set while it is paused", outer: pause, inner: set, want: "@every 2h paused"},
		{name: "resume while it is set", paused: true, outer: set, inner: resume, want: "@every 2h"},
		{name: "set while it is resumed", paused: true, outer: resume, inner: set, want: "@every 2h"},
		{name: "pause while it runs now", outer: run, inner: pause, want: "@every 1h paused", tasks: 1},
		{name: "resume while it runs now", paused: true, outer: run, inner: resume, want: "@every 1h", tasks: 1},
		{name: "run now while it is paused", outer: pause, inner: run, want: "@every 1h paused", tasks: 1},
		{name: "run now while it is resumed", paused: true, outer: resume, inner: run, want: "@every 1h", tasks: 1},
		{name: "run now while it is set", outer: set, inner: run, want: "@every 2h", tasks: 1},
		{name: "set while it runs now", outer: run, inner: create, want: "@every 2h", tasks: 1, lately: 1},
		{name: "pause while it ticks", outer: tick, inner: pause, want: "@every 1h paused"},
		{name: "set while it ticks", outer: tick, inner: set, want: "@every 2h"},
		{name: "run now while it ticks", outer: tick, inner: run, want: "@every 1h", tasks: 2},
		{name: "tick while it is paused", outer: pause, inner: tick, want: "@every 1h paused", tasks: 1},
		{name: "remove while it is paused", outer: pause, inner: remove, err: delayed.ErrNoEntry},
		{name: "remove while it runs now", outer: run, inner: remove, err: delayed.ErrNoEntry},
		{name: "remove while it ticks", outer: tick, inner: remove},
		{name: "remove while it is set", outer: create, inner: remove, want: "@every 2h"},
		{name: "set while it is removed", outer: remove, inner: set},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			p := b.periodic()
			b.Must(p.Set(bg, delayed.Entry{Name: "e", Spec: "@every 1h", Task: delayed.Call(b.fn("first", func() {}))}))
			if c.paused {
				b.Must(p.Pause(bg, "e"))
			} else {
				b.rewind("e", time.Hour) // so that one tick is due
			}
			came := false
			src := between(b.src, func() {
				came = true
				b.Must(c.inner(b, b.rdb))
			})
			if err := c.outer(b, delayed.FromSource(src)); !errors.Is(err, c.err) || !came {
				t.Errorf("found the error %v, expected %v; the other came in between: %v", err, c.err, came)
			}
			all, err := p.List(bg)
			b.Must(err)
			found, ticks := "", 0
			for _, e := range all {
				found = e.Spec
				if ticks = 1; e.Paused {
					found, ticks = found+" paused", 0
				}
				if e.Paused != e.Next.IsZero() {
					t.Errorf("found %+v", e)
				}
			}
			if found != c.want || b.Size("_ticks") != ticks {
				t.Errorf("the entry is %q, expected %q; %d times are noted", found, c.want, b.Size("_ticks"))
			}
			lately := 0
			for _, m := range b.pending() {
				if strings.HasSuffix(m.Path, ".other") {
					lately++
				}
			}
			if ids := b.pendingIDs(); len(ids) != c.tasks || lately != c.lately {
				t.Errorf("%v are pending, expected %d tasks; %d of the changed entry, expected %d", ids, c.tasks,
					lately, c.lately)
			}
		})
	}
}

func TestUnknownFunctionIsParkedUntilAWorkerKnowsIt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var known, later atomic.Int64
	f := b.fn("known", func(int) { known.Add(1) })
	g := b.fn("later", func(int) { later.Add(1) })
	w := b.work(b.config(), f)
	ref := b.delay(g, 1)
	for i := range 250 {
		b.delay(g, i)
	}
	b.delay(f, 1)
	b.Until("all are parked", func() bool { return b.Size("_parked") == 251 && known.Load() == 1 })
	b.Check(redistest.Invariants{})
	info := b.Hash("_info")[ref.ID()]
	if !strings.Contains(info, "unknown function") || !strings.Contains(info, b.Name+".later") {
		t.Errorf("info %q", info)
	}
	if err := w.Register(g); err != nil { // while the worker runs
		t.Fatal(err)
	}
	b.Until("they have run", func() bool { return later.Load() == 251 })
	b.Idle()
	if b.Size("_parked")+b.Size("_tasks")+b.Size("_info") != 0 {
		t.Errorf("left: %v", redistest.Dump(t, b.Conn, b.Name))
	}
}

func TestParkedTasksOfOthersDoNotHideThoseOfOurs(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var ran atomic.Int64
	foreign := b.fn("foreign", func(int) {})
	ours := b.fn("ours", func(int) { ran.Add(1) })
	w := b.work(b.config())
	for i := range 3 * redisstore.ParkedPage {
		b.delay(foreign, i)
	}
	b.Until("they are parked", func() bool { return b.Size("_parked") == 3*redisstore.ParkedPage })
	for i := range redisstore.ParkedPage {
		b.delay(ours, i)
	}
	b.Until("ours are parked", func() bool { return b.Size("_parked") == 4*redisstore.ParkedPage })
	w.mustStop()
	b.work(b.config(), ours)
	b.Until("ours have run", func() bool { return ran.Load() == redisstore.ParkedPage })
	if n := b.Size("_parked"); n != 3*redisstore.ParkedPage {
		t.Errorf("%d parked, expected %d", n, 3*redisstore.ParkedPage)
	}
}

func TestPythonTaskIsParkedOrHandedOn(t *testing.T) {
	b := newBench(t)
	task := delayed.NewPyTask("m:f", []any{1, "a"}, map[string]any{"k": true})
	if _, err := b.q.Enqueue(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	message := b.List("")[0]
	w := b.work(b.config())
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	for _, m := range b.Hash("_tasks") {
		if m != message {
			t.Errorf("parked as %q, expected %q", m, message)
		}
	}
	w.mustStop()
	if _, err := b.q.Enqueue(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	want := []string{message, b.List("")[0]}
	cfg := b.config()
	cfg.PythonQueue = b.Name + "-py"
	b.work(cfg)
	b.Until("it is handed on, and so is the one that was parked",
		func() bool { return b.Size("-py") == 2 && b.Size("-py_noti") == 2 && b.Size("_parked") == 0 })
	got, err := redis.Strings(b.Conn.Do("LRANGE", b.Name+"-py", 0, -1))
	b.Must(err)
	if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("handed on as %q, expected %q", got, want)
	}
	b.Idle()
}

func TestUndecodableMessageIsArchivedAsItIs(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(int) { ran.Add(1) })
	rubbish := []string{
		"", "\xc1", "\x92\xa3foo", "not a message", "\x93\xa1a\xc4\x01", strings.Repeat("\x91", 5000),
		"\x82\xa1a\x01\xa1b\x02",
	}
	for _, m := range rubbish {
		b.Do("RPUSH", b.Name, m)
		b.Do("RPUSH", b.Name+"_noti", "1")
		b.delay(f, 1)
	}
	b.work(b.config(), f)
	b.Until("all are archived",
		func() bool { return b.Size("_archived") == len(rubbish) && ran.Load() == int64(len(rubbish)) })
	left := map[string]bool{}
	for _, m := range b.Hash("_tasks") {
		left[m] = true
	}
	for _, m := range rubbish {
		if !left[m] {
			t.Errorf("%q is not in the archive", m)
		}
	}
	b.Idle()
	b.Check(redistest.Invariants{})
}

// TestNoValueAndNoControlCharacterIsKept: no line of the log and nothing that Redis keeps contains argument values or
// control characters of a task.
func TestNoValueAndNoControlCharacterIsKept(t *testing.T) {
	b := newBench(t)
	const secret, forged = "hunter2", "\n2026-01-01 level=error msg=forged\x1b[2J"
	f := b.fn("f", func(n int8, s string) error { return errors.New("two\nlines\x1b") })
	path := b.Name + ".f"
	payload := func(args ...any) []byte {
		p, _, err := function.EncodeArgs(wire.ByName, "a.b", args, nil)
		b.Must(err)
		return p
	}
	four := 873_193_751
	for i, m := range []wire.Message{
		{Kind: wire.GoExtended, Path: path, Payload: payload(four, secret), Meta: wire.Meta{HasN: true, N: 2}},
		{Kind: wire.GoExtended, Path: path, Payload: payload(1, four), Meta: wire.Meta{HasN: true, N: 2}},
		{Kind: wire.GoExtended, Path: path, Payload: payload(secret), Meta: wire.Meta{HasN: true, N: 1}},
		{Kind: wire.GoExtended, Path: path, Payload: payload(float64(four), true), Meta: wire.Meta{HasN: true, N: 2}},
		{
			Kind: wire.GoExtended, Path: path, Payload: payload(map[string]int{secret: four}, ""),
			Meta: wire.Meta{HasN: true, N: 2},
		},
		{Kind: wire.GoPlain, Path: path, Payload: wire.AppendInt(nil, int64(four))},
		{Kind: wire.GoPlain, Path: "a.b" + forged},
		{
			Kind: wire.GoExtended, Path: path, Payload: payload(1, secret),
			Meta: wire.Meta{HasN: true, N: 2, HasMaxRetry: true},
		},
	} {
		if m.Kind == wire.GoExtended {
			m.Meta.ID = fmt.Sprint(i, forged)
		}
		b.Do("RPUSH", b.Name, m.Append(nil))
		b.Do("RPUSH", b.Name+"_noti", "1")
	}
	rubbish := [][]byte{
		wire.AppendInt(nil, int64(four)),
		append([]byte("\x92\xa1f"), wire.AppendInt(nil, int64(four))...),
	}
	for _, m := range rubbish {
		b.Do("RPUSH", b.Name, m)
		b.Do("RPUSH", b.Name+"_noti", "1")
	}
	w := b.work(b.config(), f)
	b.Until("all are filed", func() bool { return b.Size("_archived")+b.Size("_parked") == 8+len(rubbish) })
	w.mustStop()
	texts := map[string]string{"log": b.log.String()}
	for id, raw := range b.Hash("_info") {
		i := wire.ParseInfo([]byte(raw))
		texts["info of "+id] = i.Error + i.Function + string(i.Reason)
		if strings.ContainsFunc(i.Error+i.Function+string(i.Reason), wire.IsControl) {
			t.Errorf("%q holds control characters: %+v", id, i)
		}
	}
	for what, text := range texts {
		if strings.Contains(text, secret) || strings.Contains(text, fmt.Sprint(four)) {
			t.Errorf("%s holds a value: %s", what, text)
		}
		for line := range strings.Lines(text) {
			if strings.HasPrefix(line, "2026-01-01") ||
				strings.ContainsFunc(strings.TrimSuffix(line, "\n"), wire.IsControl) {
				t.Errorf("%s has the line %q", what, line)
			}
		}
	}
}

func TestParkedForTooLongIsArchived(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	g := b.fn("g", func(int) {})
	w := b.work(b.config())
	ref := b.delay(g, 1)
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	w.mustStop()
	b.Do("ZADD", b.Name+"_parked", time.Now().Add(-time.Second).UnixMilli(), ref.ID())
	b.work(b.config())
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 && b.Size("_parked") == 0 })
	info := b.Hash("_info")[ref.ID()]
	if !strings.Contains(info, "parked too long") || !strings.Contains(info, b.Name+".g") {
		t.Errorf("info %q", info)
	}
	b.Check(redistest.Invariants{})
}

// TestTextsForLogsAreOneLine: texts that callers log themselves stay one line, whatever id the producer has chosen.
func TestTextsForLogsAreOneLine(t *testing.T) {
	const forged = "x\n2026-01-01 level=error\x1b[2J\u2028"
	b := newBench(t)
	q := delayed.NewQueue("mail", b.rdb.WithPrefix(forged))
	m := wire.Message{Kind: wire.GoExtended, Path: "a.b" + forged, Meta: wire.Meta{ID: forged}}
	b.Do("RPUSH", b.Name, m.Append(nil))
	b.Do("RPUSH", b.Name+"_noti", "1")
	w, h := b.listened(b.config())
	b.start(w)
	b.Until("the task is parked", func() bool { return len(h.of(event.TaskParked)) == 1 })
	for what, text := range map[string]string{
		"Queue":     q.String(),
		"Ref":       q.Ref(forged).String(),
		"Task":      h.of(event.TaskParked)[0].Task.String(),
		"TaskError": (&delayed.TaskError{ID: forged, Text: forged}).Error(),
	} {
		if strings.ContainsFunc(text, wire.IsControl) || !strings.Contains(text, `x\n2026-01-01`) {
			t.Errorf("%s: %q", what, text)
		}
	}
}

func TestParkedTasksAreVisible(t *testing.T) {
	b := newBench(t)
	w := b.work(b.config())
	before := time.UnixMilli(redistest.Time(t, b.Conn)).Add(-time.Second)
	ref := b.delay(b.fn("unknown", func(int) {}), 1)
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	parked := redistest.Time(t, b.Conn) // tasks that are parked in the same millisecond are in the order of their ids
	b.Until("the clock has gone on", func() bool { return redistest.Time(t, b.Conn) > parked })
	if _, err := b.q.Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil)); err != nil {
		t.Fatal(err)
	}
	b.Until("both are parked", func() bool { return b.Size("_parked") == 2 })
	page, total, err := b.q.Parked(t.Context(), 0, 10)
	if err != nil || total != 2 || len(page) != 2 {
		t.Fatalf("found %+v of %d, %v", page, total, err)
	}
	task := page[0]
	if task.ID != ref.ID() || task.State != state.Parked || task.Function != b.Name+".unknown" ||
		task.Reason != "unknown function" || task.Worker != w.ID() ||
		task.At.Before(before) || task.Due.Sub(task.At) < lifecycle.ParkedLife-time.Minute ||
		task.Due.Sub(task.At) > lifecycle.ParkedLife+time.Minute {
		t.Errorf("found %+v", task)
	}
	if page[1].Function != "m:f" || page[1].Reason != "python" {
		t.Errorf("found %+v", page[1])
	}
	if page, total, err = b.q.Parked(t.Context(), 1, 1); err != nil || total != 2 || len(page) != 1 ||
		page[0].Function != "m:f" {
		t.Errorf("second page: found %+v of %d, %v", page, total, err)
	}
	for _, wrong := range [][2]int{{-1, 1}, {0, 0}, {0, redisstore.MaxListPage + 1}} {
		if _, _, err := b.q.Parked(t.Context(), wrong[0], wrong[1]); err == nil ||
			!strings.Contains(err.Error(), "1 to 1000") {
			t.Errorf("Parked(%d, %d): found %v", wrong[0], wrong[1], err)
		}
	}
}

// shortestLife is the shortest HeartbeatLife that is accepted.
const shortestLife = 500 * time.Millisecond

// deadWorker creates what a killed worker leaves: claims, and no heartbeat. It returns the worker's id.
func (b *bench) deadWorker(messages ...string) string {
	b.T.Helper()
	id := wire.NewWorkerID()
	b.Do("SADD", b.Name+"_workers", id)
	for i, m := range messages {
		b.Do("HSET", b.Name+"_processing:"+id, fmt.Sprintf("1-%d", i+1), m)
	}
	b.Do("HSET", b.Name+"_claims:"+id, "1", "1")
	return id
}

// sweep gives back the claims of dead workers of the queue, at the first look.
func (b *bench) sweep() {
	b.T.Helper()
	g := sweep.NewGroup(sweep.Config{
		Stores: []*redisstore.Store{b.store}, Log: loop.NewJournal(b.log.Logger()),
		ArchiveMax: lifecycle.MaxArchived, ArchiveFor: lifecycle.ArchivedLife,
	})
	b.Must(g.SweepAll(context.Background()))
}

func TestSweeperRunsAlone(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{20 * time.Millisecond, time.Hour} {
		t.Run(interval.String(), func(t *testing.T) {
			t.Parallel()
			sweepAlone(t, interval)
		})
	}
}

// sweepAlone lets a worker die between two passes of a sweeper, which looks at least once in the life of a heartbeat.
func sweepAlone(t *testing.T, interval time.Duration) {
	t.Helper()
	b := newBench(t)
	s, err := delayed.NewSweeper(b.rdb, delayed.SweeperConfig{
		Queues: []string{b.Name}, Interval: interval, HeartbeatLife: shortestLife, Logger: b.log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	b.Until("it has made a pass", func() bool { return b.Int("EXISTS", b.Name+"_sweeper") == 1 })
	b.deadWorker("m1", "m2")
	b.Until("it is swept", func() bool { return b.Size("") == 2 })
	cancel()
	if err := await(b, "Run", result); err != nil {
		t.Error(err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("second Run: %v", err)
	}
}

func TestSweeperCarriesOnAfterRedisWasAway(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t, "--appendonly", "yes"))
	s, err := delayed.NewSweeper(b.rdb, delayed.SweeperConfig{
		Queues: []string{b.Name}, Interval: 20 * time.Millisecond, HeartbeatLife: shortestLife, Logger: b.log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-result })
	b.Until("it has taken the lock",
		func() bool { n, _ := redis.Int(b.Conn.Do("EXISTS", b.Name+"_sweeper")); return n == 1 })
	b.Server.Kill(t)
	b.Until("it has noticed", func() bool { return strings.Contains(b.log.String(), "cannot sweep") })
	b.Server.Restart(t)
	b.Conn = b.Server.Dial(t)
	b.deadWorker("m")
	b.Until("it is swept", func() bool { return b.Size("") == 1 })
}

// oversized is a message that no worker reads.
var oversized = strings.Repeat("x", wire.WorkerLimits.Bytes+1)

// TestLargeMessageAmongOthers archives a message that is too large, and runs those before and after it.
func TestLargeMessageAmongOthers(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 10)
	f := b.fn("f", func(i int) { ran <- i })
	w, h := b.listened(b.config())
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	b.delay(f, 1)
	b.Do("RPUSH", b.Name, oversized)
	b.delay(f, 2)
	s := b.start(w)
	sum := await(b, "a task", ran) + await(b, "a task", ran)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	s.mustStop()
	if sum != 3 {
		t.Errorf("ran other tasks than 1 and 2")
	}
	if got := h.of(event.TaskArchived); len(got) != 1 || got[0].Reason != "too large" || got[0].Err == nil {
		t.Errorf("events %+v", got)
	}
	page, _, err := b.q.Archived(t.Context(), 0, 10)
	if err != nil || len(page) != 1 || page[0].Reason != "too large" ||
		!strings.Contains(page[0].Error, fmt.Sprint(len(oversized), " bytes")) {
		t.Fatalf("archived %+v, %v", page, err)
	}
	ref := b.q.Ref(page[0].ID)
	if b.Hash("_tasks")[page[0].ID] != oversized {
		t.Error("the message is not archived as it was")
	}
	if info, err := ref.Info(t.Context()); err != nil || info.State != state.Archived || info.Error != page[0].Error {
		t.Errorf("info %+v, %v", info, err)
	}
	for _, again := range []error{ref.RunAgain(t.Context()), ref.RunAgainWith(t.Context(), delayed.Call(f, 3))} {
		if again == nil || errors.Is(again, delayed.ErrNotArchived) || !strings.Contains(again.Error(), "delete it") {
			t.Errorf("running it again: %v", again)
		}
	}
	if n, err := b.q.RunArchivedAgain(t.Context(), nil); n != 0 || err != nil {
		t.Errorf("%d ran again, %v", n, err)
	}
	if err := ref.Delete(t.Context()); err != nil {
		t.Error(err)
	}
	b.Check(redistest.Invariants{Idle: true})
}

// TestLargeParkedTask archives a parked task that is too large. Its info contains the function, so a worker finds it.
func TestLargeParkedTask(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() {})
	info := wire.Info{Reason: "unknown function", Function: b.Name + ".f"}
	b.Do("HSET", b.Name+"_tasks", "p", oversized)
	b.Do("HSET", b.Name+"_info", "p", info.Encode())
	b.Do("ZADD", b.Name+"_parked", time.Now().Add(time.Hour).UnixMilli(), "p")
	w, h := b.listened(b.config())
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	s := b.start(w)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	s.mustStop()
	if got := h.of(event.TaskArchived); len(got) != 1 || got[0].Reason != "too large" {
		t.Errorf("events %+v", got)
	}
	b.Check(redistest.Invariants{Idle: true})
}

// TestLargeDueTasks archives due tasks that are too large, and moves the others.
func TestLargeDueTasks(t *testing.T) {
	b := newBench(t)
	for set, id := range map[string]string{"_scheduled": "s", "_retry": "r"} {
		b.Do("HSET", b.Name+"_tasks", id, oversized, id+"2", "rubbish")
		b.Do("ZADD", b.Name+set, 1000, id, 1000, id+"2")
	}
	cfg := b.config()
	cfg.ArchiveFor = time.Hour
	w, h := b.listened(cfg)
	s := b.start(w)
	b.Until("all are archived", func() bool { return b.Size("_archived") == 4 })
	s.mustStop()
	if got := h.of(event.TaskArchived); len(got) != 4 {
		t.Errorf("events %+v", got)
	}
	for _, id := range []string{"s", "r"} {
		info, err := b.q.Ref(id).Info(t.Context())
		if err != nil || info.State != state.Archived || info.Reason != "too large" ||
			time.Until(info.Due) > cfg.ArchiveFor {
			t.Errorf("%s: %+v, %v, expected to be kept for %v", id, info, err, cfg.ArchiveFor)
		}
	}
	if n := b.counters()["archived"]; n != 4 {
		t.Errorf("%d are counted as archived", n)
	}
}

// TestLargeMemberOfAGroup combines the other members into a call, and archives the one that is too large.
func TestLargeMemberOfAGroup(t *testing.T) {
	b := newBench(t)
	ran := make(chan []int, 10)
	f := b.fn("f", func(list ...int) { ran <- list })
	q := b.q.With(delayed.Group("g"), delayed.Gather(delayed.GatherPolicy{Grace: 50 * time.Millisecond}))
	b.delayWith(q, f, 1)
	group := b.Do("ZRANGE", b.Name+"_groups", 0, 0)
	name := fmt.Sprintf("%s", group.([]any)[0]) //nolint:errcheck // it is one
	b.Do("RPUSH", b.Name+"_group:"+name, oversized)
	b.delayWith(q, f, 2)
	if groups, err := b.groups(); err != nil || len(groups) != 1 || groups[0].Size != 3 ||
		groups[0].Key != "g" {
		t.Errorf("groups %+v, %v", groups, err)
	}
	w := b.work(b.config(), f)
	first, second := await(b, "a call", ran), await(b, "a call", ran)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	w.mustStop()
	if fmt.Sprint(first, second) != "[1] [2]" {
		t.Errorf("called with %v and %v", first, second)
	}
}
