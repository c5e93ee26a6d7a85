package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
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
	claims := make(chan *lane.Claim, 1)
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
	outcomes := make(chan string, 10)
	mw := around(func(ctx context.Context, t *delayed.Task, next delayed.HandlerFunc) error {
		err := next(ctx, t)
		var decided interface{ Decision() string }
		var kind interface{ ErrorType() string }
		switch {
		case errors.As(err, &decided):
			outcomes <- decided.Decision()
		case errors.As(err, &kind):
			outcomes <- kind.ErrorType()
		default:
			outcomes <- "nothing"
		}
		return nil
	})
	failed := errors.New("failed")
	all := map[string]func() error{
		"archive": func() error { return delayed.Archive(failed) }, "drop": func() error { return delayed.Drop(nil) },
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
		if got := await(b, "the middleware", outcomes); got != want {
			t.Errorf("%s: found %s", want, got)
		}
	}
}

type addressForTest struct {
	Street string
	No     int
}

// seenForTest is what middleware saw of a task.
type seenForTest struct {
	args, kwargs any
	options      string
	err          error
}

// looking returns middleware that tells what a task shows.
func looking(seen chan<- seenForTest) []func(delayed.HandlerFunc) delayed.HandlerFunc {
	return around(func(ctx context.Context, t *delayed.Task, next delayed.HandlerFunc) error {
		args, kwargs, err := t.Args()
		seen <- seenForTest{args, kwargs, fmt.Sprint(t.Options()), err}
		return next(ctx, t)
	})
}

func TestMiddlewareSeesArgumentsAndOptions(t *testing.T) {
	b := newBench(t)
	seen := make(chan seenForTest, 1)
	address := b.fn("address", func(addressForTest, ...int) error { return nil }, delayed.MaxRetry(2))
	one := b.fn("one", func([]string) error { return nil })
	none := b.fn("none", func() error { return nil })
	tail := b.fn("tail", func(...int) error { return nil })
	b.using(b.config(), looking(seen), address, one, none, tail)

	at := time.Date(2120, 1, 2, 3, 4, 5, 6e6, time.UTC)
	full := b.q.With(delayed.Unique(time.Hour), delayed.UntilStart(), delayed.Timeout(time.Minute),
		delayed.Deadline(at), delayed.TTL(time.Hour), delayed.RetryUntil(at),
		delayed.Backoff(time.Second, 2*time.Second), delayed.MaxBackoff(time.Hour), delayed.KeepResult(time.Minute),
		delayed.Retention(2*time.Minute),
		delayed.Header("b", "2"), delayed.Header("a", "1"))
	message, _, _, err := delayed.Message(full, delayed.NewGoTask("a.b"), 1)
	b.Must(err)
	x := reflect.ValueOf(*parsed(t, message).Meta.Extra)
	for i := range x.NumField() {
		switch name := x.Type().Field(i).Name; name {
		case "FirstFailed", "Due", "AloneDeaths", "Group", "Gather", "Failures": // no options, or not with these
		default:
			if x.Field(i).IsZero() {
				t.Errorf("no option gives the task its %s: add it here and to Task.Options", name)
			}
		}
	}
	local := at.Local().Format(time.RFC3339Nano)
	for _, c := range []struct {
		q       *delayed.Queue
		fn      any
		args    []any
		want    []any
		options string
	}{
		{
			b.q, address,
			[]any{addressForTest{"High St", 7}, 1, 2},
			[]any{map[string]any{"Street": "High St", "No": int64(7)}, int64(1), int64(2)},
			"[MaxRetry(2)]",
		},
		{b.q, one, []any{[]string{"a"}}, []any{[]any{"a"}}, "[]"},
		{b.q, none, nil, nil, "[]"},
		{b.q, tail, []any{3}, []any{int64(3)}, "[]"},
		{b.q.With(delayed.Timeout(0), delayed.TaskID("x")), tail, nil, nil, `[Timeout(0s) TaskID("x")]`},
		{b.q.With(delayed.UniqueKey("k\n", time.Minute)), tail, nil, nil, `[UniqueKey("k\n", 1m0s)]`},
		{
			full, none, nil, nil, "[MaxBackoff(1h0m0s) KeepResult(1m0s) Retention(2m0s) Deadline(" + local +
				") RetryUntil(" + local + ") Timeout(1m0s) TTL(1h0m0s) Backoff(1s, 2s) Unique(1h0m0s) UntilStart() " +
				`Header("a", "1") Header("b", "2")]`,
		},
	} {
		b.delayWith(c.q, c.fn, c.args...)
		got := await(b, "the middleware", seen)
		var want any = c.want
		if got.err != nil || !reflect.DeepEqual(got.args, want) || got.options != c.options {
			t.Errorf("%v of %v: found %#v, %s, %v; expected %#v, %s", c.fn, c.args, got.args, got.options, got.err,
				c.want, c.options)
		}
	}
}

// The archive shows the contents of tasks whose functions nobody here knows, and they can be enqueued elsewhere.
func TestArchiveShowsContents(t *testing.T) {
	b := newBench(t)
	q := b.q.With(delayed.MaxRetry(0), delayed.Header("tenant", "acme"))
	f := b.fn("refuse", func(int, addressForTest, ...string) error { return errors.New("no") })
	b.work(b.config(), f)
	ref := b.delayWith(q, f, 5, addressForTest{"High St", 7}, "x", "y")
	b.Until("archived", func() bool {
		where, err := ref.State(t.Context())
		return err == nil && where == state.Archived
	})
	page, _, err := b.q.Archived(t.Context(), 0, 10)
	if err != nil || len(page) != 1 {
		t.Fatal(page, err)
	}
	info, err := ref.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range []*delayed.Task{page[0].Task, info.Task} {
		var n int8
		var to addressForTest
		var rest []string
		if err := errors.Join(task.Arg(0, &n), task.Arg(1, &to), task.Arg(2, &rest)); err != nil {
			t.Error(err)
		}
		if n != 5 || to != (addressForTest{"High St", 7}) || fmt.Sprint(rest) != "[x y]" ||
			task.Header("tenant") != "acme" || task.Queue() != b.Name || task.ID() != ref.ID() ||
			fmt.Sprint(task.Options()) != `[MaxRetry(0) Header("tenant", "acme")]` {
			t.Errorf("found %v %v %v, %v, %v", n, to, rest, task.Options(), task)
		}
	}

	again, err := b.q.With(info.Task.Options()...).With(delayed.In(time.Hour)).Enqueue(t.Context(), info.Task)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := again.Info(t.Context())
	if err != nil || copied.State != state.Scheduled || copied.Task.Header("tenant") != "acme" {
		t.Errorf("found %+v, %v", copied, err)
	}
	if got := fmt.Sprint(copied.Task.Options()); !strings.Contains(got, "MaxRetry(0) At(") {
		t.Errorf("the copy has the options %s", got)
	}
	if a, _, err := copied.Task.Args(); err != nil || len(a) != 3 {
		t.Errorf("the copy has the arguments %v, %v", a, err)
	}
}

func TestArgumentsOfTasksToEnqueue(t *testing.T) {
	task := delayed.NewPyTask("m:f", []any{1, "a"}, map[string]any{"k": true})
	args, kwargs, err := task.Args()
	if err != nil || !reflect.DeepEqual(args, []any{int64(1), "a"}) ||
		!reflect.DeepEqual(kwargs, map[string]any{"k": true}) {
		t.Errorf("found %v, %v, %v", args, kwargs, err)
	}
	if o := task.Options(); o != nil {
		t.Errorf("found the options %v", o)
	}
	var s string
	var n int8
	var missing *int
	for _, c := range []struct {
		err  error
		says string
	}{
		{task.Arg(0, &s), "argument 1 of task m:f (3 arguments): expected string, found integer"},
		{task.Arg(2, &s), "Arg(2): task m:f (3 arguments) has 2 arguments by position, which count from 0"},
		{task.Arg(-1, &s), "count from 0"},
		{task.Arg(0, s), "Arg(0, string): expected a pointer to a variable"},
		{task.Arg(0, nil), "expected a pointer"},
		{task.Arg(0, missing), "Arg(0, *int): expected a pointer"},
		{delayed.NewGoTask("a.b", 300).Arg(0, &n), "argument 1 of task a.b (1 argument)"},
		{delayed.NewGoTask("", 300).Arg(0, &n), "the path is empty"},
		{new(delayed.Task).Arg(0, &n), "the *Task is nil or zero"},
		{delayed.NewGoTask("a.b", 1).Arg(0, new(func())), "func()"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.says) {
			t.Errorf("found %v, expected %s", c.err, c.says)
		}
	}
	var v any
	if err := delayed.NewGoTask("a.b", 1, []int{2}).Arg(1, &v); err != nil || !reflect.DeepEqual(v, []any{int64(2)}) {
		t.Errorf("found %v, %v", v, err)
	}
}

// A message that cannot be read leaves the rest of the page as it is.
func TestPageWithUnreadableMessages(t *testing.T) {
	b := newBench(t)
	b.archive(3)
	b.Do("HSET", b.Name+"_tasks", "t0001", "no message")
	page, _, err := b.q.Archived(t.Context(), 0, redisstore.MaxListPage)
	if err != nil || len(page) != 3 || page[0].Task == nil || page[1].Task != nil || page[2].Task == nil {
		t.Errorf("found %+v, %v", page, err)
	}
	if !page[0].EnqueuedAt.Equal(time.UnixMilli(7)) || page[1].Function != "a.b" {
		t.Errorf("found %+v", page)
	}
}

// One answer of Redis does not hold all messages of a page.
func TestPageOfLargeMessages(t *testing.T) {
	b := newBench(t)
	q := b.q.With(delayed.MaxRetry(0))
	f := b.fn("refuse", func(string) error { return errors.New("no") })
	b.work(b.config(), f)
	const n = 12
	for range n {
		b.delayWith(q, f, strings.Repeat("x", 1_000_000))
	}
	b.Until("archived", func() bool { return b.Int("ZCARD", b.Name+"_archived") == n })
	page, _, err := b.q.Archived(t.Context(), 0, n)
	if err != nil || len(page) != n {
		t.Fatal(len(page), err)
	}
	for i := range page {
		var text string
		if page[i].Task == nil || page[i].Task.Arg(0, &text) != nil || len(text) != 1_000_000 {
			t.Errorf("task %d has %v, %d bytes", i, page[i].Task, len(text))
		}
	}
}

var errJudged = errors.New("no luck")

// infoOf returns the info of a task that is in one of the sets.
func (b *bench) infoOf(ref *delayed.Ref) string {
	b.T.Helper()
	return b.Hash("_info")[ref.ID()]
}

func TestHandlersSayWhatBecomesOfTheirTasks(t *testing.T) {
	for _, tt := range []struct {
		says     error
		where    string // where the task is then; "" gone
		counters map[string]int
	}{
		{delayed.Archive(errJudged), "_archived", map[string]int{"processed": 1, "failed": 1, "archived": 1}},
		{fmt.Errorf("so: %w", delayed.Drop(errJudged)), "", map[string]int{"processed": 1}},
		{delayed.Drop(nil), "", map[string]int{"processed": 1}},
		{delayed.RetryIn(time.Hour, errJudged), "_retry", map[string]int{"processed": 1, "failed": 1, "retried": 1}},
		{delayed.Snooze(time.Hour), "_scheduled", map[string]int{"snoozed": 1}},
	} {
		t.Run(strings.TrimPrefix(tt.where, "_")+fmt.Sprintf(" %v", tt.says), func(t *testing.T) {
			b := newBench(t)
			f := b.fn("f", func() error { return tt.says })
			b.work(b.config(), f)
			b.delay(f)
			b.Until("the task has ended", func() bool { return len(b.counters()) == len(tt.counters) })
			b.Idle()
			if got := b.counters(); fmt.Sprint(got) != fmt.Sprint(tt.counters) {
				t.Errorf("counters %v, expected %v", got, tt.counters)
			}
			for _, suffix := range []string{"_archived", "_retry", "_scheduled"} {
				want := 0
				if suffix == tt.where {
					want = 1
				}
				if n := b.Size(suffix); n != want {
					t.Errorf("%d tasks in %s, expected %d", n, suffix, want)
				}
			}
			b.Check(redistest.Invariants{})
		})
	}
}

func TestSnoozedTasksRunAgainWithoutSpendingRetries(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func(context.Context) error {
		if ran.Add(1) < 5 {
			return delayed.Snooze(time.Millisecond)
		}
		return errors.New("no luck")
	}, delayed.MaxRetry(1), delayed.Backoff(0))
	b.work(b.config(), f)
	b.delay(f)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	want := map[string]int{"snoozed": 4, "processed": 2, "failed": 2, "retried": 1, "archived": 1}
	if got := b.counters(); ran.Load() != 6 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("ran %d times, counters %v, expected %v", ran.Load(), got, want)
	}
	b.Check(redistest.Invariants{})
}

// An error that is no failure counts as none on the last attempt too.
func TestNoFailureOnTheLastAttempt(t *testing.T) {
	b := newBench(t)
	busy := errors.New("busy")
	var ran atomic.Int64
	f := b.fn("f", func() error {
		if ran.Add(1) < 4 {
			return busy
		}
		return nil
	}, delayed.MaxRetry(0))
	cfg := b.config()
	cfg.IsFailure = func(err error) bool { return !errors.Is(err, busy) }
	b.work(cfg, f)
	b.delay(f)
	b.Until("it is done", func() bool { return b.counters()["processed"] == 1 })
	if got := b.counters(); ran.Load() != 4 || got["retried"] != 3 || len(got) != 2 {
		t.Errorf("ran %d times, counters %v", ran.Load(), got)
	}
	b.Idle()
	b.Check(redistest.Invariants{})
}

// RetryUntil replaces the number of retries, and ends the task in time.
func TestRetryUntil(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func() error { ran.Add(1); return errors.New("no luck") }, delayed.MaxRetry(1),
		delayed.Backoff(0, 0, 0, time.Hour))
	b.work(b.config(), f)
	ref := b.delayWith(b.q.With(delayed.RetryUntil(time.Now().Add(10*time.Minute))), f)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	if n := ran.Load(); n != 4 {
		t.Errorf("ran %d times, expected 4, more than MaxRetry allows and none after the time", n)
	}
	if info := b.infoOf(ref); !strings.Contains(info, "no luck") || !strings.Contains(info, "first") {
		t.Errorf("info %q", info)
	}
}

// The function's settings for retries apply to messages without meta as well, because the worker knows them.
func TestPolicyOfTheFunctionHoldsForMessagesWithoutIt(t *testing.T) {
	b := newBench(t)
	var ran atomic.Int64
	f := b.fn("f", func() error { ran.Add(1); return errors.New("no luck") }, delayed.Backoff(0, 0, time.Hour))
	b.work(b.config(), f)
	if _, err := b.q.Enqueue(t.Context(), delayed.NewGoTask(b.Name+".f")); err != nil {
		t.Fatal(err)
	}
	b.Until("it waits", func() bool { return ran.Load() == 3 && b.Size("_retry") == 1 })
}

func TestOutcomesAreErrors(t *testing.T) {
	if delayed.Archive(nil) != nil || delayed.RetryIn(time.Second, nil) != nil {
		t.Error("nil is not nil any more")
	}
	for _, err := range []error{
		delayed.Archive(errJudged), delayed.Drop(errJudged),
		delayed.RetryIn(time.Second, errJudged),
	} {
		if !errors.Is(err, errJudged) || err.Error() != "no luck" {
			t.Errorf("%v is not what it was", err)
		}
	}
	if text := delayed.Drop(nil).Error() + ", " +
		delayed.Snooze(time.Minute).Error(); text != "delayed: dropped, delayed: snoozed for 1m0s" {
		t.Error(text)
	}
}

// The context of a handler ends when the task's time is over, with the right cause and deadline.
func TestTimeoutEndsTheContext(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		worker time.Duration
		opts   []delayed.Option
	}{
		{"by the call", time.Hour, []delayed.Option{delayed.Timeout(50 * time.Millisecond)}},
		{"by the worker", 50 * time.Millisecond, nil},
		{"by a deadline", 0, nil},
		{
			"by the earlier one", 0,
			[]delayed.Option{delayed.Deadline(time.Now().Add(time.Hour)), delayed.Timeout(50 * time.Millisecond)},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			cause, deadline := make(chan error, 1), make(chan time.Time, 1)
			f := b.fn("f", func(ctx context.Context) error {
				end, _ := ctx.Deadline()
				deadline <- end
				child, stop := context.WithCancel(ctx)
				defer stop()
				<-child.Done()
				cause <- context.Cause(child)
				return ctx.Err()
			}, delayed.Backoff(time.Hour))
			cfg := b.config()
			cfg.Timeout = tt.worker
			b.work(cfg, f)
			before := time.Now()
			if tt.name == "by a deadline" {
				tt.opts = []delayed.Option{delayed.Deadline(before.Add(3 * time.Second))}
			}
			ref := b.delayWith(b.q.With(tt.opts...), f)
			if end := await(b, "the handler", deadline); end.Before(before) || end.After(before.Add(patience)) {
				t.Errorf("deadline %v", end)
			}
			if err := await(b, "the end of its context", cause); !errors.Is(err, delayed.ErrTimeout) {
				t.Errorf("cause %v, expected ErrTimeout", err)
			}
			b.Until("it is filed", func() bool { return b.Size("_retry")+b.Size("_archived") == 1 })
			if info := b.infoOf(ref); !strings.Contains(info, "handler took longer than") ||
				!strings.Contains(info, "deadline exceeded") {
				t.Errorf("info %q", info)
			}
			b.Check(redistest.Invariants{})
		})
	}
}

func TestTimedOutHandlers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		result error
		opts   []delayed.FuncOption
		end    string
	}{
		{"an error is retried", errJudged, nil, "_retry"},
		{"an error is archived", errJudged, []delayed.FuncOption{delayed.ArchiveOnTimeout()}, "_archived"},
		{"success is success", nil, []delayed.FuncOption{delayed.ArchiveOnTimeout()}, ""},
		{
			"a snooze is a snooze", delayed.Snooze(time.Hour),
			[]delayed.FuncOption{delayed.ArchiveOnTimeout()},
			"_scheduled",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			asked := make(chan error, 2)
			opts := append([]delayed.FuncOption{
				delayed.Timeout(time.Millisecond),
				delayed.BackoffFunc(func(_ int, err error) time.Duration {
					asked <- err
					return time.Hour
				}),
			}, tt.opts...)
			f := b.fn("f", func(ctx context.Context) error { <-ctx.Done(); return tt.result }, opts...)
			// It takes no context, and so takes too long.
			g := b.fn("g", func() error { <-time.After(5 * time.Millisecond); return tt.result }, opts...)
			b.work(b.config(), f, g)
			b.delay(f)
			b.delay(g)
			if tt.end == "" {
				b.Until("they are done",
					func() bool { return b.counters()["processed"] == 2 && len(b.counters()) == 1 })
				return
			}
			b.Until("they are filed", func() bool { return b.Size(tt.end) == 2 })
			if tt.end != "_retry" {
				return
			}
			for range 2 {
				if err := await(b, "a question about an error", asked); !errors.Is(err, delayed.ErrTimeout) ||
					!errors.Is(err, errJudged) {
					t.Errorf("BackoffFunc was asked about %v", err)
				}
			}
		})
	}
}

// A task that is too late to start does not run, and uses up no attempt.
func TestExpiredTasksAreArchived(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []delayed.Option
		text string
	}{
		{"TTL", []delayed.Option{delayed.TTL(time.Millisecond)}, "it did not start in time: its TTL ended at 20"},
		{
			"TTL of a scheduled task",
			[]delayed.Option{delayed.TTL(2 * time.Millisecond), delayed.In(time.Millisecond)},
			"its TTL ended at",
		},
		{
			"deadline",
			[]delayed.Option{delayed.Deadline(time.Unix(1, 0))},
			"it did not start in time: its deadline was at 1970-01-01T00:00:01.000Z",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t)
			ran := make(chan int, 10)
			f := b.fn("f", func(_ context.Context, i int) { ran <- i })
			ref := b.delayWith(b.q.With(tt.opts...), f, 1)
			inTime := b.q.With(delayed.TTL(time.Hour), delayed.Deadline(time.Now().Add(time.Hour)),
				delayed.RetryUntil(time.Unix(1, 0)))
			last := redistest.Time(t, b.Conn)
			b.Until("the time is over that it has to start", func() bool { return redistest.Time(t, b.Conn) > last+10 })
			b.delayWith(inTime, f, 2)
			b.work(b.config(), f)
			b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
			if n := await(b, "the other task", ran); n != 2 || len(ran) > 0 {
				t.Errorf("task %d has run", n)
			}
			if info := b.infoOf(ref); !strings.Contains(info, tt.text) || !strings.Contains(info, "expired") {
				t.Errorf("info %q, expected %q", info, tt.text)
			}
			b.Idle()
			b.Until("all is counted", func() bool {
				c := b.counters()
				return c["expired"] == 1 && c["archived"] == 1 && c["processed"] == 1 && len(c) == 3
			})
			b.Check(redistest.Invariants{})
		})
	}
}

// A retry that no worker could run in time is archived with what is known about the failure.
func TestRetryThatComesTooLate(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func() { t.Error("it has run") })
	msg := wire.Message{Kind: wire.GoExtended, Path: b.Name + ".f", Meta: wire.Meta{
		ID: "late", Retried: 2, Extra: &wire.Extra{RetryUntil: 1_600_000_000_000, FirstFailed: 1_500_000_000_000},
	}}
	b.Do("RPUSH", b.Name, msg.Append(nil))
	b.Do("RPUSH", b.Name+"_noti", 1)
	w := b.work(b.config(), f)
	b.Until("it is archived", func() bool { return b.Size("_archived") == 1 })
	info, err := b.q.Ref("late").Info(t.Context())
	b.Must(err)
	if info.Attempts != 2 || info.Reason != "expired" || info.FirstFailed.UnixMilli() != 1_500_000_000_000 ||
		info.Worker != w.ID() || !strings.Contains(info.Error, "its RetryUntil was at 2020-09-13T12:26:40.000Z") {
		t.Errorf("info %+v, expected two attempts", info)
	}
	if b.counters()["expired"] != 1 {
		t.Errorf("counters %v", b.counters())
	}
}
