package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

func TestWorkerRunsWhatWasDelayed(t *testing.T) {
	b := newBench(t)
	type person struct {
		Name string
		Age  int
	}
	got := make(chan string, 10)
	plain := b.fn("plain", func(n int, s string) { got <- fmt.Sprint(n, s) })
	none := b.fn("none", func() { got <- "none" })
	variadic := b.fn("variadic", func(ctx context.Context, sep string, parts ...string) error {
		got <- strings.Join(parts, sep)
		return ctx.Err()
	})
	structs := b.fn("structs", func(p *person, m map[string][]int) (int, error) {
		got <- fmt.Sprint(p.Name, p.Age, m)
		return 1, nil
	})
	b.work(b.config(), plain, none, variadic, structs)
	b.delay(plain, 7, "x")
	b.delay(none)
	b.delay(variadic, "-", "a", "b", "c")
	b.delay(structs, &person{"Ann", 30}, map[string][]int{"k": {1, 2}})
	if _, err := b.q.Enqueue(t.Context(), delayed.NewGoTask(b.Name+".plain", 8, "y")); err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{"7x": true, "none": true, "a-b-c": true, "Ann30 map[k:[1 2]]": true, "8y": true}
	for range 5 {
		if s := await(b, "a call", got); !want[s] {
			t.Errorf("unexpected call %q", s)
		} else {
			delete(want, s)
		}
	}
	b.Idle()
	if n := b.counters()["processed"]; n != 5 {
		t.Errorf("processed is %d, expected 5", n)
	}
}

func TestWorkerLeavesNothingBehind(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(int) { ran.Add(1) })
	w := b.work(b.config(), f)
	calls := make([]*delayed.Task, 2500)
	for i := range calls {
		calls[i] = delayed.Call(f, i)
	}
	refs, err := b.q.DelayMany(t.Context(), calls...)
	if err != nil || len(refs) != len(calls) {
		t.Fatalf("%d refs, %v", len(refs), err)
	}
	b.Until("all have run", func() bool { return ran.Load() == int64(len(calls)) })
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	b.Check(redistest.Invariants{Idle: true})
	where := redistest.Dump(t, b.Conn, b.Name)
	for suffix := range where {
		if suffix != "_sweeper" && !strings.HasPrefix(suffix, "_stats:") &&
			!strings.HasPrefix(suffix, "_metrics:") {
			t.Errorf("key %q is left", suffix)
		}
	}
	if w.Status().State != state.Stopped {
		t.Errorf("state %v", w.Status().State)
	}
	if err := w.Run(t.Context()); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("second Run: %v, expected ErrClosed", err)
	}
}

func TestWorkerRetriesThenSucceeds(t *testing.T) {
	b := newBench(t)
	attempts := make(chan int, 10)
	n := 0
	f := b.fn("f", func(int) error {
		n++ // one at a time: retried, never doubled
		attempts <- n
		if n < 4 {
			return fmt.Errorf("attempt %d", n)
		}
		return nil
	})
	b.work(b.config(), f)
	b.delay(f, 1)
	for i := 1; i <= 4; i++ {
		if got := await(b, "an attempt", attempts); got != i {
			t.Fatalf("attempt %d, expected %d", got, i)
		}
	}
	b.Idle()
	b.Until("the counters are right", func() bool {
		c := b.counters()
		return c["processed"] == 4 && c["failed"] == 3 && c["retried"] == 3 && c["archived"] == 0
	})
	b.Check(redistest.Invariants{})
	if b.Size("_retry")+b.Size("_tasks")+b.Size("_info") > 0 {
		t.Errorf("left: %v", redistest.Dump(t, b.Conn, b.Name))
	}
}

func TestWorkerArchivesWhenNoRetriesAreLeft(t *testing.T) {
	for _, tt := range []struct {
		name     string
		opts     []delayed.Option
		defaults []delayed.FuncOption
		worker   int
		attempts int64
	}{
		{"the call decides", []delayed.Option{delayed.MaxRetry(2)}, []delayed.FuncOption{delayed.MaxRetry(5)}, 7, 3},
		{"then the function", nil, []delayed.FuncOption{delayed.MaxRetry(1)}, 7, 2},
		{"then the worker", nil, nil, 3, 4},
		{"never", []delayed.Option{delayed.MaxRetry(0)}, nil, 3, 1},
		{"never by the worker", nil, nil, -1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			var ran atomic.Int64
			f := b.fn("f", func() error { ran.Add(1); return errors.New("no luck") }, tt.defaults...)
			cfg := b.config()
			cfg.MaxRetry = tt.worker
			b.work(cfg, f)
			ref := b.delayWith(b.q.With(tt.opts...), f)
			b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
			if ran.Load() != tt.attempts {
				t.Errorf("ran %d times, expected %d", ran.Load(), tt.attempts)
			}
			info := b.Hash("_info")[ref.ID()]
			if !strings.Contains(info, "no luck") || !strings.Contains(info, "failed") ||
				!strings.Contains(info, b.Name+".f") {
				t.Errorf("info %q", info)
			}
			b.Check(redistest.Invariants{})
		})
	}
}

func TestWorkerArchivesWrongArgumentsAtOnce(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(uint8) { ran.Add(1) })
	b.work(b.config(), f)
	ref, err := b.q.Enqueue(t.Context(), delayed.NewGoTask(b.Name+".f", 300))
	if err != nil {
		t.Fatal(err)
	}
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	info := b.Hash("_info")[ref.ID()]
	if ran.Load() != 0 || !strings.Contains(info, "arguments") ||
		!strings.Contains(info, "expected uint8, found integer") {
		t.Errorf("ran %d times, info %q", ran.Load(), info)
	}
}

func TestWorkerSurvivesPanicsAndGoexit(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	panics := b.fn("panics", func(int) { var m map[string]int; m["x"] = 1 }) //nolint:govet,staticcheck // on purpose
	exits := b.fn("exits", func(int) { runtime.Goexit() })
	fine := b.fn("fine", func(int) { ran.Add(1) })
	cfg := b.config()
	cfg.MaxRetry = -1
	b.work(cfg, panics, exits, fine)
	for i := range 50 {
		b.delay(panics, i)
		b.delay(exits, i)
		b.delay(fine, i)
	}
	b.Until("all have ended", func() bool { return ran.Load() == 50 && b.Size("_archived") == 100 })
	b.Idle()
	stacks, gone := 0, 0
	for _, info := range b.Hash("_info") {
		if strings.Contains(info, "assignment to entry in nil map") && strings.Contains(info, "worker_test.go:") {
			stacks++
		}
		if strings.Contains(info, "runtime.Goexit") && strings.Contains(info, "worker_test.go:") {
			gone++
		}
	}
	if stacks != 50 || gone != 50 {
		t.Errorf("%d panics and %d exits with their places, expected 50 each", stacks, gone)
	}
}

func TestWorkerServesQueuesStrictly(t *testing.T) {
	b := newBench(t)
	low := delayed.NewQueue(b.Name+"-low", b.rdb)
	var mu sync.Mutex
	var order []string
	f := b.fn("f", func(s string) { mu.Lock(); order = append(order, s); mu.Unlock() })
	for i := range 20 {
		b.delayWith(low, f, fmt.Sprint("low", i))
		b.delay(f, fmt.Sprint("high", i))
	}
	cfg := b.config()
	cfg.Queues, cfg.Concurrency = delayed.Strict{b.Name, b.Name + "-low"}, 1
	b.work(cfg, f)
	b.Until("all have run", func() bool { mu.Lock(); defer mu.Unlock(); return len(order) == 40 })
	for i, s := range order {
		want := fmt.Sprint("high", i)
		if i >= 20 {
			want = fmt.Sprint("low", i-20)
		}
		if s != want {
			t.Fatalf("call %d was %q, expected %q", i, s, want)
		}
	}
}

func TestWorkerStopGivesBackWhatHasNotStarted(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 10), make(chan struct{})
	f := b.fn("f", func(i int) { entered <- i; <-leave })
	for i := range 10 {
		b.delay(f, i)
	}
	before := b.List("")
	cfg := b.config()
	cfg.Concurrency, cfg.Prefetch = 1, 5
	w := b.work(cfg, f)
	await(b, "the first task", entered)
	b.Until("five are claimed ahead", func() bool { return b.Size("") == 4 })
	stopped := make(chan error, 1)
	go func() { stopped <- w.stop() }()
	b.Until("they are back", func() bool { return b.Size("") == 9 })
	close(leave)
	if err := await(b, "the stop", stopped); err != nil {
		t.Fatal(err)
	}
	after := b.List("")
	if fmt.Sprint(after) != fmt.Sprint(before[1:]) {
		t.Errorf("order changed:\n%q\n%q", after, before[1:])
	}
	b.Check(redistest.Invariants{MoreNoti: 1})
}

func TestWorkerStopCancelsHandlersAfterGrace(t *testing.T) {
	b := newBench(t)
	entered, cause := make(chan struct{}, 1), make(chan error, 1)
	f := b.fn("f", func(ctx context.Context) error {
		entered <- struct{}{}
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return ctx.Err()
	})
	ref := b.delay(f)
	cfg := b.config()
	cfg.Grace = -1
	w := b.work(cfg, f)
	await(b, "the task", entered)
	if err := w.stop(); err != nil {
		t.Fatal(err)
	}
	if err := await(b, "the cause", cause); !errors.Is(err, delayed.ErrShutdown) {
		t.Errorf("cause %v, expected ErrShutdown", err)
	}
	pending := b.List("")
	if len(pending) != 1 || !strings.Contains(pending[0], ref.ID()) || strings.Contains(pending[0], "\xa2rt") {
		t.Errorf("pending %q: expected the task, without a retry spent", pending)
	}
	b.Check(redistest.Invariants{})
}

func TestWorkerStopReportsHandlersThatStillRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	f := b.fn("stubborn", func() { entered <- struct{}{}; <-leave })
	b.delay(f)
	cfg := b.config()
	cfg.Grace, cfg.CancelGrace = -1, 10*time.Millisecond
	w, err := delayed.NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	await(b, "the task", entered)
	cancel()
	var running *delayed.StillRunningError
	if err := await(b, "Run", result); !errors.As(err, &running) || len(running.Funcs) != 1 ||
		running.Funcs[0] != b.Name+".stubborn" {
		t.Fatalf("Run: %v", err)
	}
	// The claim and the heartbeat remain, so that nobody runs the task a second time.
	if n := b.Size("_processing:" + w.ID()); n != 1 {
		t.Errorf("%d claims stand, expected 1", n)
	}
	ttl := b.Int("PTTL", b.Name+"_worker:"+w.ID())
	b.Until("the heartbeat is renewed", func() bool {
		now := b.Int("PTTL", b.Name+"_worker:"+w.ID())
		renewed := now > ttl
		ttl = now
		return renewed
	})
	close(leave)
	b.Until("the worker is gone", func() bool { return w.Status().State == state.Stopped })
	b.Check(redistest.Invariants{Idle: true})
	if n := b.counters()["processed"]; n != 1 {
		t.Errorf("processed %d, expected 1: the late end counts", n)
	}
}

func TestNewWorkerSaysAllThatIsWrong(t *testing.T) {
	b := newBench(t)
	_, err := delayed.NewWorker(b.rdb.WithPrefix("p:"), delayed.WorkerConfig{
		Concurrency: -1, Prefetch: 100_001, HeartbeatLife: time.Millisecond, SweepInterval: time.Microsecond,
		Legacy: true, PythonQueue: "a_noti",
		Queues: delayed.Weighted{"x": 0},
	})
	for _, want := range []string{
		"Concurrency", "Prefetch", "HeartbeatLife", "SweepInterval", "Legacy", "PythonQueue",
		"weight 0",
	} {
		if !strings.Contains(errorText(err), want) {
			t.Errorf("%v\ndoes not mention %s", err, want)
		}
	}
	for _, cfg := range []delayed.WorkerConfig{
		{},
		{Queues: delayed.Strict{}},
		{Queues: delayed.Strict{"a", "a"}},
		{Queues: delayed.Strict{"a b"}},
	} {
		if _, err := delayed.NewWorker(b.rdb, cfg); err == nil {
			t.Errorf("%v was accepted", cfg.Queues)
		}
	}
	if _, err := delayed.NewWorker(nil, b.config()); err == nil {
		t.Error("a nil handle was accepted")
	}
}

func TestWorkerWarnsOfPackageMain(t *testing.T) {
	b := newBench(t)
	w, err := delayed.NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(42); !errors.Is(err, delayed.ErrFunction) {
		t.Errorf("Register(42): %v", err)
	}
	if err := w.RegisterMethods(&counter{}); err != nil {
		t.Error(err)
	}
}

type counter struct{ n atomic.Int64 }

func (c *counter) Add(n int64)           { c.n.Add(n) }
func (c *counter) Unfit(func()) chan int { return nil }

func TestWorkerRunsMethods(t *testing.T) {
	b := newBench(t)
	w, err := delayed.NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	c := &counter{}
	if err := w.RegisterMethods(c); err != nil {
		t.Fatal(err)
	}
	b.start(w)
	b.delay((*counter).Add, 40)
	b.delay((*counter).Add, 2)
	b.Until("both have run", func() bool { return c.n.Load() == 42 })
}
