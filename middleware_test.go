package delayed_test

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// marking is middleware that sends its name before and after.
func marking(marks chan<- string, name string) func(delayed.HandlerFunc) delayed.HandlerFunc {
	return func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error {
			marks <- name
			defer func() { marks <- "/" + name }()
			return next(ctx, t)
		}
	}
}

// using makes a worker with middleware.
func (b *bench) using(
	cfg delayed.WorkerConfig, mw []func(delayed.HandlerFunc) delayed.HandlerFunc, fns ...any,
) *started {
	b.T.Helper()
	w, err := delayed.NewWorker(b.rdb, cfg)
	if err != nil {
		b.T.Fatal(err)
	}
	if err := w.Use(mw...); err != nil {
		b.T.Fatal(err)
	}
	if err := w.Register(fns...); err != nil {
		b.T.Fatal(err)
	}
	return b.start(w)
}

// around returns middleware made of a function that also gets next.
func around(
	f func(ctx context.Context, t *delayed.Task, next delayed.HandlerFunc) error,
) []func(delayed.HandlerFunc) delayed.HandlerFunc {
	return []func(delayed.HandlerFunc) delayed.HandlerFunc{func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error { return f(ctx, t, next) }
	}}
}

func TestMiddlewareOrder(t *testing.T) {
	b := newBench(t)
	marks := make(chan string, 100)
	plain := b.fn("plain", func(int) { marks <- "plain" })
	own := b.fn("own", func(int) { marks <- "own" }, delayed.Middleware(marking(marks, "c")),
		delayed.Middleware(marking(marks, "d")))
	w, err := delayed.NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if err := w.Use(marking(marks, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Register(plain, own); err != nil {
		t.Fatal(err)
	}
	s := b.start(w)
	for fn, want := range map[*delayed.Function]string{plain: "a b plain /b /a", own: "a b c d own /d /c /b /a"} {
		b.delay(fn, 1)
		var got []string
		for range strings.FieldsSeq(want) {
			got = append(got, await(b, "a mark", marks))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("expected %s, found %q", want, got)
		}
	}
	s.mustStop()
	b.work(b.config(), own) // a worker without middleware of its own
	b.delay(own, 1)
	for _, want := range []string{"c", "d", "own", "/d", "/c"} {
		if got := await(b, "a mark", marks); got != want {
			t.Errorf("expected %s, found %s", want, got)
		}
	}
}

func TestMiddlewareDecides(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	seen := make(chan error, 10)
	fail := errors.New("failed")
	ok := b.fn("ok", func(context.Context, int) { ran.Add(1) })
	failing := b.fn("failing", func() error { return fail })
	panicking := b.fn("panicking", func() { panic(fail) })
	skipped := b.fn("skipped", func() { ran.Add(100) })
	refused := b.fn("refused", func() { ran.Add(100) })
	s := b.using(b.config(), around(func(ctx context.Context, task *delayed.Task, next delayed.HandlerFunc) error {
		switch task.Path() {
		case b.Name + ".skipped":
			seen <- nil
			return nil
		case b.Name + ".refused":
			seen <- fail
			return fail
		}
		err := next(ctx, task)
		seen <- err
		return nil // whatever the error was
	}), ok, failing, panicking, skipped, refused)
	none := b.q.With(delayed.MaxRetry(0))
	b.delayWith(none, ok, 1)
	if err := await(b, "the task", seen); err != nil {
		t.Errorf("expected nil, found %v", err)
	}
	b.delayWith(none, failing)
	if err := await(b, "the failure", seen); !errors.Is(err, fail) {
		t.Errorf("expected the handler's error, found %v", err)
	}
	b.delayWith(none, panicking)
	var p *function.PanicError
	if err := await(b, "the panic", seen); !errors.As(err, &p) || !errors.Is(err, fail) {
		t.Errorf("expected the panic, found %v", err)
	}
	if _, err := none.Enqueue(t.Context(), delayed.NewGoTask(b.Name+".ok", "text")); err != nil {
		t.Fatal(err)
	}
	var misfit *delayed.ArgumentError
	if err := await(b, "the misfit", seen); !errors.As(err, &misfit) {
		t.Errorf("expected an *ArgumentError, found %v", err)
	}
	b.delayWith(none, skipped)
	_ = await(b, "the skipped one", seen)
	b.Idle()
	b.Until("all are acknowledged", func() bool { return b.counters()["processed"] == 5 })
	if ran.Load() != 1 || b.Size("_archived") != 0 {
		t.Errorf("expected 1 call and no archived tasks, found %d and %d", ran.Load(), b.Size("_archived"))
	}
	b.delayWith(none, refused)
	_ = await(b, "the refused one", seen)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	s.mustStop()
	b.Check(redistest.Invariants{})
}

// TestMiddlewareThatMisbehaves: middleware panics, ends its goroutine, or passes on another task. Each time the task
// fails and the worker goes on.
func TestMiddlewareThatMisbehaves(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(string) {})
	b.using(b.config(), around(func(ctx context.Context, task *delayed.Task, next delayed.HandlerFunc) error {
		switch task.ID() {
		case "panic":
			panic("at the disco")
		case "exit":
			runtime.Goexit()
		case "other":
			return next(ctx, delayed.Call(f, "x"))
		case "none":
			return next(ctx, nil)
		}
		return next(ctx, task)
	}), f)
	for id, says := range map[string]string{
		"panic": "at the disco", "exit": "runtime.Goexit", "other": "next is given the task",
		"none": "next is given the task",
	} {
		b.delayWith(b.q.With(delayed.MaxRetry(0), delayed.TaskID(id)), f, "x")
		b.Until(id+" is archived", func() bool { return b.Hash("_info")[id] != "" })
		info := b.Hash("_info")[id]
		if !strings.Contains(info, says) || strings.Contains(info, "(*Worker).execute") {
			t.Errorf("%s: expected an error with %q and no stack of the worker, found %q", id, says, info)
		}
	}
	b.delay(f, "x")
	b.Idle()
}

type otherKey struct{}

func TestMiddlewareChangesTheContext(t *testing.T) {
	b := newBench(t)
	got := make(chan string, 1)
	f := b.fn("f", func(ctx context.Context) {
		text, _ := ctx.Value(otherKey{}).(string)
		got <- text + " " + delayed.TaskFromContext(ctx).ID()
	})
	b.using(b.config(), around(func(ctx context.Context, task *delayed.Task, next delayed.HandlerFunc) error {
		if delayed.TaskFromContext(ctx).ID() != task.ID() {
			t.Error("the context carries another task")
		}
		return next(context.WithValue(ctx, otherKey{}, "value"), task)
	}), f)
	if ref := b.delay(f); await(b, "the task", got) != "value "+ref.ID() {
		t.Error("the handler got another context")
	}
}

func TestUseSaysWhatIsWrong(t *testing.T) {
	b := newBench(t)
	broken := func(delayed.HandlerFunc) delayed.HandlerFunc { return nil }
	w, err := delayed.NewWorker(b.rdb, b.config())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Use(nil); !errors.Is(err, delayed.ErrFunction) {
		t.Errorf("nil: expected ErrFunction, found %v", err)
	}
	if err := w.Use(broken); err != nil {
		t.Fatal(err)
	}
	if err := w.Run(t.Context()); !errors.Is(err, delayed.ErrFunction) || w.Status().State != state.Stopped {
		t.Errorf("middleware that is none: expected ErrFunction and a worker that has stopped, found %v and %v", err,
			w.Status().State)
	}
	for _, mw := range []func(delayed.HandlerFunc) delayed.HandlerFunc{nil, broken} {
		if _, err := b.q.Delay(b.fn("f", func() {}, delayed.Middleware(mw))); !errors.Is(err, delayed.ErrFunction) ||
			!strings.Contains(err.Error(), ".f: ") {
			t.Errorf("Func: expected ErrFunction with the function's name, found %v", err)
		}
	}
	s := b.work(b.config())
	if err := s.Use(marking(nil, "")); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("after Run: expected ErrClosed, found %v", err)
	}
}

func TestTaskFromContext(t *testing.T) {
	b := newBench(t)
	tasks := make(chan *delayed.Task, 10)
	f := b.fn("f", func(ctx context.Context, fail bool) error {
		task := delayed.TaskFromContext(ctx)
		tasks <- task
		if fail && task.Attempt() == 1 {
			return errors.New("once")
		}
		return nil
	}, delayed.MaxRetry(7))
	b.work(b.config(), f)
	before := time.Now().Truncate(time.Millisecond)
	ref := b.delayWith(b.q.With(delayed.Header("k", "v"), delayed.Header("l", "w")), f, true)
	for attempt := 1; attempt <= 2; attempt++ {
		task := await(b, "the task", tasks)
		if task.ID() != ref.ID() || task.IdempotencyKey() != ref.ID() || task.Queue() != b.Name ||
			task.Path() != b.Name+".f" || task.Attempt() != attempt ||
			task.MaxRetry() != 7 || task.Deaths() != 0 || task.EnqueuedAt().Before(before) ||
			task.EnqueuedAt().After(time.Now()) {
			t.Errorf("attempt %d: found %s of %s, %s, attempt %d of %d, %d deaths, enqueued at %v",
				attempt, task.ID(), task.Queue(), task.Path(), task.Attempt(), task.MaxRetry(), task.Deaths(),
				task.EnqueuedAt())
		}
		if h := task.Headers(); !maps.Equal(h, map[string]string{"k": "v", "l": "w"}) || task.Header("l") != "w" ||
			task.Header("x") != "" {
			t.Errorf("attempt %d: headers %q", attempt, h)
		}
		task.Headers()["k"] = "changed"
		if task.Header("k") != "v" {
			t.Error("the map of headers is not the caller's own")
		}
	}
	b.delayWith(b.q.With(delayed.MaxRetry(3)), f, false)
	if task := await(b, "the other", tasks); task.MaxRetry() != 3 || task.Headers() != nil || task.Header("k") != "" {
		t.Errorf("found %d retries and headers %q", task.MaxRetry(), task.Headers())
	}
	if delayed.TaskFromContext(t.Context()) != nil {
		t.Error("a context that is no handler's carries a task")
	}
	task := delayed.Call(f, false)
	if task.ID() != "" || task.IdempotencyKey() != "" || task.Queue() != "" || task.Attempt() != 0 ||
		task.MaxRetry() != 0 || task.Deaths() != 0 ||
		!task.EnqueuedAt().IsZero() || task.Headers() != nil || task.Header("k") != "" {
		t.Error("a task that is to be enqueued is said to have been received")
	}
}

// TestReceivedTaskIsEnqueuedAgain: it becomes a task of its own, with the same arguments.
func TestReceivedTaskIsEnqueuedAgain(t *testing.T) {
	b := newBench(t)
	other := delayed.NewQueue(b.Name+"-2", b.rdb)
	f := b.fn("f", func(ctx context.Context, n int) error {
		task := delayed.TaskFromContext(ctx)
		if task.Attempt() == 1 {
			return errors.New("once")
		}
		_, err := other.Enqueue(ctx, task)
		return err
	})
	b.work(b.config(), f)
	ref := b.delay(f, 42)
	b.Idle()
	b.Until("it is there", func() bool { return b.Size("-2") == 1 })
	messages, _ := redistest.Dump(t, b.Conn, other.Name())[""].(redistest.List)
	m, err := parseForTest(messages[0])
	if err != nil || m.Path != b.Name+".f" || string(m.Payload) != "\x2a" || m.Meta.Retried != 0 ||
		m.Meta.ID == ref.ID() || m.Meta.ID == "" {
		t.Errorf("found %+v, %v", m, err)
	}
}

// TestNoMiddlewareCostsNothing: without middleware, the worker makes no Task for a call.
func TestNoMiddlewareCostsNothing(t *testing.T) {
	limits.Only(t)
	b := newBench(t)
	claims := make(chan *engine.Claim, 1)
	f := b.fn("f", func(int) {})
	b.using(b.config(), around(func(ctx context.Context, task *delayed.Task, next delayed.HandlerFunc) error {
		claims <- delayed.ClaimOf(task)
		return next(ctx, task)
	}), f)
	b.delay(f, 1)
	c := await(b, "a claim", claims)
	b.Idle()

	measure := func(call func()) float64 {
		call()
		least := testing.AllocsPerRun(200, call)
		for range 4 { // what other goroutines allocate meanwhile counts too
			least = min(least, testing.AllocsPerRun(200, call))
		}
		return least
	}
	plain := measure(func() { _, _ = c.Function().Call(t.Context(), c.Message()) })
	for n, extra := range map[int]float64{0: 0, 3: 1} {
		w := idleWorker(t)
		b.Must(w.Use(slices.Repeat(around(
			func(ctx context.Context, task *delayed.Task, next delayed.HandlerFunc) error { return next(ctx, task) },
		), n)...))
		call, err := delayed.Caller(w)
		b.Must(err)
		if got := measure(func() { _, _ = call(t.Context(), c) }); got != plain+extra {
			t.Errorf("with %d middlewares: expected %v allocations, found %v", n, plain+extra, got)
		}
	}
}

// TestMiddlewareWithoutAContext: if middleware gives next no context, it has failed, and the function is not called.
func TestMiddlewareWithoutAContext(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(context.Context) { t.Error("the function was called") },
		delayed.Middleware(func(next delayed.HandlerFunc) delayed.HandlerFunc {
			return func(_ context.Context, task *delayed.Task) error {
				return next(nil, task) //nolint:contextcheck // on purpose
			}
		}))
	ref := b.delayWith(b.q.With(delayed.MaxRetry(0), delayed.KeepResult(time.Minute)),
		delayed.Func(func(context.Context) int { return 0 }, delayed.Name(b.Name+".f")))
	b.work(b.config(), f)
	if err := ref.Wait(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "expected that next is given a context, found nil") {
		t.Errorf("found %v", err)
	}
}

// TestWhatErrorsTellMiddleware: middleware can tell what handlers say from failures, and panics from other errors.
func TestWhatErrorsTellMiddleware(t *testing.T) {
	b := newBench(t)
	told := make(chan string, 10)
	mw := around(func(ctx context.Context, t *delayed.Task, next delayed.HandlerFunc) error {
		err := next(ctx, t)
		var says interface{ Says() string }
		var kind interface{ ErrorType() string }
		switch {
		case errors.As(err, &says):
			told <- says.Says()
		case errors.As(err, &kind):
			told <- kind.ErrorType()
		default:
			told <- "nothing"
		}
		return nil
	})
	failed := errors.New("failed")
	all := map[string]func() error{
		"discard": func() error { return delayed.Discard(failed) }, "drop": func() error { return delayed.Drop(nil) },
		"retry in": func() error { return errors.Join(delayed.RetryIn(time.Second, failed)) },
		"snooze":   func() error { return delayed.Snooze(time.Hour) }, "panic": func() error { panic("ouch") },
		"nothing": func() error { return failed },
	}
	fns := map[string]any{}
	for name, f := range all {
		fns[name] = b.fn(name, f)
	}
	b.using(b.config(), mw, slices.Collect(maps.Values(fns))...)
	for want, f := range fns {
		b.delay(f)
		if got := await(b, "the middleware", told); got != want {
			t.Errorf("%s: found %s", want, got)
		}
	}
}
