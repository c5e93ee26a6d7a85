package delayed_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
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
	_, err := delayed.NewWorker(b.rdb.WithPrefix("p:").WithLegacy(), delayed.WorkerConfig{
		Concurrency: -1, Prefetch: 100_001, HeartbeatLife: time.Millisecond, SweepInterval: time.Microsecond,
		PythonQueue: "a_noti", Queues: delayed.Weighted{"x": 0},
	})
	for _, want := range []string{
		"Concurrency", "Prefetch", "HeartbeatLife", "SweepInterval", "PythonQueue", "weight 0",
	} {
		if !strings.Contains(errorText(err), want) {
			t.Errorf("%v\ndoes not mention %s", err, want)
		}
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

// nilError is an error type whose methods need a value, as most are.
type nilError struct{ inner error }

func (e *nilError) Error() string { return "failed: " + e.inner.Error() }
func (e *nilError) Unwrap() error { return e.inner }

func TestHandlerReturnsTypedNilError(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() error { var e *nilError; return e }, delayed.MaxRetry(0))
	b.work(b.config(), f)
	b.delay(f)
	b.Until("the task is archived", func() bool { return b.Size("_archived") == 1 })
}

func TestBackoffPanics(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() error { return errors.New("no") })
	cfg := b.config()
	cfg.Backoff = func(int) time.Duration { panic("backoff") }
	b.work(cfg, f)
	b.delay(f)
	b.Until("the task is tried again or archived", func() bool { return b.Size("_archived")+b.Size("_retry") == 1 })
}

// onMessage calls f when a message is logged.
type onMessage struct {
	text string
	f    func()
}

func (onMessage) Levels() []logrus.Level { return logrus.AllLevels }
func (h onMessage) Fire(e *logrus.Entry) error {
	if e.Message == h.text {
		h.f()
	}
	return nil
}

func TestResumeDuringPause(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan struct{}, 1)
	f := b.fn("f", func() { ran <- struct{}{} })
	cfg := b.config()
	var w *started
	logger := logrus.New()
	logger.SetOutput(b.log)
	logger.AddHook(onMessage{"worker paused", func() {
		go w.Resume()
		// Either Resume waits until Pause is done, or Pause is done here.
		for end := time.Now().Add(200 * time.Millisecond); w.Status().State == state.Paused && time.Now().Before(end); {
			<-time.After(time.Millisecond)
		}
		<-time.After(50 * time.Millisecond)
	}})
	cfg.Logger = logger
	w = b.work(cfg, f)
	w.Pause()
	b.Until("the worker is running", func() bool { return w.Status().State == state.Running })
	b.delay(f)
	await(b, "the task, as the worker says that it is running", ran)
}

// Plain stress without a hook.
func TestPauseResumeRace(t *testing.T) {
	b := newBench(t)
	ran := make(chan struct{}, 1)
	f := b.fn("f", func() { ran <- struct{}{} })
	cfg := b.config()
	w := b.work(cfg, f)
	for i := range 300 {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(w.Pause)
			wg.Go(w.Resume)
		}
		wg.Wait()
		w.Resume()
		b.delay(f)
		select {
		case <-ran:
		case <-time.After(patience):
			t.Fatalf("round %d: state %v, and the task does not run", i, w.Status().State)
		}
	}
}

func TestWhatIsAcceptedCanBeRead(t *testing.T) {
	b := newBench(t)
	deep := func(n int) any {
		var v any = 1
		for range n {
			v = []any{v}
		}
		return v
	}
	wide := func(n int) []any { return make([]any, n) }
	one, two := b.fn("one", func(any) {}), b.fn("two", func(any, any) {})
	ext, err := delayed.OpenQueue(b.Name, b.rdb, delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		q *delayed.Queue
		t *delayed.Task
	}{
		"id that is not UTF-8":   {b.q.With(delayed.TaskID("\xff")), delayed.Call(one, 1)},
		"path that is not UTF-8": {b.q, delayed.NewGoTask("a.\xff")},
		"python path not UTF-8":  {b.q, delayed.NewPyTask("a:\xff", nil, nil)},
		"id python":              {ext.With(delayed.TaskID("\xff")), delayed.NewPyTask("a:b", nil, nil)},
		"deep one 31":            {b.q, delayed.Call(one, deep(31))},
		"deep one 32":            {b.q, delayed.Call(one, deep(32))},
		"deep one max retry":     {b.q.With(delayed.MaxRetry(3)), delayed.Call(one, deep(32))},
		"deep two 31":            {b.q, delayed.Call(two, deep(31), 1)},
		"deep two 32":            {b.q, delayed.Call(two, deep(32), 1)},
		"deep go 31":             {b.q, delayed.NewGoTask("a.b", deep(31))},
		"deep go 32":             {b.q, delayed.NewGoTask("a.b", deep(32))},
		"deep py 30":             {b.q, delayed.NewPyTask("a:b", []any{deep(30)}, nil)},
		"deep py 31":             {b.q, delayed.NewPyTask("a:b", []any{deep(31)}, nil)},
		"deep py kw 31":          {b.q, delayed.NewPyTask("a:b", nil, map[string]any{"a": deep(31)})},
		"wide py":                {b.q, delayed.NewPyTask("a:b", wide(60000), map[string]any{"a": wide(60000)})},
		"wide go":                {b.q, delayed.NewGoTask("a.b", wide(40000), wide(40000))},
		"wide two":               {b.q, delayed.Call(two, wide(40000), wide(40000))},
	} {
		message, _, _, err := delayed.Message(c.q, c.t, 1)
		if err != nil {
			continue
		}
		if _, err := wire.Parse(message, wire.Default); err != nil {
			t.Errorf("%s: accepted, and refused by the worker: %v", name, err)
		}
	}
}

func TestNothingStartsAfterStop(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	var mu sync.Mutex
	starts := []time.Time{}
	entered := make(chan struct{}, 100)
	f := b.fn("f", func() {
		mu.Lock()
		starts = append(starts, time.Now())
		mu.Unlock()
		entered <- struct{}{}
		<-time.After(100 * time.Millisecond)
	})
	cfg := b.config()
	cfg.HeartbeatLife = 15 * time.Second
	cfg.Concurrency, cfg.Prefetch = 1, 30
	for range 31 {
		b.delay(f)
	}
	w, _ := delayed.NewWorker(b.rdb, cfg)
	_ = w.Register(f)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	<-entered
	<-entered
	b.Server.Pause(t)
	cancel()
	stopped := time.Now()
	<-time.After(2 * time.Second)
	b.Server.Resume(t)
	<-result
	mu.Lock()
	defer mu.Unlock()
	n := 0
	for _, s := range starts {
		if s.Sub(stopped) > 150*time.Millisecond {
			n++
		}
	}
	if n > 10 { // a worker that goes on starts 18 of them, and a busy one may hear late that it shall stop
		limits.Errorf(t, "%d tasks that were claimed ahead were started after the worker was told to stop", n)
	}
}

// mapSource is a source that cannot be compared.
type mapSource struct{ pools map[string]*redis.Pool }

func (s mapSource) Conn(ctx context.Context, _ string) (redis.Conn, error) {
	return s.pools[""].GetContext(ctx)
}
func (mapSource) Slot(string) int { return 0 }
func (mapSource) Close() error    { return nil }

func TestCloseOfAnySource(t *testing.T) {
	rdb := delayed.FromSource(mapSource{map[string]*redis.Pool{}})
	if err := rdb.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestStatusBeforeRedisKnows(t *testing.T) {
	b := newBenchOn(t, redistest.Start(t))
	b.Server.Pause(t)
	w, _ := delayed.NewWorker(b.rdb, b.config())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	<-time.After(100 * time.Millisecond)
	if s := w.Status().State; s != state.New {
		t.Errorf("state %v; state.New is documented for a worker that Redis does not know yet", s)
	}
	b.Server.Resume(t)
	cancel()
	<-done
}

// runToEnd runs a worker until it stops by itself, and returns why it did.
func (b *bench) runToEnd(cfg delayed.WorkerConfig, fns ...any) state.Reason {
	b.T.Helper()
	w, _ := b.listened(cfg, fns...)
	result := make(chan error, 1)
	go func() { result <- w.Run(b.T.Context()) }()
	if err := await(b, "the worker to stop", result); err != nil {
		b.T.Fatalf("Run: %v", err)
	}
	return w.Status().StopReason
}

func TestOnce(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func() { ran.Add(1) })
	cfg := b.config()
	cfg.Limits, cfg.Prefetch = delayed.WorkerLimits{MaxTasks: 1, StopWhenEmpty: true}, 10
	if reason := b.runToEnd(cfg, f); reason != "empty" {
		t.Errorf("no task: expected %q, found %q", "empty", reason)
	}
	b.delay(f)
	b.delay(f)
	for left := 1; left >= 0; left-- {
		if reason := b.runToEnd(cfg, f); reason != "max tasks" || b.Size("") != left {
			t.Errorf("expected %q and %d pending tasks, found %q and %d", "max tasks", left, reason, b.Size(""))
		}
	}
	if ran.Load() != 2 {
		t.Errorf("expected 2 tasks, found %d", ran.Load())
	}
}

// stuckOn blocks like a handler that waits for ever.
func stuckOn(leave chan struct{}) { <-leave }

func TestWorkerReplacesStuckHandlers(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan int, 3), make(chan struct{})
	ends := make(chan error, 3)
	f := b.fn("f", func(ctx context.Context, i int) {
		entered <- i
		if i == 0 {
			<-ctx.Done()
			ends <- context.Cause(ctx)
			stuckOn(leave)
		}
	})
	cfg := b.config()
	cfg.Concurrency, cfg.StuckAfter = 1, 10*time.Millisecond
	w := b.work(cfg, f)
	b.delayWith(b.q.With(delayed.Timeout(10*time.Millisecond)), f, 0) // the others have no limit
	b.delay(f, 1)
	await(b, "the first task", entered)
	if err := await(b, "the end of its context", ends); !errors.Is(err, delayed.ErrTimeout) {
		t.Error(err)
	}
	await(b, "the task in its place", entered)
	b.Until("that is done", func() bool { return b.counters()["processed"] == 1 })
	if n := b.Size("_processing:" + w.ID()); n != 1 {
		t.Errorf("%d claims stand, expected that of the stuck task", n)
	}
	b.Until("the first is logged", func() bool { return strings.Contains(b.log.String(), "handler is stuck") })
	if text := b.log.String(); !strings.Contains(text, "delayed_test.stuckOn") ||
		!strings.Contains(text, "function="+b.Name+".f") || strings.Contains(text, "stuckOn(0x") {
		t.Error(text)
	}
	close(leave)
	b.Until("its end counts", func() bool { return b.counters()["processed"] == 2 })
	b.delay(f, 2)
	await(b, "the next task", entered)
	b.Idle()
	w.mustStop()
	b.Check(redistest.Invariants{Idle: true})
}

func TestWorkerStopsBecauseOfStuckHandlers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		grace time.Duration
		sound bool // whether the other handler finishes
	}{
		{"the others finish", time.Hour, true},
		{"others do not", 10 * time.Millisecond, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			entered, leave, leaveOther := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
			f := b.fn("f", func(context.Context, int) { stuckOn(leave) }, delayed.Timeout(10*time.Millisecond))
			other := b.fn("other", func(context.Context) { entered <- struct{}{}; <-leaveOther })
			cfg := b.config()
			cfg.Concurrency, cfg.StuckAfter, cfg.MaxStuck = 3, 10*time.Millisecond, 1
			cfg.Grace, cfg.CancelGrace = tt.grace, 10*time.Millisecond
			w, h := b.listened(cfg, f, other)
			b.delay(other)
			result := make(chan error, 1)
			go func() { result <- w.Run(t.Context()) }()
			await(b, "the other handler", entered)
			refs := []string{b.delay(f, 1).ID()}
			b.Until("it is stuck", func() bool { return strings.Contains(b.log.String(), refs[0]) })
			refs = append(refs, b.delay(f, 2).ID())
			b.Until("the worker stops", func() bool { return w.Status().State == state.Stopping })
			if tt.sound {
				close(leaveOther)
			}
			err := await(b, "Run", result)
			var stuck *delayed.StuckError
			if !errors.As(err, &stuck) || len(stuck.Funcs) != 2 || stuck.Funcs[0] != b.Name+".f" ||
				w.Status().StopReason != "stuck" {
				t.Fatalf("Run: %v, stop reason %q", err, w.Status().StopReason)
			}
			slices.Sort(stuck.IDs)
			slices.Sort(refs)
			if !slices.Equal(stuck.IDs, refs) {
				t.Errorf("ids %v, expected %v", stuck.IDs, refs)
			}
			var running *delayed.StillRunningError
			if others := errors.As(err, &running); others == tt.sound || others &&
				!slices.Equal(running.Funcs, []string{b.Name + ".other"}) {
				t.Errorf("Run: %v", err)
			}
			if n := b.Size("_processing:" + w.ID()); n < 2 {
				t.Errorf("%d claims stand, expected those of the stuck tasks", n)
			}
			if note := b.Do("HGET", b.Name+"_claims:"+w.ID(), "stopped"); note != nil {
				t.Error("the worker noted that it stops in good order: sweepers would count no deaths of stuck tasks")
			}
			close(leave)
			if !tt.sound {
				close(leaveOther)
			}
			b.Until("the worker is gone", func() bool { return len(h.of(event.WorkerStopped)) == 1 })
			last := h.of(event.WorkerStopped)[0]
			if !errors.Is(last.Err, stuck) || last.Reason != "stuck" || w.Status().State != state.Stopped {
				t.Errorf("the last event: %+v, expected the error that Run returns", last)
			}
			b.Check(redistest.Invariants{Idle: true})
			if n := b.counters()["processed"]; n != 3 {
				t.Errorf("processed %d, expected 3: late ends count", n)
			}
		})
	}
}

// A stop does not wait longer because of stuck handlers, and its error names them as still running.
func TestStopBesideAStuckHandler(t *testing.T) {
	b := newBench(t)
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	f := b.fn("f", func() { entered <- struct{}{}; stuckOn(leave) })
	cfg := b.config()
	cfg.Timeout, cfg.StuckAfter, cfg.Grace, cfg.CancelGrace = time.Millisecond, time.Millisecond, 10*time.Millisecond,
		10*time.Millisecond
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
	b.delay(f)
	await(b, "the handler", entered)
	b.Until("it is stuck", func() bool { return strings.Contains(b.log.String(), "handler is stuck") })
	cancel()
	var running *delayed.StillRunningError
	if err := await(b, "Run", result); !errors.As(err, &running) || len(running.Funcs) != 1 {
		t.Errorf("Run: %v", err)
	}
	close(leave)
	b.Until("the worker is gone", func() bool { return w.Status().State == state.Stopped })
}

func TestMaxStuckDefaults(t *testing.T) {
	for _, tt := range []struct{ concurrency, given, want int }{
		{1, 0, 1},
		{5, 0, 1},
		{100, 0, 10},
		{100, 3, 3},
		{100, -1, 0},
	} {
		cfg := delayed.WorkerConfig{Concurrency: tt.concurrency, MaxStuck: tt.given}
		if got := delayed.WithDefaults(cfg).MaxStuck; got != tt.want {
			t.Errorf("%d of %d: %d, expected %d", tt.given, tt.concurrency, got, tt.want)
		}
	}
	b := newBench(t)
	cfg := b.config()
	cfg.MaxStuck = 100_001
	if _, err := delayed.NewWorker(b.rdb, cfg); err == nil ||
		!strings.Contains(err.Error(), "WorkerConfig.MaxStuck is 100001: expected at most 100000") {
		t.Error(err)
	}
}

// TestStopUnregistersAgain breaks the connections of a worker while it unregisters. It tries again, so Run returns nil,
// and no sweeper has to remove the worker.
func TestStopUnregistersAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	failures := 3
	d := faultnet.NewDialer(func(request []byte) faultnet.Fault {
		if failures > 0 && bytes.Contains(request, []byte(redisstore.Scripts["forget"].Sha)) {
			failures--
			return faultnet.DropRequest
		}
		return faultnet.None
	}, 0)
	pool := &redis.Pool{MaxIdle: 10, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", b.Server.Addr(), redis.DialContextFunc(d.DialContext),
			redis.DialReadTimeout(redisstore.CallTimeout))
	}}
	t.Cleanup(func() { pool.Close() })
	s := b.workWith(delayed.FromPool(pool), b.config(), b.fn("f", func() {}))
	b.Must(s.stop())
	if n := d.Counts().DroppedRequests; n != 3 {
		t.Errorf("%d requests were lost, expected 3", n)
	}
	if n := b.Size("_workers"); n != 0 {
		t.Errorf("Redis knows %d workers, expected none", n)
	}
	b.Check(redistest.Invariants{})
}

// flakySource is a source that refuses some connections to end claims.
type flakySource struct {
	delayed.Source
	next *atomic.Int64 // how many connections it refuses next
}

func (s flakySource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	if strings.Contains(key, "_processing:") && s.next.Add(-1) >= 0 {
		return nil, errors.New("connection refused")
	}
	return s.Source.Conn(ctx, key)
}

// TestUnansweredThenRefused: Redis has ended a claim, but its answer was lost, and then connections fail. When Redis
// finally answers that the claim does not exist, the worker does not count it as lost.
func TestUnansweredThenRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var lose atomic.Bool
	var refuse atomic.Int64
	src := redistest.Intercept(b.src, func(cmd string, args []any, send func() (any, error)) (any, error) {
		losing := cmd == "EVALSHA" && args[0] == redisstore.Scripts["shelve"].Sha && lose.Load()
		reply, err := send()
		if losing {
			refuse.Store(3)
			lose.Store(false)
			return nil, errors.New("connection reset by peer")
		}
		return reply, err
	})
	rdb := delayed.FromSource(flakySource{src, &refuse})
	defer rdb.Close()
	cfg := b.config()
	cfg.HeartbeatLife, cfg.NoSweeper = time.Hour, true // only the finisher ends claims meanwhile
	cfg.Backoff = func(int) time.Duration { return time.Hour }
	f := b.fn("f", func() error { return errors.New("no") })
	w := b.workWith(rdb, cfg, f)
	b.delay(f) // this loads the script in Redis
	b.Until("the first is filed", func() bool { return b.Size("_retry") == 1 })
	lose.Store(true)
	b.delay(f)
	b.Until("connections were refused", func() bool { return !lose.Load() && refuse.Load() < 0 })
	w.mustStop()
	if c := b.counters(); c["lost"] != 0 || c["retried"] != 2 {
		t.Errorf("counters %v, expected two retries and no lost claim", c)
	}
}

func TestWorkerFunctions(t *testing.T) {
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{redistest.Name(t)}})
	if err != nil {
		t.Fatal(err)
	}
	if got := functionsOf(w); len(got) != 0 {
		t.Errorf("nothing is registered, found %v", got)
	}
	late := func(context.Context, int, string, ...bool) (chan int, error) { return nil, nil }
	if err := w.Register(fnTwo, delayed.Func(late, delayed.Name("late"), delayed.Alias("later"), delayed.Optional(2)),
		delayed.Func(func() []int { return nil }, delayed.Name("list"))); err != nil {
		t.Fatal(err)
	}
	got := functionsOf(w)
	for i, name := range []string{
		testPath + "fnTwo", testPath + "TestWorkerFunctions.func1",
		testPath + "TestWorkerFunctions.func2",
	} {
		if f := got[i].Func; f == nil || f.Name() != name {
			t.Errorf("function %d is %v, expected %s", i, f, name)
		}
		got[i].Func = nil
	}
	integer, text := reflect.TypeFor[int](), reflect.TypeFor[string]()
	want := []function.Info{
		{Path: testPath + "fnTwo", Params: []reflect.Type{reflect.TypeFor[int64](), text}},
		{
			Path: "late", Aliases: []string{"later"}, Params: []reflect.Type{integer, text, reflect.TypeFor[[]bool]()},
			Variadic: true, Optional: 2,
		},
		{Path: "list", Result: reflect.TypeFor[[]int]()},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("found %+v, expected %+v", got, want)
	}
}

// published returns what Redis knows about a worker's functions; the zero value if it knows nothing.
func (b *bench) published(w *started) (found catalog.List) {
	b.T.Helper()
	raw, err := b.store.FunctionsOf(b.T.Context(), w.ID())
	if err != nil {
		b.T.Fatal(err)
	}
	if raw != nil {
		if err := json.Unmarshal(raw, &found); err != nil || found.Version != catalog.Version {
			b.T.Fatalf("%v in %s", err, raw)
		}
	}
	return found
}

// A living worker publishes the signatures of its functions in Redis, also of those that it registers later. After its
// heartbeat was lost, it publishes them again, with its status.
func TestFunctionsArePublished(t *testing.T) {
	t.Parallel()
	type item struct {
		SKU   string `msgpack:"sku"`
		Count *int
	}
	b := newBench(t)
	place := b.fn("Place", func(int64, []item) (uint64, error) { return 0, nil }, delayed.Optional(1))
	cfg := b.config()
	second := b.Name + "-second"
	cfg.Queues = delayed.Strict{b.Name, second}
	w := b.work(cfg, place)
	b.Until("they are published", func() bool { return len(b.published(w).Functions) == 1 })
	f := b.published(w).Functions[0]
	if f.Path != b.Name+".Place" || f.Optional != 1 || len(f.Params) != 2 || f.Params[0].Type.Kind != "int64" ||
		f.Result.Type.Kind != "uint64" {
		t.Errorf("published: %+v", f)
	}
	list := f.Params[1].Type
	fields := b.published(w).Types[list.Elem.Name].Fields
	if list.Kind != "list" || len(fields) != 2 || fields[0].Name != "sku" || fields[1].Name != "Count" ||
		fields[1].Type.Kind != "optional" {
		t.Errorf("fields of the struct: %+v", fields)
	}
	b.Until("they are published on the other queue",
		func() bool { return b.Do("HGET", second+"_functions", w.ID()) != nil })

	if err := w.Register(b.fn("Later", func() {})); err != nil {
		t.Fatal(err)
	}
	b.Until("the new one is published", func() bool { return len(b.published(w).Functions) == 2 })
	b.Do("DEL", b.Name+"_worker:"+w.ID(), b.Name+"_functions") // as if Redis had lost it
	b.Until("they are published again", func() bool { return len(b.published(w).Functions) == 2 })
	b.Until("so is the status", func() bool { return b.Do("HGET", b.Name+"_functions", w.ID()+" status") != nil })
	w.mustStop()
	if b.Size("_functions") != 0 || b.Int("EXISTS", second+"_functions") != 0 {
		t.Error("left when the worker has stopped")
	}
	b.Check(redistest.Invariants{})
}

// A function that is registered while the worker runs is published at once, not with the next heartbeat.
func TestNewFunctionsArePublishedAtOnce(t *testing.T) {
	b := newBench(t)
	cfg := b.config()
	cfg.HeartbeatLife = 10 * time.Minute
	w := b.work(cfg, b.fn("First", func() {}))
	b.Until("it is published", func() bool { return len(b.published(w).Functions) == 1 })
	b.Must(w.Register(b.fn("Later", func() {})))
	b.Until("the new one is published", func() bool { return len(b.published(w).Functions) == 2 })
}

// Tasks do not wait when publishing fails.
func TestWorkerRunsThoughItCannotPublish(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Do("SET", b.Name+"_functions", "another type")
	ran := make(chan int, 1)
	f := b.fn("f", func(n int) { ran <- n })
	w := b.work(b.config(), f)
	b.delay(f, 7)
	if n := await(b, "the task", ran); n != 7 {
		t.Errorf("ran with %d", n)
	}
	b.Until("it is logged", func() bool { return strings.Contains(b.log.String(), "cannot publish the functions") })
	b.Do("DEL", b.Name+"_functions")
	b.Until("it is published", func() bool { return len(b.published(w).Functions) == 1 })
	b.Idle()
}

// TestLinesThatTheHandlerDoesNotWant are not made, and its level may change at any time.
func TestLinesThatTheHandlerDoesNotWant(t *testing.T) {
	var level slog.LevelVar
	journal := loop.NewJournal(
		delayed.SlogLogger(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: &level}))).With("worker", "w")
	of := map[loop.Level]slog.Level{
		loop.DebugLevel: slog.LevelDebug, loop.InfoLevel: slog.LevelInfo, loop.WarnLevel: slog.LevelWarn,
		loop.ErrorLevel: slog.LevelError,
	}
	for _, least := range of {
		level.Set(least)
		for line, its := range of {
			if got, want := journal.Wants(line), its >= least; got != want {
				t.Errorf("a handler of level %v wants a line of level %v: %v, expected %v", least, line, got, want)
			}
		}
	}
	level.Set(slog.LevelError)
	if n := testing.AllocsPerRun(10, func() { journal.Line(loop.WarnLevel, nil, errLine, "task failed") }); n != 0 {
		limits.Errorf(t, "a line that nobody wants took %v allocations", n)
	}
}

var errLine = errors.New("no luck")

// runs returns everything that has a Run, on one handle.
func (b *bench) runs(rdb *delayed.Store) map[string]func(context.Context) error {
	b.T.Helper()
	w, err := delayed.NewWorker(rdb, b.config())
	if err != nil {
		b.T.Fatal(err)
	}
	sweeper, err := delayed.NewSweeper(rdb,
		delayed.SweeperConfig{Queues: []string{b.Name}, Interval: 10 * time.Millisecond, Logger: b.log.Logger()})
	if err != nil {
		b.T.Fatal(err)
	}
	scheduler, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: b.Name, Logger: b.log.Logger()})
	if err != nil {
		b.T.Fatal(err)
	}
	return map[string]func(context.Context) error{"worker": w.Run, "sweeper": sweeper.Run, "scheduler": scheduler.Run}
}

// TestRunOnAClosedHandle: Run returns an error and does not wait for its context, because it can do nothing any more.
func TestRunOnAClosedHandle(t *testing.T) {
	for _, when := range []string{"before", "meanwhile"} {
		b := newBench(t)
		rdb, err := delayed.Dial(b.Server.URL())
		if err != nil {
			t.Fatal(err)
		}
		runs := b.runs(rdb.WithPrefix("p:"))
		if when == "before" {
			rdb.Close()
		}
		ended := make(chan error)
		for name, run := range runs {
			go func() {
				err := run(t.Context())
				if !errors.Is(err, delayed.ErrClosed) {
					t.Errorf("%s, closed %s: found %v", name, when, err)
				}
				ended <- err
			}()
		}
		if when == "meanwhile" {
			b.Until("the worker is there", func() bool { n := b.Int("EXISTS", "p:"+b.Name+"_workers"); return n == 1 })
			rdb.Close()
		}
		for range runs {
			_ = await(b, "Run to return", ended)
		}
		if when == "before" && b.log.String() != "" {
			t.Errorf("something was tried on a closed handle:\n%s", b.log)
		}
		b.Do("DEL", "p:"+b.Name+"_workers")
	}
}

// TestClosedHandleWithTasks: Redis cannot be told of a task that ends after the handle was closed. Run does not wait
// for that, and its error names both.
func TestClosedHandleWithTasks(t *testing.T) {
	b := newBench(t)
	rdb, err := delayed.Dial(b.Server.URL())
	if err != nil {
		t.Fatal(err)
	}
	cfg := b.config()
	cfg.CancelGrace = time.Hour
	w, err := delayed.NewWorker(rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	started, end := make(chan struct{}), make(chan struct{})
	f := b.fn("f", func() { close(started); <-end })
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- w.Run(t.Context()) }()
	b.delay(f)
	await(b, "the task", started)
	rdb.Close()
	b.Until("the worker stops", func() bool { return w.Status().State == state.Stopping })
	close(end)
	if err := await(b, "Run", ended); !errors.Is(err, delayed.ErrClosed) ||
		!strings.Contains(err.Error(), "has not confirmed how 1 tasks ended") {
		t.Errorf("found %v", err)
	}
	if reason := w.Status().StopReason; reason != "closed" {
		t.Errorf("stopped because of %q", reason)
	}
}

// TestDeadlineIsACleanStop: a context that ends by a deadline stops Run like a canceled one, without logging an error.
func TestDeadlineIsACleanStop(t *testing.T) {
	b := newBench(t)
	var all sync.WaitGroup
	for i := range 4 {
		for name, run := range b.runs(b.rdb) {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(40+10*i)*time.Millisecond)
				defer cancel()
				if err := run(ctx); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	all.Wait()
	if log := b.log.String(); strings.Contains(log, "cannot") || strings.Contains(log, "level=error") {
		t.Errorf("found\n%s", b.log)
	}
}

// TestCloseEndsSubscriptions: a caller that waits for a signal looks again, and finds that the handle is closed.
func TestCloseEndsSubscriptions(t *testing.T) {
	b := newBench(t)
	c, end := delayed.Signals(b.rdb).Subscribe(b.Name)
	defer end()
	if got := await(b, "the subscription", c); got != "" {
		t.Fatalf("signal %q, expected that the subscription holds", got)
	}
	b.Must(b.rdb.Close())
	if got := await(b, "the end", c); got != "" {
		t.Errorf("signal %q, expected the demand to look again", got)
	}
}
