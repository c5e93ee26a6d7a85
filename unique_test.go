package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// inTheWay checks that a call was refused because of the task with this id.
func inTheWay(t *testing.T, err error, id string) {
	t.Helper()
	var dup *delayed.DuplicateError
	if !errors.As(err, &dup) || dup.ID != id || !errors.Is(err, delayed.ErrDuplicate) {
		t.Errorf("expected a DuplicateError with the id %q, found %v", id, err)
	}
}

// TestOneOfManyProducersHasTheLock: exactly one task is enqueued, and all refused producers get its id.
func TestOneOfManyProducersHasTheLock(t *testing.T) {
	for name, opts := range map[string][]delayed.Option{
		"arguments": {delayed.Unique(time.Hour)}, "key": {delayed.UniqueKey("k", time.Hour)},
		"id":    {delayed.TaskID("k")},
		"later": {delayed.Unique(time.Hour), delayed.In(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			f := b.fn("f", func(int) {})
			q := b.q.With(opts...)
			var group sync.WaitGroup
			start := make(chan struct{})
			var ok atomic.Pointer[delayed.Ref]
			var mu sync.Mutex
			refused := map[string]int{}
			for range 50 {
				group.Go(func() {
					<-start
					ref, err := q.Delay(f, 1)
					var dup *delayed.DuplicateError
					switch {
					case err == nil && !ok.CompareAndSwap(nil, ref):
						t.Error("two tasks were accepted")
					case errors.As(err, &dup):
						mu.Lock()
						refused[dup.ID]++
						mu.Unlock()
					case err != nil:
						t.Error(err)
					}
				})
			}
			close(start)
			group.Wait()
			if ref := ok.Load(); ref == nil || refused[ref.ID()] != 49 {
				t.Errorf("%v was accepted, others were refused because of %v", ref, refused)
			}
			if n := b.Size("") + b.Size("_scheduled"); n != 1 {
				t.Errorf("%d tasks stand", n)
			}
			b.Check(redistest.Invariants{})
		})
	}
}

// TestWhatIsTheSame compares calls: the lock covers function and arguments.
func TestWhatIsTheSame(t *testing.T) {
	b := newBench(t)
	f, g := b.fn("f", func(int, string) {}), b.fn("g", func(int, string) {})
	one := b.fn("one", func([]int) {})
	ctx := t.Context()
	q := b.q.With(delayed.Unique(time.Hour))
	first := b.delayWith(q, f, 1, "a")
	for _, same := range []*delayed.Task{
		delayed.Call(f, 1, "a"), delayed.Call(f, int64(1), "a"),
		delayed.NewGoTask(b.Name+".f", 1, "a"),
	} {
		_, err := q.Enqueue(ctx, same)
		inTheWay(t, err, first.ID())
	}
	for _, other := range []*delayed.Task{
		delayed.Call(f, 2, "a"), delayed.Call(f, 1, "b"), delayed.Call(g, 1, "a"), delayed.Call(one, []int{1}),
		delayed.Call(one, []int{1, 2}),
	} {
		if _, err := q.Enqueue(ctx, other); err != nil {
			t.Errorf("another call was refused: %v", err)
		}
	}
	_, err := q.Enqueue(ctx, delayed.NewGoTask(b.Name+".one", []int{1}))
	if !errors.Is(err, delayed.ErrDuplicate) {
		t.Errorf("one argument, by path: %v", err)
	}
	key := b.q.With(delayed.UniqueKey(first.ID(), time.Hour))
	first = b.delayWith(key, f, 1, "a")
	_, err = key.Delay(g, 2, "b")
	inTheWay(t, err, first.ID())
	b.delay(f, 1, "a") // this call is not unique
}

// TestUntilStart: the lock ends when the task starts, so the task may enqueue itself.
func TestUntilStart(t *testing.T) {
	b := newBench(t)
	q := b.q.With(delayed.Unique(time.Hour), delayed.UntilStart())
	ran, again := make(chan struct{}, 1), make(chan error, 2)
	var self *delayed.Function
	rounds := 0
	self = b.fn("f", func() {
		if rounds++; rounds <= 2 {
			_, err := q.Delay(self)
			again <- err
			return
		}
		ran <- struct{}{}
	})
	ref := b.delayWith(q, self)
	_, err := q.Delay(self)
	inTheWay(t, err, ref.ID())
	cfg := b.config()
	cfg.Concurrency = 1
	b.work(cfg, self)
	for range 2 {
		if err := await(b, "the task", again); err != nil {
			t.Errorf("from the task itself: %v", err)
		}
	}
	await(b, "the last", ran)
	b.unlocked()
}

// TestUntilStartOfAParkedTask: a task that waits for a worker with its struct fields has not started, so it keeps its
// lock.
func TestUntilStartOfAParkedTask(t *testing.T) {
	b := newBench(t)
	name := delayed.Name(b.Name + ".f")
	type full struct{ A, B int }
	ran := make(chan full, 2)
	f := delayed.Func(func(v full) { ran <- v }, name)
	q := b.q.With(delayed.UniqueKey("k", time.Hour), delayed.UntilStart())
	old := b.work(b.config(), delayed.Func(func(struct{ A int }) { t.Error("it ran without a field") }, name))
	ref := b.delayWith(q, f, full{1, 2})
	b.Until("it is parked", func() bool { return b.Size("_parked") == 1 })
	if c := b.counters(); c["parked"] != 1 || !strings.Contains(b.Hash("_info")[ref.ID()], "unknown fields") {
		t.Errorf("counters %v, info %v", c, b.Hash("_info"))
	}
	_, err := q.Delay(f, full{3, 4})
	inTheWay(t, err, ref.ID())
	old.mustStop()
	b.work(b.config(), f)
	if got := await(b, "the task", ran); got != (full{1, 2}) {
		t.Errorf("ran with %+v", got)
	}
	b.Idle()
	b.unlocked()
	b.delayWith(q, f, full{3, 4})
	await(b, "the next", ran)
	b.Idle()
}

// TestOnConflictSkip: the call returns the Ref of the existing task.
func TestOnConflictSkip(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {}, delayed.Unique(time.Hour), delayed.OnConflict(delayed.ConflictSkip))
	ref := b.delay(f, 1)
	for range 3 {
		if again := b.delay(f, 1); again.ID() != ref.ID() {
			t.Errorf("%v, expected %v", again, ref)
		}
	}
	q := b.q.With(delayed.TaskID("x"), delayed.OnConflict(delayed.ConflictSkip), delayed.In(time.Hour))
	first, again := b.delayWith(q, f, 2), b.delayWith(q, f, 3)
	if first.ID() != "x" || again.ID() != "x" || b.Size("") != 1 || b.Size("_scheduled") != 1 {
		t.Errorf("%v and %v, %d pending, %d scheduled", first, again, b.Size(""), b.Size("_scheduled"))
	}
	if _, err := b.q.With(delayed.OnConflict(delayed.ConflictFail)).Delay(f, 1); !errors.Is(err, delayed.ErrDuplicate) {
		t.Errorf("the call's option does not hold: %v", err)
	}
}

// TestUniqueMany enqueues many tasks at once, some of them the same.
func TestUniqueMany(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 2000)
	f, plain := b.fn("f", func(n int) { ran <- n }, delayed.Unique(time.Hour)), b.fn("plain", func(n int) { ran <- n })
	ctx := t.Context()
	calls := make([]*delayed.Task, 1200)
	for i := range calls {
		calls[i] = delayed.Call(f, i/2) // each twice
		if i%3 == 0 {
			calls[i] = delayed.Call(plain, i)
		}
	}
	_, err := b.q.DelayMany(ctx, calls...)
	var batch *delayed.BatchError
	if !errors.As(err, &batch) || batch.Sent != 0 || !errors.Is(err, delayed.ErrDuplicate) ||
		!strings.Contains(err.Error(), "task 6:") {
		t.Errorf("expected that task 6 is refused, found %v", err)
	}
	if _, err := b.q.With(delayed.OnConflict(delayed.ConflictSkip)).DelayMany(ctx, calls...); !errors.Is(err,
		delayed.ErrArguments) {
		t.Errorf("OnConflict for tasks without a lock: %v", err)
	}
	skipping := b.fn("f", func(n int) { ran <- n }, delayed.Unique(time.Hour), delayed.OnConflict(delayed.ConflictSkip))
	distinct := map[string]bool{}
	for i := range calls {
		if i%3 != 0 {
			calls[i] = delayed.Call(skipping, i/2)
		}
	}
	refs, err := b.q.DelayMany(ctx, calls...)
	if err != nil {
		t.Fatal(err)
	}
	for i, ref := range refs {
		distinct[ref.ID()] = true
		if i%6 == 5 && ref.ID() != refs[i-1].ID() {
			t.Errorf("tasks %d and %d are the same, but have the ids %s and %s", i-1, i, refs[i-1].ID(), ref.ID())
		}
	}
	if len(distinct) != 1000 || b.Size("") != 1000 {
		t.Errorf("%d ids, %d tasks, expected 1000", len(distinct), b.Size(""))
	}
	b.work(b.config(), f, plain)
	for range 1000 {
		await(b, "a task", ran)
	}
	b.unlocked()
}

// TestUniquePythonTask: the extended form of a Python message contains the lock.
func TestUniquePythonTask(t *testing.T) {
	b := newBench(t)
	q, err := delayed.OpenQueue(b.Name, b.rdb, delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	q = q.With(delayed.Unique(time.Hour))
	ref, err := q.Enqueue(t.Context(), delayed.NewPyTask("m:f", []any{1}, map[string]any{"a": 1}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = q.Enqueue(t.Context(), delayed.NewPyTask("m:f", []any{1}, map[string]any{"a": 1}))
	inTheWay(t, err, ref.ID())
	for _, other := range []*delayed.Task{
		delayed.NewPyTask("m:f", []any{2}, map[string]any{"a": 1}), delayed.NewPyTask("m:f", []any{1}, nil),
		delayed.NewPyTask("m:g", []any{1}, map[string]any{"a": 1}),
	} {
		if _, err := q.Enqueue(t.Context(), other); err != nil {
			t.Errorf("another call was refused: %v", err)
		}
	}
	if x := b.pending()[0].Meta.Extra; x == nil || !strings.HasSuffix(b.Hash("_locks")[x.Lock], " "+ref.ID()) {
		t.Errorf("lock %+v of %v", x, b.Hash("_locks"))
	}
}

// unlocked expects that no lock is left, and that the keys are consistent.
func (b *bench) unlocked() {
	b.T.Helper()
	b.Until("all locks are free, and no task is on its way", func() bool {
		// In one step, because a task moves between two.
		return b.Int("EVAL", `return redis.call('HLEN', KEYS[1] .. '_locks') + redis.call('ZCARD', KEYS[1] .. '_retry')
			+ redis.call('LLEN', KEYS[1])
			+ #redis.call('KEYS', KEYS[1] .. '_processing:*')`, 1, b.Name) == 0
	})
	b.Check(redistest.Invariants{})
}

// TestLocksEndWithTheirTasks runs tasks to each of their ends, and enqueues them again.
func TestLocksEndWithTheirTasks(t *testing.T) {
	t.Parallel()
	no := errors.New("no")
	for name, c := range map[string]struct {
		handler func() error
		opts    []delayed.Option
	}{
		"success":    {func() error { return nil }, nil},
		"result":     {func() error { return nil }, []delayed.Option{delayed.KeepResult(time.Millisecond)}},
		"archive":    {func() error { return no }, []delayed.Option{delayed.MaxRetry(0)}},
		"retry":      {func() error { return no }, []delayed.Option{delayed.MaxRetry(2)}},
		"discard":    {func() error { return delayed.Archive(no) }, nil},
		"drop":       {func() error { return delayed.Drop(no) }, nil},
		"expiry":     {func() error { return nil }, []delayed.Option{delayed.TTL(time.Millisecond)}},
		"panic":      {func() error { panic("no") }, []delayed.Option{delayed.MaxRetry(0)}},
		"scheduled":  {func() error { return nil }, []delayed.Option{delayed.In(5 * time.Millisecond)}},
		"untilstart": {func() error { return no }, []delayed.Option{delayed.MaxRetry(1), delayed.UntilStart()}},
	} {
		for kind, lock := range map[string][]delayed.Option{
			"lock": {delayed.Unique(time.Hour)}, "id": {delayed.TaskID("x")},
			"both": {delayed.TaskID("x"), delayed.UniqueKey("x", time.Hour)},
		} {
			if name == "untilstart" && kind == "id" {
				continue
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				b := newBench(t)
				ran := make(chan struct{}, 10)
				f := b.fn("f", func() error {
					ran <- struct{}{}
					return c.handler()
				})
				q := b.q.With(append(c.opts, lock...)...)
				ref := b.delayWith(q, f)
				_, err := q.Delay(f)
				inTheWay(t, err, ref.ID())
				b.work(b.config(), f)
				if name != "expiry" {
					await(b, "the task", ran)
				}
				b.unlocked()
				b.Idle()
				if kind == "lock" {
					if _, err := q.Delay(f); err != nil {
						t.Errorf("again: %v", err)
					}
					b.unlocked()
				}
			})
		}
	}
}

// TestIDOfATaskThatIsKept: archived and completed tasks hold their ids as long as they are kept.
func TestIDOfATaskThatIsKept(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(fail bool) error {
		if fail {
			return delayed.Archive(errors.New("no"))
		}
		return nil
	})
	archived, completed := b.q.With(delayed.TaskID("a")), b.q.With(delayed.TaskID("c"), delayed.Retention(time.Hour))
	b.delayWith(archived, f, true)
	b.delayWith(completed, f, false)
	b.work(b.config(), f)
	b.Until("both are over", func() bool { return b.Size("_archived") == 1 && b.Size("_completed") == 1 })
	for id, q := range map[string]*delayed.Queue{"a": archived, "c": completed} {
		_, err := q.Delay(f, false)
		inTheWay(t, err, id)
	}
	b.unlocked()
}

// TestLockLastsThroughRetries holds a lock while its task waits for a retry, beyond its own life.
func TestLockLastsThroughRetries(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.Backoff = func(int) time.Duration { return time.Hour }
	failed := make(chan struct{}, 1)
	f := b.fn("f", func() error { failed <- struct{}{}; return errors.New("no") })
	q := b.q.With(delayed.Unique(time.Minute))
	ref := b.delayWith(q, f)
	b.work(cfg, f)
	await(b, "the task", failed)
	b.Until("it waits", func() bool { return b.Size("_retry") == 1 })
	due, _ := redistest.Dump(t, b.Conn, b.Name)["_retry"].(redistest.Zset)
	for name, value := range b.Hash("_locks") {
		expiry, _, _ := strings.Cut(value, " ")
		if at, err := strconv.ParseInt(expiry, 10, 64); err != nil || at < due[ref.ID()] {
			t.Errorf("%s lapses %v before the retry", name, time.Duration(due[ref.ID()]-at)*time.Millisecond)
		}
	}
	_, err := q.Delay(f)
	inTheWay(t, err, ref.ID())
	b.Check(redistest.Invariants{})
}

// TestLocksOfTheDead: a task that a sweeper gives back keeps its lock, and one that the sweeper archives loses it.
func TestLocksOfTheDead(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() {})
	q := b.q.With(delayed.UniqueKey("k", time.Hour), delayed.TaskID("x"))
	b.delayWith(q, f)
	for deaths := 1; deaths <= lifecycle.MaxDeaths; deaths++ {
		message := b.List("")[0]
		b.Do("DEL", b.Name, b.Name+"_noti")
		id := b.deadWorker(message)
		b.Do("HSET", b.Name+"_claims:"+id, redisstore.MarkAlone, "1-1")
		b.sweep()
		if deaths < lifecycle.MaxDeaths {
			_, err := q.Delay(f)
			inTheWay(t, err, "x")
		}
	}
	if b.Size("_archived") != 1 {
		t.Errorf("%d tasks are archived", b.Size("_archived"))
	}
	b.unlocked()
}

func TestLocksThatMakeNoSenseAreErrors(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	locked := b.fn("g", func(int) {}, delayed.Unique(time.Hour))
	for name, opts := range map[string][]delayed.Option{
		"ttl 0": {delayed.Unique(0)}, "UntilStart alone": {delayed.UntilStart()},
		"TaskID with a lock replaced": {
			delayed.TaskID("x"), delayed.Unique(time.Hour),
			delayed.OnConflict(delayed.ConflictReplace),
		},
		"TaskID until start":   {delayed.TaskID("x"), delayed.UntilStart()},
		"Debounce with TaskID": {delayed.TaskID("x"), delayed.Debounce(time.Second)},
		"Front at":             {delayed.At(time.Now()), delayed.Front()},
	} {
		q := b.q.With(opts...)
		if _, err := q.Delay(f, 1); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := q.DelayMany(t.Context(), delayed.Call(f, 1)); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s: DelayMany: %v", name, err)
		}
	}
	if _, err := b.q.DelayMany(t.Context(), delayed.Call(f, 1),
		delayed.Call(b.fn("h", func(int) {}, delayed.Unique(0)), 1)); !errors.Is(err,
		delayed.ErrArguments) || !strings.Contains(err.Error(), "task 2") {
		t.Errorf("a function's default: %v", err)
	}
	legacy, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	b.Must(err)
	for name, opts := range map[string][]delayed.Option{
		"Unique": {delayed.Unique(time.Hour)}, "UniqueKey": {delayed.UniqueKey("k", time.Hour)},
		"Debounce": {delayed.Debounce(time.Hour)},
	} {
		if _, err := legacy.With(opts...).Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil)); !errors.Is(err,
			delayed.ErrArguments) {
			t.Errorf("%s for a plain Python task: %v", name, err)
		}
	}
	if n := b.Size("") + b.Size("_scheduled") + b.Size("_locks"); n != 0 {
		t.Errorf("%d elements were written", n)
	}
	// The function's default, which the call changes to until start; and an option that is given twice.
	if _, err := b.q.With(delayed.UntilStart(), delayed.Unique(time.Hour), delayed.UniqueKey("a", time.Hour),
		delayed.UniqueKey("b", time.Minute)).Delay(locked, 1); err != nil {
		t.Error(err)
	}
	if x := b.pending()[0].Meta.Extra; x == nil || x.Lock != "k:b" || x.LockLife != time.Minute.Milliseconds() ||
		!x.LockStart {
		t.Errorf("%+v", x)
	}
}

// TestLocksEndWhenATaskIsHandedOn to another queue, whose workers do not know them.
func TestLocksEndWhenATaskIsHandedOn(t *testing.T) {
	b := newBench(t)
	q, err := delayed.OpenQueue(b.Name, b.rdb, delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.store.SettleMode(t.Context(), "extended"); err != nil {
		t.Fatal(err)
	}
	b.Do("SET", b.Name+"-py_mode", "extended")
	if _, err := q.With(delayed.Unique(time.Hour), delayed.TaskID("x")).Enqueue(t.Context(),
		delayed.NewPyTask("m:f", []any{1}, nil)); err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.PythonQueue = b.Name + "-py"
	b.work(cfg)
	b.Until("it is handed on", func() bool { return b.Size("-py") == 1 })
	b.unlocked()
}

// TestExpiredLocksAreDropped: the sweeper deletes expired locks.
func TestExpiredLocksAreDropped(t *testing.T) {
	b := newBench(t)
	for i := range redisstore.LapsePage + 5 {
		name := fmt.Sprint("k:", i)
		b.Do("HSET", b.Name+"_locks", name, fmt.Sprint(past, " x"))
	}
	b.sweep()
	b.unlocked()
}

// TestDebounceRunsTheLast: a burst of calls runs once, with the arguments of the last. All calls have one key, whether
// the function or the call gives it.
func TestDebounceRunsTheLast(t *testing.T) {
	t.Parallel()
	debounce, key := delayed.Debounce(200*time.Millisecond), delayed.UniqueKey("k", time.Hour)
	for name, opts := range map[string]struct {
		call []delayed.Option
		fn   []delayed.FuncOption
	}{
		"key after":       {call: []delayed.Option{debounce, key}},
		"key before":      {call: []delayed.Option{key, debounce}},
		"key of function": {call: []delayed.Option{debounce}, fn: []delayed.FuncOption{key}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			debounced(t, opts.call, opts.fn...)
		})
	}
}

// debounced delays a burst of calls with options that debounce them.
func debounced(t *testing.T, call []delayed.Option, fn ...delayed.FuncOption) {
	t.Helper()
	b := newBench(t)
	ran := make(chan int, 100)
	f := b.fn("f", func(n int) { ran <- n }, fn...)
	q := b.q.With(call...)
	var group sync.WaitGroup
	for p := range 10 {
		group.Go(func() {
			for i := range 20 {
				if _, err := q.Delay(f, 100*p+i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	b.delayWith(q, f, -1)
	b.work(b.config(), f) // not earlier, because on a slow machine the burst could pause for long enough
	if n := await(b, "the task", ran); n != -1 {
		t.Errorf("%d ran", n)
	}
	b.unlocked()
	b.Idle()
	if len(ran) > 0 {
		t.Errorf("%d more ran", len(ran))
	}
}

// TestReplacedWhilePending: a worker drops pending tasks that others have replaced.
func TestReplacedWhilePending(t *testing.T) {
	for name, opts := range map[string][]delayed.Option{"until end": nil, "until start": {delayed.UntilStart()}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ran := make(chan int, 100)
			f := b.fn("f", func(n int) { ran <- n })
			replace := delayed.OnConflict(delayed.ConflictReplace)
			q := b.q.With(append(opts, delayed.UniqueKey("k", time.Hour), replace)...)
			for i := range 10 {
				b.delayWith(q, f, i)
			}
			if b.Size("") != 10 || b.Size("_revoked") != 9 {
				t.Errorf("%d pending, %d revoked", b.Size(""), b.Size("_revoked"))
			}
			b.work(b.config(), f)
			if n := await(b, "the last", ran); n != 9 {
				t.Errorf("%d ran", n)
			}
			b.Idle()
			b.unlocked()
			if len(ran) > 0 || b.Size("_revoked") > 0 {
				t.Errorf("%d ran as well, %d are revoked still", len(ran), b.Size("_revoked"))
			}
		})
	}
}

// TestReplacedBetweenClaimAndStart: a replacement that was unknown when a task was claimed is known when the task
// starts.
func TestReplacedBetweenClaimAndStart(t *testing.T) {
	b := newBench(t)
	began, goOn, ran := make(chan struct{}), make(chan struct{}), make(chan int, 10)
	long := b.fn("long", func() { close(began); <-goOn })
	f := b.fn("f", func(n int) { ran <- n })
	q := b.q.With(delayed.UniqueKey("k", time.Hour), delayed.UntilStart(), delayed.OnConflict(delayed.ConflictReplace))
	b.delay(long)
	b.delayWith(q, f, 1)
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch = 1, 1
	b.work(cfg, long, f)
	await(b, "the long task", began)
	b.Until("the task is claimed", func() bool { return b.Size("") == 0 })
	b.delayWith(q, f, 2)
	close(goOn)
	if n := await(b, "the second task", ran); n != 2 {
		t.Errorf("%d ran", n)
	}
	b.Idle()
	b.unlocked()
	if len(ran) > 0 || b.Size("_revoked") > 0 {
		t.Errorf("%d ran as well, %d are revoked still", len(ran), b.Size("_revoked"))
	}
}

// TestReplacedWhileRunning: a replacement ends the context of the running task.
func TestReplacedWhileRunning(t *testing.T) {
	b := newBench(t)
	began, ended := make(chan int, 2), make(chan error, 2)
	f := b.fn("f", func(ctx context.Context, n int) error {
		began <- n
		if n == 2 {
			return nil
		}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	q := b.q.With(delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.ConflictReplace))
	b.delayWith(q, f, 1)
	b.work(b.config(), f)
	await(b, "the first task", began)
	b.delayWith(q, f, 2)
	if err := await(b, "its end", ended); !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("the cause is %v", err)
	}
	if n := await(b, "the second task", began); n != 2 {
		t.Errorf("%d ran", n)
	}
	b.Idle()
	b.unlocked()
	if n := b.Size("_retry") + b.Size("_archived") + b.Size("_revoked"); n > 0 {
		t.Errorf("%d tasks are retried, archived or revoked", n)
	}
}

// TestWaitForATaskThatIsReplaced: the wait ends, wherever the task waits. Nothing is kept of a replaced scheduled task,
// so a later look would not find its end.
func TestWaitForATaskThatIsReplaced(t *testing.T) {
	for name, opts := range map[string][]delayed.Option{"scheduled": {delayed.In(time.Hour)}, "pending": nil} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
			f := b.fn("f", func(int) {})
			q := b.q.With(append(opts, delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.ConflictReplace),
				delayed.KeepResult(time.Hour))...)
			ref := b.delayWith(q, f, 1)
			waited := make(chan error, 1)
			go func() { waited <- ref.Wait(b.within()) }()
			b.Until("it waits", func() bool { return b.subscribed(ref.ID()) == 1 })
			b.delayWith(q, f, 2)
			b.work(b.config(), f)
			var failed *delayed.TaskError
			if err := await(b, "the end of Wait", waited); !errors.Is(err, delayed.ErrCanceled) ||
				!errors.As(err, &failed) ||
				failed.State != state.Canceled {
				t.Errorf("Wait: %v", err)
			}
		})
	}
}

// Redis keeps the cancellation of a task as long as it would have kept its result or info.
func TestCanceledTaskIsKeptAsLongAsItsEnd(t *testing.T) {
	for what, opts := range map[string][]delayed.FuncOption{
		"a result":  {delayed.KeepResult(time.Hour)},
		"retention": {delayed.Retention(time.Hour)},
		"both":      {delayed.KeepResult(time.Hour), delayed.Retention(2 * time.Hour)},
	} {
		b := newBench(t)
		ref := b.delayWith(b.q.With(delayed.In(time.Hour)), b.fn("f", func() int { return 1 }, opts...))
		b.Must(ref.Cancel(t.Context()))
		if info, err := ref.Info(t.Context()); err != nil || info.State != state.Canceled {
			t.Errorf("%s: %v, %v, expected that it was canceled", what, info.State, err)
		}
	}
}

// conflicting are the ways to make a call that conflicts with another task; each returns the Ref that the call got.
var conflicting = map[string]func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref{
	"Delay": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		return b.delayWith(q, fn, arg)
	},
	"later": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		return b.delayWith(q.With(delayed.In(time.Hour)), fn, arg)
	},
	"front": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		return b.delayWith(q.With(delayed.Front()), fn, arg)
	},
	"Enqueue": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		ref, err := q.Enqueue(bg, delayed.Call(fn, arg))
		b.Must(err)
		return ref
	},
	"DelayMany": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		refs, err := q.DelayMany(bg, delayed.Call(fn, arg))
		b.Must(err)
		return refs[0]
	},
}

// awaited is the result of Await.
type awaited struct {
	n   int
	err error
}

// awaiting waits for a task's result in another goroutine, and returns once its subscription in Redis is active.
func (b *bench) awaiting(ref *delayed.Ref) <-chan awaited {
	b.T.Helper()
	c := make(chan awaited, 1)
	go func() {
		n, err := delayed.Await[int](b.within(), ref)
		c <- awaited{n, err}
	}()
	b.Until("it waits", func() bool { return len(c) > 0 || b.subscribed(ref.ID()) > 0 })
	return c
}

// TestAwaitBySkippedRef: the Ref of a skipped call waits for the existing task, whether Await begins before or after
// that task runs. The options of the existing task decide what is kept, not those of the skipped call.
func TestAwaitBySkippedRef(t *testing.T) {
	for how, call := range conflicting {
		for kind, lock := range map[string]delayed.Option{
			"key": delayed.UniqueKey("k", time.Hour),
			"id":  delayed.TaskID("k"),
		} {
			t.Run(how+" "+kind, func(t *testing.T) {
				b := newBench(t)
				delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
				f := b.fn("f", func(n int) int { return 2 * n })
				first := b.delayWith(b.q.With(lock, delayed.KeepResult(time.Hour)), f, 1)
				last := time.Now().UnixMilli()
				b.Until("it is a millisecond later", func() bool { return time.Now().UnixMilli() > last })
				skip := b.q.With(lock, delayed.OnConflict(delayed.ConflictSkip))
				ref := call(b, skip, f, 2)
				if ref.ID() != first.ID() {
					t.Fatalf("found the Ref of %v, expected %v", ref, first)
				}
				early := b.awaiting(ref)
				w := b.work(b.config(), f)
				for what, got := range map[string]awaited{"early": await(b, "the result", early), "late": {}} {
					if what == "late" {
						got.n, got.err = delayed.Await[int](b.within(), ref)
					}
					if got.n != 2 || got.err != nil {
						t.Errorf("%s: Await returned %d, %v", what, got.n, got.err)
					}
				}
				w.mustStop()
				if kind == "key" {
					return // its lock is free
				}
				// The task is over but kept, so its id is still taken.
				if n, err := delayed.Await[int](b.within(), call(b, skip, f, 3)); n != 2 || err != nil {
					t.Errorf("of a task that is over: Await returned %d, %v", n, err)
				}
			})
		}
	}
}

// TestManySkippedRefs: of a call for many tasks, each Ref of a skipped one is that of the existing task, also after the
// first batch.
func TestManySkippedRefs(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(n int) int { return n }, delayed.Unique(time.Hour), delayed.OnConflict(delayed.ConflictSkip),
		delayed.KeepResult(time.Hour))
	const n = 2*redisstore.MaxEnlisted + 10
	calls := make([]*delayed.Task, 0, n)
	for i := range n {
		calls = append(calls, delayed.Call(f, i/2*3%n)) // pairs, one behind the other
	}
	there := b.delay(f, 3)
	refs, err := b.q.DelayMany(bg, calls...)
	b.Must(err)
	if refs[2].ID() != there.ID() || refs[3].ID() != there.ID() {
		t.Errorf("found the Refs of %v and %v, expected %v", refs[2], refs[3], there)
	}
	b.work(b.config(), f)
	for i, ref := range refs {
		if got, err := delayed.Await[int](b.within(), ref); got != i/2*3%n || err != nil {
			t.Fatalf("task %d: Await returned %d, %v", i, got, err)
		}
	}
	b.unlocked()
}

// TestFailureBySkippedRef: the Ref reports how the existing task ended.
func TestFailureBySkippedRef(t *testing.T) {
	b := newBench(t)
	delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
	f := b.fn("f", func(int) (int, error) { return 0, errors.New("no") })
	first := b.delayWith(b.q.With(delayed.UniqueKey("k", time.Hour), delayed.KeepResult(time.Hour),
		delayed.MaxRetry(1)), f, 1)
	ref := b.delayWith(b.q.With(delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.ConflictSkip),
		delayed.MaxRetry(5)), f, 2)
	early := b.awaiting(ref)
	b.work(b.config(), f)
	for what, err := range map[string]error{"early": await(b, "the error", early).err, "late": ref.Wait(b.within())} {
		var failed *delayed.TaskError
		if !errors.As(err, &failed) || failed.ID != first.ID() || failed.State != state.Archived ||
			failed.Attempts != 2 || failed.Text != "no" {
			t.Errorf("%s: Wait returned %v", what, err)
		}
	}
	// Its other methods are those of that task as well.
	b.Must(ref.RunAgain(bg))
	b.Until("it has failed again", func() bool { s, err := first.State(bg); return err == nil && s == state.Archived })
	b.Must(ref.Delete(bg))
	if s, err := first.State(bg); s != state.Unknown || err != nil {
		t.Errorf("deleted: its state is %v, %v", s, err)
	}
}

// TestInfoBySkippedRef: Info describes the existing task, which waits for longer than the call would have.
func TestInfoBySkippedRef(t *testing.T) {
	for how, call := range conflicting {
		t.Run(how, func(t *testing.T) {
			b := newBench(t)
			f, g := b.fn("f", func(int) {}), b.fn("g", func(int) {})
			first := b.delayWith(b.q.With(delayed.UniqueKey("k", time.Hour), delayed.In(48*time.Hour)), f, 1)
			ref := call(b, b.q.With(delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.ConflictSkip)), g, 2)
			want, err := first.Info(bg)
			b.Must(err)
			got, err := ref.Info(bg)
			b.Must(err)
			if fmt.Sprint(got.Task) != fmt.Sprint(want.Task) {
				t.Errorf("found %v, expected %v", got.Task, want.Task)
			}
			got.Task, want.Task = nil, nil
			if got != want || got.State != state.Scheduled || got.Function != b.Name+".f" ||
				time.Until(got.Due) < 24*time.Hour {
				t.Errorf("found %+v, expected %+v", got, want)
			}
			if s, err := ref.State(bg); s != state.Scheduled || err != nil {
				t.Errorf("its state is %v, %v", s, err)
			}
		})
	}
}

// TestCancelBySkippedRef cancels the existing task, wherever it is, and that frees its lock.
func TestCancelBySkippedRef(t *testing.T) {
	for name, opts := range map[string][]delayed.Option{
		"pending": nil, "scheduled": {delayed.In(time.Hour)},
		"running": nil,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
			began, ran := make(chan struct{}, 1), make(chan int, 10)
			f := b.fn("f", func(ctx context.Context, n int) error {
				if name == "running" && n == 1 {
					began <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				}
				ran <- n
				return nil
			})
			skip := b.q.With(delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.ConflictSkip))
			first := b.delayWith(b.q.With(append(opts, delayed.UniqueKey("k", time.Hour),
				delayed.KeepResult(time.Hour))...), f, 1)
			ref := b.delayWith(skip, f, 2)
			early := b.awaiting(first)
			if name == "running" {
				b.work(b.config(), f)
				await(b, "the task", began)
			}
			b.Must(ref.Cancel(bg))
			if next := b.delayWith(skip, f, 3); next.ID() == first.ID() {
				t.Errorf("the lock is held by the task that was canceled")
			}
			if name != "running" {
				b.work(b.config(), f)
			}
			if n := await(b, "the next task", ran); n != 3 {
				t.Errorf("%d ran", n)
			}
			for what, err := range map[string]error{
				"early": await(b, "the error", early).err,
				"late":  ref.Wait(b.within()),
			} {
				if !errors.Is(err, delayed.ErrCanceled) {
					t.Errorf("%s: Wait returned %v", what, err)
				}
			}
			if err := ref.Cancel(bg); !errors.Is(err, delayed.ErrEnded) {
				t.Errorf("canceled again: %v", err)
			}
			b.Idle()
			b.unlocked()
			if len(ran) > 0 {
				t.Errorf("%d more ran", len(ran))
			}
		})
	}
}

// TestRefsOfReplacedTasks: the Ref of a replaced task reports that, and does not affect the task that replaced it,
// which has a Ref of its own.
func TestRefsOfReplacedTasks(t *testing.T) {
	for how, call := range conflicting {
		for name, opts := range map[string][]delayed.Option{"until end": nil, "until start": {delayed.UntilStart()}} {
			t.Run(how+" "+name, func(t *testing.T) {
				b := newBench(t)
				delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
				f := b.fn("f", func(n int) int { return 2 * n })
				lock := append([]delayed.Option{delayed.UniqueKey("k", time.Hour)}, opts...)
				replace := delayed.OnConflict(delayed.ConflictReplace)
				q := b.q.With(append(lock, replace, delayed.KeepResult(time.Hour))...)
				old := b.delayWith(q, f, 1)
				tellOld := b.awaiting(old)
				ref := call(b, q, f, 2)
				if ref.ID() == old.ID() {
					t.Fatalf("both have the Ref of %v", ref)
				}
				b.Must(old.Cancel(bg)) // a replaced task counts as canceled already
				_, err := b.q.With(lock...).Delay(f, 3)
				inTheWay(t, err, ref.ID())
				if how == "later" {
					if s, err := ref.State(bg); s != state.Scheduled || err != nil {
						t.Errorf("the state of the one that stands is %v, %v", s, err)
					}
					b.work(b.config(), f)
				} else {
					tell := b.awaiting(ref)
					b.work(b.config(), f)
					if got := await(b, "the result", tell); got.n != 4 || got.err != nil {
						t.Errorf("of the one that stands, Await returned %d, %v", got.n, got.err)
					}
				}
				for what, err := range map[string]error{
					"early": await(b, "the error", tellOld).err,
					"late":  old.Wait(b.within()),
				} {
					var failed *delayed.TaskError
					if !errors.Is(err, delayed.ErrCanceled) || !errors.As(err, &failed) || failed.ID != old.ID() ||
						failed.State != state.Canceled {
						t.Errorf("of the one that was replaced, %s: Wait returned %v", what, err)
					}
				}
				info, err := old.Info(bg)
				if info.State != state.Canceled || info.Function != b.Name+".f" || err != nil {
					t.Errorf("found %+v, %v", info, err)
				}
				if err := old.Cancel(bg); !errors.Is(err, delayed.ErrEnded) ||
					!strings.Contains(err.Error(), old.ID()) {
					t.Errorf("canceled when it was over: %v", err)
				}
				if how == "later" {
					b.Must(ref.Cancel(bg))
				}
				b.unlocked()
				b.Check(redistest.Invariants{})
			})
		}
	}
}

// TestFront puts a task before all others.
func TestFront(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 10)
	f := b.fn("f", func(n int) { ran <- n })
	b.delay(f, 1)
	b.delay(f, 2)
	front := b.q.With(delayed.Front())
	b.delayWith(front, f, 3)
	if _, err := front.DelayMany(t.Context(), delayed.Call(f, 4), delayed.Call(f, 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := front.Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil)); err != nil {
		t.Errorf("a Python task: %v", err)
	}
	if _, err := front.DelayMany(t.Context(), make([]*delayed.Task, 0)...); err != nil {
		t.Errorf("no tasks: %v", err)
	}
	many := make([]*delayed.Task, redisstore.MaxEnlisted+1)
	for i := range many {
		many[i] = delayed.Call(f, i)
	}
	if _, err := front.DelayMany(t.Context(), many...); !errors.Is(err, delayed.ErrArguments) {
		t.Errorf("more than go together: %v", err)
	}
	cfg := b.config()
	cfg.Concurrency = 1
	b.work(cfg, f)
	for _, want := range []int{4, 5, 3, 1, 2} {
		if n := await(b, "a task", ran); n != want {
			t.Errorf("%d ran, expected %d", n, want)
		}
	}
	b.Check(redistest.Invariants{})
}

// TestFrontOnALegacyQueue: the message stays in the form that workers of other packages read.
func TestFrontOnALegacyQueue(t *testing.T) {
	b := newBench(t)
	q, err := delayed.OpenQueue(b.Name, b.rdb.WithLegacy(), delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	b.delayWith(q, plainForTest, 1)
	b.delayWith(q.With(delayed.Front()), plainForTest, 2)
	if m := b.pending(); m[0].Kind != m[1].Kind || string(m[0].Payload) != "\x02" {
		t.Errorf("%+v", m)
	}
}
