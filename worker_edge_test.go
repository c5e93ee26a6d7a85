package delayed_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

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
	ext, err := delayed.OpenQueue(b.rdb, delayed.QueueConfig{Name: b.Name})
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
		t.Errorf("%d tasks that were claimed ahead were started after the worker was told to stop", n)
	}
}

func TestSmallPoolIsReported(t *testing.T) {
	b := newBench(t)
	ran := make(chan struct{}, 1)
	f := b.fn("f", func() { ran <- struct{}{} })
	pool := b.Server.Pool(t)
	pool.MaxActive, pool.Wait = 3, true
	cfg := b.config()
	w, err := delayed.NewWorker(delayed.FromPool(pool), cfg)
	if err != nil {
		return // it was reported
	}
	_ = w.Register(f)
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	<-time.After(8 * time.Second)
	b.delay(f)
	select {
	case <-ran:
	case <-time.After(patience):
		t.Logf("not run: %s", b.log)
		if !strings.Contains(b.log.String(), "cannot") {
			t.Errorf("with a pool of three connections no task runs, and nobody is told:\n%s", b.log)
		}
	}
	cancel()
	select {
	case err := <-result:
		t.Log(err)
	case <-time.After(patience):
		t.Error("Run does not return")
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
