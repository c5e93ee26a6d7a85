package delayed

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed/internal/redistest"
)

// inTheWay expects that a call was refused because of a task.
func inTheWay(t *testing.T, err error, id string) {
	t.Helper()
	var dup *DuplicateError
	if !errors.As(err, &dup) || dup.ID != id || !errors.Is(err, ErrDuplicate) {
		t.Errorf("expected a DuplicateError with the id %q, found %v", id, err)
	}
}

// unlocked expects that no lock is left, and that the keys are consistent.
func (b *bench) unlocked() {
	b.t.Helper()
	b.until("all locks are free", func() bool { return b.size("_locks")+b.size("_locked") == 0 })
	b.check(redistest.Invariants{})
}

// TestOneOfManyProducersHasTheLock: exactly one task stands, and all who were refused know its id.
func TestOneOfManyProducersHasTheLock(t *testing.T) {
	for name, opts := range map[string][]Option{
		"arguments": {Unique(time.Hour)}, "key": {UniqueKey("k", time.Hour)}, "id": {TaskID("k")}, "later": {Unique(time.Hour), In(time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			f := b.fn("f", func(int) {})
			q := b.q.With(opts...)
			var group sync.WaitGroup
			start := make(chan struct{})
			var ok atomic.Pointer[Ref]
			var mu sync.Mutex
			refused := map[string]int{}
			for range 50 {
				group.Go(func() {
					<-start
					ref, err := q.Delay(f, 1)
					var dup *DuplicateError
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
			if n := b.size("") + b.size("_scheduled"); n != 1 {
				t.Errorf("%d tasks stand", n)
			}
			b.check(redistest.Invariants{})
		})
	}
}

// TestWhatIsTheSame holds calls against each other: the lock is over function and arguments.
func TestWhatIsTheSame(t *testing.T) {
	b := newBench(t)
	f, g := b.fn("f", func(int, string) {}), b.fn("g", func(int, string) {})
	one := b.fn("one", func([]int) {})
	ctx := t.Context()
	q := b.q.With(Unique(time.Hour))
	first := b.delayWith(q, f, 1, "a")
	for _, same := range []*Task{Call(f, 1, "a"), Call(f, int64(1), "a"), NewGoTask(b.name+".f", 1, "a")} {
		_, err := q.Enqueue(ctx, same)
		inTheWay(t, err, first.ID())
	}
	for _, other := range []*Task{Call(f, 2, "a"), Call(f, 1, "b"), Call(g, 1, "a"), Call(one, []int{1}), Call(one, []int{1, 2})} {
		if _, err := q.Enqueue(ctx, other); err != nil {
			t.Errorf("another call was refused: %v", err)
		}
	}
	_, err := q.Enqueue(ctx, NewGoTask(b.name+".one", []int{1}))
	if !errors.Is(err, ErrDuplicate) {
		t.Errorf("one argument, by path: %v", err)
	}
	key := b.q.With(UniqueKey(first.ID(), time.Hour))
	first = b.delayWith(key, f, 1, "a")
	_, err = key.Delay(g, 2, "b")
	inTheWay(t, err, first.ID())
	b.delay(f, 1, "a") // not unique itself
}

// TestLocksEndWithTheirTasks runs tasks to each of their ends, and enqueues them again.
func TestLocksEndWithTheirTasks(t *testing.T) {
	no := errors.New("no")
	for name, c := range map[string]struct {
		handler func() error
		opts    []Option
	}{
		"success":    {func() error { return nil }, nil},
		"result":     {func() error { return nil }, []Option{KeepResult(time.Millisecond)}},
		"archive":    {func() error { return no }, []Option{MaxRetry(0)}},
		"retry":      {func() error { return no }, []Option{MaxRetry(2)}},
		"discard":    {func() error { return Discard(no) }, nil},
		"drop":       {func() error { return Drop(no) }, nil},
		"expiry":     {func() error { return nil }, []Option{TTL(time.Nanosecond)}},
		"panic":      {func() error { panic("no") }, []Option{MaxRetry(0)}},
		"scheduled":  {func() error { return nil }, []Option{In(5 * time.Millisecond)}},
		"untilstart": {func() error { return no }, []Option{MaxRetry(1), UntilStart()}},
	} {
		for kind, lock := range map[string][]Option{
			"lock": {Unique(time.Hour)}, "id": {TaskID("x")}, "both": {TaskID("x"), UniqueKey("x", time.Hour)},
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
				b.idle()
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

// TestIDOfATaskThatIsKept: archived and completed tasks have their ids for as long as they are kept.
func TestIDOfATaskThatIsKept(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(fail bool) error {
		if fail {
			return Discard(errors.New("no"))
		}
		return nil
	})
	archived, completed := b.q.With(TaskID("a")), b.q.With(TaskID("c"), Retention(time.Hour))
	b.delayWith(archived, f, true)
	b.delayWith(completed, f, false)
	b.work(b.config(), f)
	b.until("both are over", func() bool { return b.size("_archived") == 1 && b.size("_completed") == 1 })
	for _, q := range []*Queue{archived, completed} {
		_, err := q.Delay(f, false)
		inTheWay(t, err, *q.options.id)
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
	q := b.q.With(Unique(time.Minute))
	ref := b.delayWith(q, f)
	b.work(cfg, f)
	await(b, "the task", failed)
	b.until("it waits", func() bool { return b.size("_retry") == 1 })
	lapse, _ := redistest.Dump(t, b.conn, b.name)["_locked"].(redistest.Zset)
	due, _ := redistest.Dump(t, b.conn, b.name)["_retry"].(redistest.Zset)
	for name, at := range lapse {
		if at < due[ref.ID()] {
			t.Errorf("%s lapses %v before the retry", name, time.Duration(due[ref.ID()]-at)*time.Millisecond)
		}
	}
	_, err := q.Delay(f)
	inTheWay(t, err, ref.ID())
	b.check(redistest.Invariants{})
}

// TestLocksOfTheDead: a task that is swept keeps its lock, and one that is archived by the sweeper loses it.
func TestLocksOfTheDead(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() {})
	q := b.q.With(UniqueKey("k", time.Hour), TaskID("x"))
	b.delayWith(q, f)
	g := b.sweepGroup(time.Minute, time.Hour)
	for deaths := 1; deaths <= maxDeaths; deaths++ {
		message := b.list("")[0]
		b.do("DEL", b.name, b.name+"_noti")
		id := b.deadWorker(message)
		b.pass(g)
		g.missed[b.q.store][id] = time.Now().Add(-2 * time.Minute)
		b.pass(g)
		if deaths < maxDeaths {
			_, err := q.Delay(f)
			inTheWay(t, err, "x")
		}
	}
	if b.size("_archived") != 1 {
		t.Errorf("%d tasks are archived", b.size("_archived"))
	}
	b.unlocked()
}

// TestUntilStart frees the lock when the task starts, so that it may enqueue itself.
func TestUntilStart(t *testing.T) {
	b := newBench(t)
	q := b.q.With(Unique(time.Hour), UntilStart())
	ran, again := make(chan struct{}, 1), make(chan error, 2)
	var self *Function
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

// TestUntilStartWithoutRedis: the task starts although its lock cannot be freed, and frees it when it is over.
func TestUntilStartWithoutRedis(t *testing.T) {
	b := newBench(t)
	b.delayWith(b.q.With(Unique(time.Hour), UntilStart()), b.fn("f", func() {}))
	c := &claim{lane: newLane(b.q.store, "w", false), msg: b.pending()[0]}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	worker := &Worker{log: newJournal(b.log.logger()), tasks: ctx}
	if worker.unlock(c) || !c.held() {
		t.Errorf("replaced, or nothing to free at the end: held %v", c.held())
	}
	if !strings.Contains(b.log.String(), "could not be freed") {
		t.Errorf("log: %s", b.log)
	}
}

// TestOnConflictSkip gives the Ref of the task that is there.
func TestOnConflictSkip(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {}, Unique(time.Hour), OnConflict(Skip))
	ref := b.delay(f, 1)
	for range 3 {
		if again := b.delay(f, 1); again.ID() != ref.ID() {
			t.Errorf("%v, expected %v", again, ref)
		}
	}
	q := b.q.With(TaskID("x"), OnConflict(Skip), In(time.Hour))
	first, again := b.delayWith(q, f, 2), b.delayWith(q, f, 3)
	if first.ID() != "x" || again.ID() != "x" || b.size("") != 1 || b.size("_scheduled") != 1 {
		t.Errorf("%v and %v, %d pending, %d scheduled", first, again, b.size(""), b.size("_scheduled"))
	}
	if _, err := b.q.With(OnConflict(Fail)).Delay(f, 1); !errors.Is(err, ErrDuplicate) {
		t.Errorf("the call's option does not hold: %v", err)
	}
}

// TestUniqueMany enqueues many tasks at once, some of them the same.
func TestUniqueMany(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 2000)
	f, plain := b.fn("f", func(n int) { ran <- n }, Unique(time.Hour)), b.fn("plain", func(n int) { ran <- n })
	ctx := t.Context()
	calls := make([]*Task, 1200)
	for i := range calls {
		calls[i] = Call(f, i/2) // each twice
		if i%3 == 0 {
			calls[i] = Call(plain, i)
		}
	}
	_, err := b.q.DelayMany(ctx, calls...)
	var batch *BatchError
	if !errors.As(err, &batch) || batch.Sent != 0 || !errors.Is(err, ErrDuplicate) || !strings.Contains(err.Error(), "task 5:") {
		t.Errorf("expected that task 5 is refused, found %v", err)
	}
	if _, err := b.q.With(OnConflict(Skip)).DelayMany(ctx, calls...); !errors.Is(err, ErrArguments) {
		t.Errorf("OnConflict for tasks without a lock: %v", err)
	}
	skipping := b.fn("f", func(n int) { ran <- n }, Unique(time.Hour), OnConflict(Skip))
	distinct := map[string]bool{}
	for i := range calls {
		if i%3 != 0 {
			calls[i] = Call(skipping, i/2)
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
	if len(distinct) != 1000 || b.size("") != 1000 {
		t.Errorf("%d ids, %d tasks, expected 1000", len(distinct), b.size(""))
	}
	b.work(b.config(), f, plain)
	for range 1000 {
		await(b, "a task", ran)
	}
	b.unlocked()
}

// TestDebounceRunsTheLast runs a burst of calls once, with the arguments of the last.
func TestDebounceRunsTheLast(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 100)
	f := b.fn("f", func(n int) { ran <- n })
	q := b.q.With(Debounce(200*time.Millisecond), UniqueKey("k", time.Hour))
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
	b.work(b.config(), f) // not before: on a slow machine the burst could pause for long enough
	if n := await(b, "the task", ran); n != -1 {
		t.Errorf("%d ran", n)
	}
	b.unlocked()
	b.idle()
	if len(ran) > 0 {
		t.Errorf("%d more ran", len(ran))
	}
}

// TestReplacedWhilePending drops pending tasks whose place another one has taken.
func TestReplacedWhilePending(t *testing.T) {
	for name, opts := range map[string][]Option{"until end": nil, "until start": {UntilStart()}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			ran := make(chan int, 100)
			f := b.fn("f", func(n int) { ran <- n })
			q := b.q.With(append(opts, UniqueKey("k", time.Hour), OnConflict(Replace))...)
			for i := range 10 {
				b.delayWith(q, f, i)
			}
			if b.size("") != 10 || b.size("_revoked") != 9 {
				t.Errorf("%d pending, %d revoked", b.size(""), b.size("_revoked"))
			}
			b.work(b.config(), f)
			if n := await(b, "the last", ran); n != 9 {
				t.Errorf("%d ran", n)
			}
			b.idle()
			b.unlocked()
			if len(ran) > 0 || b.size("_revoked") > 0 {
				t.Errorf("%d ran as well, %d are revoked still", len(ran), b.size("_revoked"))
			}
		})
	}
}

// TestReplacedBetweenClaimAndStart: what was not known when a task was claimed is known when it starts.
func TestReplacedBetweenClaimAndStart(t *testing.T) {
	b := newBench(t)
	began, goOn, ran := make(chan struct{}), make(chan struct{}), make(chan int, 10)
	long := b.fn("long", func() { close(began); <-goOn })
	f := b.fn("f", func(n int) { ran <- n })
	q := b.q.With(UniqueKey("k", time.Hour), UntilStart(), OnConflict(Replace))
	b.delay(long)
	b.delayWith(q, f, 1)
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch = 1, 1
	b.work(cfg, long, f)
	await(b, "the long task", began)
	b.until("the task is claimed", func() bool { return b.size("") == 0 })
	b.delayWith(q, f, 2)
	close(goOn)
	if n := await(b, "the second task", ran); n != 2 {
		t.Errorf("%d ran", n)
	}
	b.idle()
	b.unlocked()
	if len(ran) > 0 || b.size("_revoked") > 0 {
		t.Errorf("%d ran as well, %d are revoked still", len(ran), b.size("_revoked"))
	}
}

// TestReplacedWhileRunning ends the context of the task whose place another one has taken.
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
	q := b.q.With(UniqueKey("k", time.Hour), OnConflict(Replace))
	b.delayWith(q, f, 1)
	b.work(b.config(), f)
	await(b, "the first task", began)
	b.delayWith(q, f, 2)
	if err := await(b, "its end", ended); !errors.Is(err, ErrCanceled) {
		t.Errorf("the cause is %v", err)
	}
	if n := await(b, "the second task", began); n != 2 {
		t.Errorf("%d ran", n)
	}
	b.idle()
	b.unlocked()
	if n := b.size("_retry") + b.size("_archived") + b.size("_revoked"); n > 0 {
		t.Errorf("%d tasks are retried, archived or revoked", n)
	}
}

// TestFront puts a task before all others.
func TestFront(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 10)
	f := b.fn("f", func(n int) { ran <- n })
	b.delay(f, 1)
	b.delay(f, 2)
	front := b.q.With(Front())
	b.delayWith(front, f, 3)
	if _, err := front.DelayMany(t.Context(), Call(f, 4), Call(f, 5)); err != nil {
		t.Fatal(err)
	}
	if _, err := front.Enqueue(t.Context(), NewPyTask("m:f", nil, nil)); err != nil {
		t.Errorf("a Python task: %v", err)
	}
	if _, err := front.DelayMany(t.Context(), make([]*Task, 0)...); err != nil {
		t.Errorf("no tasks: %v", err)
	}
	many := make([]*Task, maxEnlisted+1)
	for i := range many {
		many[i] = Call(f, i)
	}
	if _, err := front.DelayMany(t.Context(), many...); !errors.Is(err, ErrArguments) {
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
	b.check(redistest.Invariants{})
}

// TestFrontOnALegacyQueue leaves the message as workers of other packages read it.
func TestFrontOnALegacyQueue(t *testing.T) {
	b := newBench(t)
	q, err := OpenQueue(b.rdb, QueueConfig{Name: b.name, Legacy: true})
	if err != nil {
		t.Fatal(err)
	}
	b.delayWith(q, plainForTest, 1)
	b.delayWith(q.With(Front()), plainForTest, 2)
	if m := b.pending(); m[0].Kind != m[1].Kind || string(m[0].Payload) != "\x02" {
		t.Errorf("%+v", m)
	}
}

func TestLocksThatMakeNoSenseAreErrors(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	locked := b.fn("g", func(int) {}, Unique(time.Hour))
	long := strings.Repeat("x", maxLockKey+1)
	for name, opts := range map[string][]Option{
		"ttl 0": {Unique(0)}, "ttl negative": {UniqueKey("k", -1)}, "ttl below 1ms": {Unique(time.Microsecond)},
		"empty key": {UniqueKey("", time.Hour)}, "long key": {UniqueKey(long, time.Hour)}, "key not UTF-8": {UniqueKey("\xff", time.Hour)},
		"UntilStart alone": {UntilStart()}, "OnConflict alone": {OnConflict(Skip)}, "unknown conflict": {Unique(time.Hour), OnConflict(9)},
		"TaskID replaced": {TaskID("x"), OnConflict(Replace)}, "TaskID with a lock replaced": {TaskID("x"), Unique(time.Hour), OnConflict(Replace)},
		"TaskID until start": {TaskID("x"), UntilStart()}, "Debounce with TaskID": {TaskID("x"), Debounce(time.Second)},
		"Debounce 0": {Debounce(0)}, "Debounce negative": {Debounce(-1)},
		"Front later": {Front(), In(time.Hour)}, "Front at": {At(time.Now()), Front()}, "Front debounced": {Debounce(time.Hour), Front()},
	} {
		q := b.q.With(opts...)
		if _, err := q.Delay(f, 1); !errors.Is(err, ErrArguments) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := q.DelayMany(t.Context(), Call(f, 1)); !errors.Is(err, ErrArguments) {
			t.Errorf("%s: DelayMany: %v", name, err)
		}
	}
	if _, err := b.q.DelayMany(t.Context(), Call(f, 1), Call(b.fn("h", func(int) {}, Unique(0)), 1)); !errors.Is(err, ErrArguments) || !strings.Contains(err.Error(), "task 1") {
		t.Errorf("a function's default: %v", err)
	}
	for name, opts := range map[string][]Option{
		"Unique": {Unique(time.Hour)}, "UniqueKey": {UniqueKey("k", time.Hour)}, "Debounce": {Debounce(time.Hour)},
	} {
		if _, err := b.q.With(opts...).Enqueue(t.Context(), NewPyTask("m:f", nil, nil)); !errors.Is(err, ErrArguments) {
			t.Errorf("%s for a plain Python task: %v", name, err)
		}
	}
	if n := b.size("") + b.size("_scheduled") + b.size("_locks"); n != 0 {
		t.Errorf("%d elements were written", n)
	}
	// The function's default, made until start by the call; an option that is given again.
	if _, err := b.q.With(UntilStart(), Unique(time.Hour), UniqueKey("a", time.Hour), UniqueKey("b", time.Minute)).Delay(locked, 1); err != nil {
		t.Error(err)
	}
	if x := b.pending()[0].Meta.Extra; x == nil || x.Lock != "k:b" || x.LockLife != time.Minute.Milliseconds() || !x.LockStart {
		t.Errorf("%+v", x)
	}
}

// TestUniquePythonTask carries its lock in the extended form.
func TestUniquePythonTask(t *testing.T) {
	b := newBench(t)
	q, err := OpenQueue(b.rdb, QueueConfig{Name: b.name, Python: Extended})
	if err != nil {
		t.Fatal(err)
	}
	q = q.With(Unique(time.Hour))
	ref, err := q.Enqueue(t.Context(), NewPyTask("m:f", []any{1}, map[string]any{"a": 1}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = q.Enqueue(t.Context(), NewPyTask("m:f", []any{1}, map[string]any{"a": 1}))
	inTheWay(t, err, ref.ID())
	for _, other := range []*Task{NewPyTask("m:f", []any{2}, map[string]any{"a": 1}), NewPyTask("m:f", []any{1}, nil), NewPyTask("m:g", []any{1}, map[string]any{"a": 1})} {
		if _, err := q.Enqueue(t.Context(), other); err != nil {
			t.Errorf("another call was refused: %v", err)
		}
	}
	if x := b.pending()[0].Meta.Extra; x == nil || b.hash("_locks")[x.Lock] != ref.ID() {
		t.Errorf("lock %+v of %v", x, b.hash("_locks"))
	}
}

// TestLocksEndWhenATaskIsHandedOn to another queue, whose workers do not know them.
func TestLocksEndWhenATaskIsHandedOn(t *testing.T) {
	b := newBench(t)
	q, err := OpenQueue(b.rdb, QueueConfig{Name: b.name, Python: Extended})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.q.store.settleMode(t.Context(), "extended"); err != nil {
		t.Fatal(err)
	}
	b.do("SET", b.name+"-py_mode", "extended")
	if _, err := q.With(Unique(time.Hour), TaskID("x")).Enqueue(t.Context(), NewPyTask("m:f", []any{1}, nil)); err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.PythonQueue = b.name + "-py"
	b.work(cfg)
	b.until("it is handed on", func() bool { return b.size("-py") == 1 })
	b.unlocked()
}

// TestExpiredLocksAreDropped by the sweeper.
func TestExpiredLocksAreDropped(t *testing.T) {
	b := newBench(t)
	for i := range lapsePage + 5 {
		name := fmt.Sprint("k:", i)
		b.do("HSET", b.name+"_locks", name, "x")
		b.do("ZADD", b.name+"_locked", past, name)
	}
	b.pass(b.sweepGroup(time.Minute, time.Hour))
	b.unlocked()
}
