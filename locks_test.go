package delayed_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

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
		"discard":    {func() error { return delayed.Discard(no) }, nil},
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
			return delayed.Discard(errors.New("no"))
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
	long := strings.Repeat("x", 511)
	for name, opts := range map[string][]delayed.Option{
		"ttl 0": {delayed.Unique(0)}, "ttl negative": {delayed.UniqueKey("k", -1)},
		"ttl below 1ms": {delayed.Unique(time.Microsecond)},
		"empty key":     {delayed.UniqueKey("", time.Hour)}, "long key": {delayed.UniqueKey(long, time.Hour)},
		"key not UTF-8":    {delayed.UniqueKey("\xff", time.Hour)},
		"UntilStart alone": {delayed.UntilStart()}, "OnConflict alone": {delayed.OnConflict(delayed.Skip)},
		"unknown conflict": {delayed.Unique(time.Hour), delayed.OnConflict(9)},
		"TaskID replaced":  {delayed.TaskID("x"), delayed.OnConflict(delayed.Replace)},
		"TaskID with a lock replaced": {
			delayed.TaskID("x"), delayed.Unique(time.Hour),
			delayed.OnConflict(delayed.Replace),
		},
		"TaskID until start":   {delayed.TaskID("x"), delayed.UntilStart()},
		"Debounce with TaskID": {delayed.TaskID("x"), delayed.Debounce(time.Second)},
		"Debounce 0":           {delayed.Debounce(0)}, "Debounce negative": {delayed.Debounce(-1)},
		"Front later": {delayed.Front(), delayed.In(time.Hour)}, "Front at": {delayed.At(time.Now()), delayed.Front()},
		"Front debounced": {delayed.Debounce(time.Hour), delayed.Front()},
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
	legacy, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name, Legacy: true})
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
	q, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name})
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
