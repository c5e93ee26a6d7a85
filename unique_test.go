package delayed_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
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
	f := b.fn("f", func(int) {}, delayed.Unique(time.Hour), delayed.OnConflict(delayed.Skip))
	ref := b.delay(f, 1)
	for range 3 {
		if again := b.delay(f, 1); again.ID() != ref.ID() {
			t.Errorf("%v, expected %v", again, ref)
		}
	}
	q := b.q.With(delayed.TaskID("x"), delayed.OnConflict(delayed.Skip), delayed.In(time.Hour))
	first, again := b.delayWith(q, f, 2), b.delayWith(q, f, 3)
	if first.ID() != "x" || again.ID() != "x" || b.Size("") != 1 || b.Size("_scheduled") != 1 {
		t.Errorf("%v and %v, %d pending, %d scheduled", first, again, b.Size(""), b.Size("_scheduled"))
	}
	if _, err := b.q.With(delayed.OnConflict(delayed.Fail)).Delay(f, 1); !errors.Is(err, delayed.ErrDuplicate) {
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
	if _, err := b.q.With(delayed.OnConflict(delayed.Skip)).DelayMany(ctx, calls...); !errors.Is(err,
		delayed.ErrArguments) {
		t.Errorf("OnConflict for tasks without a lock: %v", err)
	}
	skipping := b.fn("f", func(n int) { ran <- n }, delayed.Unique(time.Hour), delayed.OnConflict(delayed.Skip))
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
	q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name})
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
