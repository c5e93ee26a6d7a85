package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// noContext is what careless callers pass.
var noContext context.Context

// misuse is a wrong use of the package. It must return an error, or panic if it cannot, with a text that begins with
// "delayed: " and contains want.
type misuse struct {
	name string
	do   func() error
	want string
}

// The functions that misuses call.
func wrongOne(int)               {}
func wrongFloat(float32)         {}
func wrongText(string)           {}
func wrongAny(...any)            {}
func wrongList(string, ...int64) {}
func wrongTable(map[string]any)  {}
func wrongNothing()              {}
func wrongResult() int           { return 1 }
func wrongThree() (a, b int)     { return 1, 2 }
func wrongLate(int, context.Context) { //nolint:revive // wrong on purpose
}

type wrongMethods struct{}

func (*wrongMethods) Send(int) {}

type wrongMailer interface{ Send(n int) }

// TestMisuse tries wrong uses of the whole public API.
func TestMisuse(t *testing.T) {
	rdb, err := delayed.Dial(redistest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	all := slices.Concat(
		misusedQueues(t, rdb), misusedRefs(t, rdb), misusedWorkers(t, rdb), misusedHandles(t, rdb), misusedTasks(rdb),
		misusedOptions(t, rdb),
		misusedFunctions(t, rdb), misusedArguments(t, rdb), misusedConfigs(rdb), misusedEntries(t, rdb), misusedURLs(),
		misusedNames(rdb), misusedConnections(t),
	)
	t.Logf("%d misuses", len(all))
	if len(all) < 260 {
		t.Errorf("%d misuses, expected 260 or more", len(all))
	}
	seen := map[string]bool{}
	for _, m := range all {
		if seen[m.name] {
			t.Errorf("%s: twice in the table", m.name)
		}
		seen[m.name] = true
		if err := m.try(); err == nil || !strings.HasPrefix(err.Error(), "delayed: ") ||
			!strings.Contains(err.Error(), m.want) {
			t.Errorf("%s: found %v, expected %q", m.name, err, m.want)
		}
	}
}

// try returns the error, or the value of the expected panic.
func (m *misuse) try() (err error) {
	defer func() {
		p := recover()
		if crash, ok := p.(runtime.Error); ok {
			err = fmt.Errorf("panic: %w", crash)
		} else if p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	return m.do()
}

// none wraps a function that returns no error, so that it is expected to panic.
func none(do func()) func() error {
	return func() error {
		do()
		return nil
	}
}

// wraps is do, whose error must wrap one of the given ones.
func wraps(do func() error, classes ...error) func() error {
	return func() error {
		err := do()
		if !slices.ContainsFunc(classes, func(c error) bool { return errors.Is(err, c) }) {
			return fmt.Errorf("found %w, expected one that wraps %v", err, classes)
		}
		return err
	}
}

func misusedQueues(t *testing.T, rdb *delayed.Store) (all []misuse) {
	t.Helper()
	call := delayed.Call(wrongOne, 1)
	for name, do := range map[string]func(context.Context, *delayed.Queue) error{
		"DelayContext": func(ctx context.Context, q *delayed.Queue) error {
			_, err := q.DelayContext(ctx, wrongOne, 1)
			return err
		},
		"DelayMany": func(ctx context.Context, q *delayed.Queue) error {
			_, err := q.DelayMany(ctx, call)
			return err
		},
		"Enqueue": func(ctx context.Context, q *delayed.Queue) error {
			_, err := q.Enqueue(ctx, call)
			return err
		},
		"Len": func(ctx context.Context, q *delayed.Queue) error { _, err := q.Len(ctx); return err },
		"Archived": func(ctx context.Context, q *delayed.Queue) error {
			_, _, err := q.Archived(ctx, 0, 1)
			return err
		},
		"Parked": func(ctx context.Context, q *delayed.Queue) error {
			_, _, err := q.Parked(ctx, 0, 1)
			return err
		},
		"DeleteArchived": func(ctx context.Context, q *delayed.Queue) error {
			_, err := q.DeleteArchived(ctx, nil)
			return err
		},
		"RunArchivedAgain": func(ctx context.Context, q *delayed.Queue) error {
			_, err := q.RunArchivedAgain(ctx, nil)
			return err
		},
		"Pause":     func(ctx context.Context, q *delayed.Queue) error { return q.Pause(ctx) },
		"Resume":    func(ctx context.Context, q *delayed.Queue) error { return q.Resume(ctx) },
		"Paused":    func(ctx context.Context, q *delayed.Queue) error { _, err := q.Paused(ctx); return err },
		"Restart":   func(ctx context.Context, q *delayed.Queue) error { return q.Restart(ctx) },
		"SetWeight": func(ctx context.Context, q *delayed.Queue) error { return q.SetWeight(ctx, 1) },
	} {
		q := delayed.NewQueue(redistest.Name(t), rdb)
		all = append(all,
			misuse{name + " of a nil Queue", func() error { return do(t.Context(), nil) }, "the *Queue is nil or zero"},
			misuse{
				name + " of a zero Queue", func() error { return do(t.Context(), &delayed.Queue{}) },
				"the *Queue is nil or zero",
			},
			misuse{name + " without a context", func() error { return do(nil, q) }, "the context is nil"},
		)
	}
	for name, do := range map[string]func(*delayed.Queue){
		"Name": func(q *delayed.Queue) { q.Name() }, "Ref": func(q *delayed.Queue) { q.Ref("x") },
		"With":     func(q *delayed.Queue) { q.With() },
		"Periodic": func(q *delayed.Queue) { q.Periodic() }, "Worker": func(q *delayed.Queue) { q.Worker("x") },
	} {
		all = append(all,
			misuse{name + " of a nil Queue", none(func() { do(nil) }), "the *Queue is nil or zero"},
			misuse{name + " of a zero Queue", none(func() { do(&delayed.Queue{}) }), "the *Queue is nil or zero"},
		)
	}
	q := delayed.NewQueue(redistest.Name(t), rdb)
	return append(all,
		misuse{
			"Delay of a nil Queue", func() error { _, err := (*delayed.Queue)(nil).Delay(wrongOne, 1); return err },
			"the *Queue is nil or zero",
		},
		misuse{"SetWeight(-1)", func() error { return q.SetWeight(t.Context(), -1) }, "weight -1"},
		misuse{"SetWeight(1001)", func() error { return q.SetWeight(t.Context(), 1001) }, "weight 1001"},
		misuse{
			"Archived(-1, 1)", func() error { _, _, err := q.Archived(t.Context(), -1, 1); return err },
			"offset of 0 or more",
		},
		misuse{"Archived(0, 0)", func() error { _, _, err := q.Archived(t.Context(), 0, 0); return err }, "1 to 1000"},
		misuse{
			"Parked(0, 1001)", func() error { _, _, err := q.Parked(t.Context(), 0, 1001); return err },
			"1 to 1000",
		},
		misuse{
			"order to no worker", func() error { return q.Worker("nobody").Pause(t.Context()) },
			`no living worker "nobody"`,
		},
		misuse{"order to an empty id", func() error { return q.Worker("").Stop(t.Context()) }, `no living worker ""`},
	)
}

func misusedRefs(t *testing.T, rdb *delayed.Store) (all []misuse) {
	t.Helper()
	q := delayed.NewQueue(redistest.Name(t), rdb)
	for name, do := range map[string]func(context.Context, *delayed.Ref) error{
		"Cancel":   func(ctx context.Context, r *delayed.Ref) error { return r.Cancel(ctx) },
		"Delete":   func(ctx context.Context, r *delayed.Ref) error { return r.Delete(ctx) },
		"Info":     func(ctx context.Context, r *delayed.Ref) error { _, err := r.Info(ctx); return err },
		"Progress": func(ctx context.Context, r *delayed.Ref) error { _, _, _, err := r.Progress(ctx); return err },
		"RunAgain": func(ctx context.Context, r *delayed.Ref) error { return r.RunAgain(ctx) },
		"RunAgainWith": func(ctx context.Context, r *delayed.Ref) error {
			return r.RunAgainWith(ctx, delayed.Call(wrongOne, 1))
		},
		"State": func(ctx context.Context, r *delayed.Ref) error { _, err := r.State(ctx); return err },
		"Wait":  func(ctx context.Context, r *delayed.Ref) error { return r.Wait(ctx) },
		"Await": func(ctx context.Context, r *delayed.Ref) error { _, err := delayed.Await[int](ctx, r); return err },
	} {
		all = append(all,
			misuse{name + " of a nil Ref", func() error { return do(t.Context(), nil) }, "the *Ref is nil or zero"},
			misuse{
				name + " of a zero Ref", func() error { return do(t.Context(), &delayed.Ref{}) },
				"the *Ref is nil or zero",
			},
			misuse{
				name + " of an empty id",
				wraps(func() error { return do(t.Context(), q.Ref("")) }, delayed.ErrNoID), "task has no id",
			},
			misuse{
				name + " of a Ref without a context", func() error { return do(nil, q.Ref("x")) },
				"the context is nil",
			},
		)
	}
	return append(all,
		misuse{"Await of a type that no result has", func() error {
			_, err := delayed.Await[chan int](t.Context(), q.Ref("x"))
			return err
		}, "a result cannot be of the type chan int"},
		misuse{"ID of a nil Ref", none(func() { (*delayed.Ref)(nil).ID() }), "the *Ref is nil or zero"},
		misuse{"Queue of a nil Ref", none(func() { (*delayed.Ref)(nil).Queue() }), "the *Ref is nil or zero"},
		misuse{"Queue of a zero Ref", none(func() { (&delayed.Ref{}).Queue() }), "the *Ref is nil or zero"},
		misuse{
			"RunAgainWith nil", func() error { return q.Ref("x").RunAgainWith(t.Context(), nil) },
			"the *Task is nil or zero",
		},
		misuse{
			"RunAgainWith a zero Task",
			func() error { return q.Ref("x").RunAgainWith(t.Context(), &delayed.Task{}) }, "the *Task is nil or zero",
		},
		misuse{
			"Delete of a task that is not there", func() error { return q.Ref("x").Delete(t.Context()) },
			"not archived",
		},
		misuse{"Wait without KeepResult", func() error {
			ref, err := q.With(delayed.In(time.Hour)).Delay(wrongOne, 1)
			if err != nil {
				return err
			}
			return ref.Wait(t.Context())
		}, "without KeepResult or Retention"},
	)
}

func misusedWorkers(t *testing.T, rdb *delayed.Store) (all []misuse) {
	t.Helper()
	quiet := logrus.New()
	quiet.SetOutput(io.Discard)
	newWorker := func() *delayed.Worker {
		w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{redistest.Name(t)}, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	stopped := newWorker()
	if err := stopped.Run(ended); err != nil {
		t.Fatal(err)
	}
	stopped.Pause()
	stopped.Resume()
	stopped.Quiet()
	through := func(next delayed.HandlerFunc) delayed.HandlerFunc { return next }
	for name, do := range map[string]func(context.Context, *delayed.Worker) error{
		"Run":      func(ctx context.Context, w *delayed.Worker) error { return w.Run(ctx) },
		"Register": func(_ context.Context, w *delayed.Worker) error { return w.Register(wrongOne) },
		"RegisterMethods": func(_ context.Context, w *delayed.Worker) error {
			return w.RegisterMethods(&wrongMethods{})
		},
		"Use":     func(_ context.Context, w *delayed.Worker) error { return w.Use(through) },
		"OnEvent": func(_ context.Context, w *delayed.Worker) error { return w.OnEvent(func(delayed.Event) {}) },
	} {
		all = append(all,
			misuse{
				name + " of a nil Worker", func() error { return do(t.Context(), nil) },
				"the *Worker is nil or zero",
			},
			misuse{
				name + " of a zero Worker", func() error { return do(t.Context(), &delayed.Worker{}) },
				"the *Worker is nil or zero",
			},
			misuse{name + " after Run", func() error { return do(t.Context(), stopped) }, "delayed: closed: "},
		)
	}
	for name, do := range map[string]func(*delayed.Worker){
		"ID": func(w *delayed.Worker) { w.ID() }, "Pause": (*delayed.Worker).Pause, "Resume": (*delayed.Worker).Resume,
		"Quiet": (*delayed.Worker).Quiet, "Status": func(w *delayed.Worker) { w.Status() },
	} {
		all = append(all,
			misuse{name + " of a nil Worker", none(func() { do(nil) }), "the *Worker is nil or zero"},
			misuse{name + " of a zero Worker", none(func() { do(&delayed.Worker{}) }), "the *Worker is nil or zero"},
		)
	}
	for name, do := range map[string]func(context.Context, *delayed.WorkerControl) error{
		"Pause": func(ctx context.Context, c *delayed.WorkerControl) error { return c.Pause(ctx) },
		"Stop":  func(ctx context.Context, c *delayed.WorkerControl) error { return c.Stop(ctx) },
	} {
		q := delayed.NewQueue(redistest.Name(t), rdb)
		all = append(all,
			misuse{
				name + " of a nil WorkerControl", func() error { return do(t.Context(), nil) },
				"the *WorkerControl is nil or zero",
			},
			misuse{
				name + " of a zero WorkerControl", func() error { return do(t.Context(), &delayed.WorkerControl{}) },
				"the *WorkerControl is nil or zero",
			},
			misuse{
				name + " of a WorkerControl without a context", func() error { return do(nil, q.Worker("x")) },
				"the context is nil",
			},
		)
	}
	w := newWorker()
	panics := func(delayed.HandlerFunc) delayed.HandlerFunc { panic("no database") }
	forgetful := func(delayed.HandlerFunc) delayed.HandlerFunc { return nil }
	return append(all,
		misuse{"Run without a context", func() error { return w.Run(noContext) }, "the context is nil"},
		misuse{"Register(nil)", func() error { return w.Register(nil) }, "function cannot be delayed"},
		misuse{"Register of a list", func() error { return w.Register([]any{wrongOne}) }, "function cannot be delayed"},
		misuse{
			"Register of a nil function", func() error { return w.Register((func())(nil)) },
			"function cannot be delayed",
		},
		misuse{"Register of a nil Function", func() error { return w.Register((*delayed.Function)(nil)) }, "call Func"},
		misuse{"Register of a zero Function", func() error { return w.Register(&delayed.Function{}) }, "call Func"},
		misuse{
			"Register of a Function by value", func() error { return w.Register(delayed.Function{}) },
			"function cannot be delayed",
		},
		misuse{
			"Register of a call", func() error { return w.Register(delayed.Call(wrongOne, 1)) },
			"function cannot be delayed",
		},
		misuse{"Register of a result", func() error { return w.Register(wrongResult()) }, "function cannot be delayed"},
		misuse{"Register of a path", func() error { return w.Register("example.com/app/mail.Welcome") }, "a string"},
		misuse{"Register twice", func() error { return w.Register(wrongText, wrongText) }, "taken already"},
		misuse{
			"Register of a closure", func() error { n := 0; return w.Register(func() { n++ }) },
			"wrap it with Func and Name",
		},
		misuse{
			"Register of a method expression", func() error { return w.Register((*wrongMethods).Send) },
			"receiver is missing",
		},
		misuse{"RegisterMethods(nil)", func() error { return w.RegisterMethods(nil) }, "a value with methods"},
		misuse{
			"RegisterMethods of a nil pointer", func() error { return w.RegisterMethods((*wrongMethods)(nil)) },
			"a nil *",
		},
		misuse{"RegisterMethods of a number", func() error { return w.RegisterMethods(1) }, "an exported method"},
		misuse{
			"RegisterMethods of a value", func() error { return w.RegisterMethods(wrongMethods{}) },
			"pointer receivers",
		},
		misuse{"Use(nil)", func() error { return w.Use(nil) }, "expected middleware, found nil"},
		misuse{"OnEvent(nil)", func() error { return w.OnEvent(nil) }, "found nil"},
		misuse{"middleware that panics", func() error {
			w := newWorker()
			return errors.Join(w.Use(panics), w.Run(t.Context()))
		}, "middleware 1 panicked while it was built"},
		misuse{"middleware that returns nil", func() error {
			w := newWorker()
			return errors.Join(w.Use(through, forgetful), w.Run(t.Context()))
		}, "middleware 2: expected that it returns a HandlerFunc"},
		misuse{"middleware of a function that panics", func() error {
			return w.Register(delayed.Func(wrongText, delayed.Middleware(panics)))
		}, "middleware 1 panicked while it was built"},
		misuse{"middleware of a function that is nil", func() error {
			return w.Register(delayed.Func(wrongText, delayed.Middleware(through, nil)))
		}, "middleware 2 is nil"},
		misuse{"middleware of a function that returns nil", func() error {
			return w.Register(delayed.Func(wrongText, delayed.Middleware(forgetful)))
		}, "middleware 1: expected that it returns"},
	)
}

// wrongSource is a source without a server.
type wrongSource struct{}

func (*wrongSource) Conn(context.Context, string) (redis.Conn, error) {
	return nil, errors.New("nowhere")
}
func (*wrongSource) Slot(string) int { return 0 }
func (*wrongSource) Close() error    { return nil }

func misusedTasks(rdb *delayed.Store) (all []misuse) {
	q := delayed.NewQueue("misused", rdb)
	ctx := context.Background()
	enqueue := func(t *delayed.Task) func() error {
		return func() error { _, err := q.Enqueue(ctx, t); return err }
	}
	for name, do := range map[string]func(*delayed.Task){
		"Path": func(t *delayed.Task) { t.Path() }, "ID": func(t *delayed.Task) { t.ID() },
		"Queue":   func(t *delayed.Task) { t.Queue() },
		"Attempt": func(t *delayed.Task) { t.Attempt() }, "MaxRetry": func(t *delayed.Task) { t.MaxRetry() },
		"Deaths": func(t *delayed.Task) { t.Deaths() }, "EnqueuedAt": func(t *delayed.Task) { t.EnqueuedAt() },
		"Header": func(t *delayed.Task) { t.Header("k") }, "Headers": func(t *delayed.Task) { t.Headers() },
		"IdempotencyKey": func(t *delayed.Task) { t.IdempotencyKey() },
	} {
		all = append(all, misuse{
			name + " outside of a handler", none(func() { do(delayed.TaskFromContext(ctx)) }),
			"the *Task is nil",
		})
	}
	return append(all,
		misuse{"ID without a context", none(func() { delayed.TaskFromContext(noContext).ID() }), "the *Task is nil"},
		misuse{"Enqueue(nil)", enqueue(nil), "the *Task is nil or zero"},
		misuse{"Enqueue(&Task{})", enqueue(&delayed.Task{}), "the *Task is nil or zero"},
		misuse{
			"DelayMany with nil",
			func() error { _, err := q.DelayMany(ctx, delayed.Call(wrongOne, 1), nil); return err }, "task 2: ",
		},
		misuse{
			"DelayMany with a zero Task", func() error { _, err := q.DelayMany(ctx, &delayed.Task{}); return err },
			"task 1: ",
		},
		misuse{"DelayMany with a wrong call", func() error {
			_, err := q.DelayMany(ctx, delayed.Call(wrongOne, 1), delayed.Call(wrongOne, "x"))
			return err
		}, "task 2: delayed: "},
		misuse{"NewGoTask without a path", enqueue(delayed.NewGoTask("")), "the path is empty"},
		misuse{"NewGoTask of a Python path", enqueue(delayed.NewGoTask("mail:send")), "use NewPyTask"},
		misuse{"NewGoTask of a long path", enqueue(delayed.NewGoTask(strings.Repeat("p", 513))), "at most 512"},
		misuse{"NewGoTask of bytes", enqueue(delayed.NewGoTask("\xff")), "not UTF-8"},
		misuse{"NewGoTask with a channel", enqueue(delayed.NewGoTask("p.f", make(chan int))), "argument 1: "},
		misuse{
			"NewGoTask with a context", enqueue(delayed.NewGoTask("p.f", 1, ctx)),
			"argument 2: expected a value, found a context.Context",
		},
		misuse{
			"NewGoTask with an option", enqueue(delayed.NewGoTask("p.f", 1, delayed.In(time.Hour))),
			"found the option In, which is no argument",
		},
		misuse{"NewPyTask without a path", enqueue(delayed.NewPyTask("", nil, nil)), "the path is empty"},
		misuse{
			"NewPyTask of a Go path", enqueue(delayed.NewPyTask("example.com/app/mail.Welcome", nil, nil)),
			"module:function",
		},
		misuse{"NewPyTask of two colons", enqueue(delayed.NewPyTask("a:b:c", nil, nil)), "module:function"},
		misuse{"NewPyTask of half a path", enqueue(delayed.NewPyTask("mail:", nil, nil)), "module:function"},
		misuse{
			"NewPyTask with an option", enqueue(delayed.NewPyTask("m:f", []any{delayed.MaxRetry(1)}, nil)),
			"found the option MaxRetry",
		},
		misuse{
			"NewPyTask with a named option",
			enqueue(delayed.NewPyTask("m:f", nil, map[string]any{"when": delayed.In(time.Hour)})), "argument when: ",
		},
		misuse{
			"NewPyTask with a channel", enqueue(delayed.NewPyTask("m:f", []any{make(chan int)}, nil)),
			"cannot travel",
		},
		misuse{
			"Progress outside of a handler", func() error { return delayed.Progress(ctx, 1, 2, "") },
			"outside of a handler",
		},
		misuse{
			"Progress without a context", func() error { return delayed.Progress(noContext, 1, 2, "") },
			"outside of a handler",
		},
	)
}

func misusedOptions(t *testing.T, rdb *delayed.Store) (all []misuse) {
	t.Helper()
	q := delayed.NewQueue(redistest.Name(t), rdb)
	for _, o := range []struct {
		option delayed.Option
		want   string
	}{
		{delayed.In(60_000), "option In(60µs): expected at least 1ms, or a unit"},
		{delayed.At(time.Time{}), "expected a time that is not zero"},
		{delayed.At(time.Unix(1<<50, 0)), "up to the year 9999"},
		{delayed.Retention(60_000), "option Retention(60µs): expected at least 1ms, or a unit"},
		{delayed.KeepResult(3600), "option KeepResult(3.6µs): expected at least 1ms"},
		{delayed.Timeout(30), "option Timeout(30ns): expected at least 1ms"},
		{delayed.Timeout(-time.Second), "expected a positive duration, or 0 for no bound"},
		{delayed.TTL(5), "option TTL(5ns): expected at least 1ms"},
		{delayed.TTL(0), "expected a positive duration"},
		{delayed.TTL(-time.Hour), "expected a positive duration"},
		{delayed.Deadline(time.Time{}), "expected a time after 1970"},
		{delayed.Deadline(time.Unix(1<<55, 0)), "up to the year 9999"},
		{delayed.RetryUntil(time.Time{}), "expected a time after 1970"},
		{delayed.RetryUntil(time.Unix(-1, 0)), "expected a time after 1970"},
		{delayed.Backoff(), "expected 1 to 64 delays, found 0"},
		{delayed.Backoff(make([]time.Duration, 65)...), "expected 1 to 64 delays, found 65"},
		{delayed.Backoff(time.Second, -1), "found -1ns as number 2"},
		{delayed.Backoff(5, 10), "found 5ns as number 1"},
		{delayed.MaxBackoff(0), "expected a positive duration"},
		{delayed.MaxBackoff(300), "expected at least 1ms"},
		{delayed.Debounce(0), "expected a positive duration"},
		{delayed.Debounce(60), "option Debounce(60ns): expected at least 1ms"},
		{delayed.Unique(0), "expected at least 1ms"},
		{delayed.Unique(3600), "a number without a unit counts nanoseconds"},
		{delayed.Unique(-time.Hour), "expected at least 1ms"},
		{delayed.UniqueKey("", time.Hour), "UniqueKey of 0 bytes"},
		{delayed.UniqueKey(strings.Repeat("k", 511), time.Hour), "UniqueKey of 511 bytes"},
		{delayed.UniqueKey("\xff", time.Hour), "in UTF-8"},
		{delayed.UniqueKey("k", 60), "expected at least 1ms"},
		{delayed.UntilStart(), "UntilStart without a lock"},
		{delayed.OnConflict(delayed.ConflictSkip), "without a lock"},
		{delayed.OnConflict(7), "expected ConflictFail, ConflictSkip or ConflictReplace"},
		{delayed.TaskID(""), "TaskID of 0 bytes"},
		{delayed.TaskID(strings.Repeat("i", 257)), "TaskID of 257 bytes"},
		{delayed.TaskID("\xff"), "in UTF-8"},
		{delayed.Header("", "v"), "a key that is not empty"},
		{delayed.Header("\xff", "v"), "in UTF-8"},
		{delayed.Header("k", "\xff"), "in UTF-8"},
		{delayed.Header("k", strings.Repeat("v", 9000)), "expected at most 8192"},
		{delayed.Group(""), "Group with a key of 0 bytes"},
		{delayed.Group(strings.Repeat("g", 257)), "Group with a key of 257 bytes"},
		{delayed.Group("g"), "variadic function"},
		{delayed.Gather(delayed.GatherPolicy{Grace: 60}), "durations of at least 1ms"},
		{delayed.Gather(delayed.GatherPolicy{MaxDelay: 60}), "durations of at least 1ms"},
		{delayed.Gather(delayed.GatherPolicy{Grace: -1}), "no negative duration"},
		{delayed.Gather(delayed.GatherPolicy{MaxSize: -1}), "no negative MaxSize"},
		{nil, "option 1 is nil"},
	} {
		name := "nil option"
		if o.option != nil {
			name = "option " + o.option.String()
		}
		all = append(all, misuse{
			name,
			wraps(func() error { _, err := q.With(o.option).Delay(wrongOne, 1); return err }, delayed.ErrArguments,
				delayed.ErrFunction),
			o.want,
		})
		if d, ok := o.option.(delayed.TaskOption); ok && d.String() != "OnConflict(ConflictSkip)" {
			all = append(all, misuse{
				"default " + name,
				wraps(func() error { _, err := q.Delay(delayed.Func(wrongOne, d), 1); return err },
					delayed.ErrFunction, delayed.ErrArguments), o.want,
			})
		}
	}
	with := func(opts ...delayed.Option) func() error {
		return func() error { _, err := q.With(opts...).Delay(wrongOne, 1); return err }
	}
	return append(all,
		misuse{"Front with In", with(delayed.Front(), delayed.In(time.Hour)), "Front with In"},
		misuse{
			"Front with Debounce", with(delayed.Front(), delayed.Debounce(time.Hour)),
			"Front with In, At or Debounce",
		},
		misuse{
			"In as long as the TTL", with(delayed.In(time.Hour), delayed.TTL(time.Hour)),
			"expected a TTL that is longer than the delay",
		},
		misuse{
			"At after the TTL", with(delayed.At(time.Now().Add(time.Hour)), delayed.TTL(time.Minute)),
			"expected a TTL that is longer",
		},
		misuse{
			"Debounce past the deadline", with(delayed.Debounce(time.Hour), delayed.Deadline(time.Now())),
			"expected a deadline after the task is due",
		},
		misuse{"At past a function's TTL", func() error {
			_, err := q.With(delayed.In(time.Hour)).Delay(delayed.Func(wrongOne, delayed.TTL(time.Minute)), 1)
			return err
		}, "found one that ends 59m0s before"},
		misuse{
			"TaskID that is replaced", with(delayed.TaskID("x"), delayed.OnConflict(delayed.ConflictReplace)),
			"cannot replace one of its own id",
		},
		misuse{"a wrong option before a right one", with(delayed.TTL(0), delayed.TTL(time.Hour)), "option TTL(0s)"},
		misuse{"one TaskID for two", func() error {
			_, err := q.With(delayed.TaskID("x")).DelayMany(t.Context(), delayed.Call(wrongOne, 1),
				delayed.Call(wrongOne, 2))
			return err
		}, "an id names one task"},
		misuse{"option of a plain Python task", func() error {
			legacy, err := delayed.OpenQueue(redistest.Name(t), rdb.WithLegacy(), delayed.QueueConfig{})
			if err != nil {
				return fmt.Errorf("legacy queue: %w", err)
			}
			_, err = legacy.With(delayed.TTL(time.Hour)).Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil))
			return err
		}, "Python"},
	)
}

func misusedFunctions(t *testing.T, rdb *delayed.Store) (all []misuse) {
	t.Helper()
	q := delayed.NewQueue(redistest.Name(t), rdb)
	n := 0
	for name, f := range map[string]struct {
		fn   any
		want string
	}{
		"nil":                     {nil, "function cannot be delayed"},
		"a nil function":          {(func())(nil), "function cannot be delayed"},
		"a number":                {1, "function cannot be delayed"},
		"a path":                  {"example.com/app.F", "NewGoTask"},
		"a context":               {t.Context(), "DelayContext"},
		"a closure":               {func() { n++ }, "wrap it with Func and Name"},
		"a call":                  {delayed.Call(wrongOne, 1), "function cannot be delayed"},
		"an interface's method":   {wrongMailer.Send, "the method of the type that implements it"},
		"two results":             {wrongThree, "no result, error, T or (T, error)"},
		"a late context":          {wrongLate, "move it to the front"},
		"a nil Function":          {(*delayed.Function)(nil), "call Func"},
		"a zero Function":         {&delayed.Function{}, "call Func"},
		"Func(nil)":               {delayed.Func(nil), "function cannot be delayed"},
		"Func of a Function":      {delayed.Func(delayed.Func(wrongOne)), "all options in one call"},
		"Func with a nil option":  {delayed.Func(wrongOne, nil), "leave it out"},
		"an empty Name":           {delayed.Func(wrongOne, delayed.Name("")), "choose another Name"},
		"a Name with a colon":     {delayed.Func(wrongOne, delayed.Name("a:b")), "choose another Name"},
		"a Name of control bytes": {delayed.Func(wrongOne, delayed.Name("a\nb")), "choose another Name"},
		"a long Name": {
			delayed.Func(wrongOne, delayed.Name(strings.Repeat("n", 513))),
			"choose another Name",
		},
		"an empty Alias":   {delayed.Func(wrongOne, delayed.Alias("")), "choose another Alias"},
		"an Alias twice":   {delayed.Func(wrongOne, delayed.Alias("a.b", "a.b")), "a.b twice"},
		"Optional(-1)":     {delayed.Func(wrongOne, delayed.Optional(-1)), "Optional of 0 to 1"},
		"Optional(2)":      {delayed.Func(wrongOne, delayed.Optional(2)), "Optional of 0 to 1"},
		"BackoffFunc(nil)": {delayed.Func(wrongOne, delayed.BackoffFunc(nil)), "BackoffFunc"},
		"Backoff and BackoffFunc": {delayed.Func(wrongOne, delayed.Backoff(time.Second),
			delayed.BackoffFunc(func(int, error) time.Duration { return 0 })), "choose one"},
		"Middleware(nil)":        {delayed.Func(wrongOne, delayed.Middleware(nil)), "middleware 1 is nil"},
		"a channel as parameter": {func(chan int) {}, "function cannot be delayed"},
		"a large array as parameter": {
			delayed.Func(func([1 << 20]byte) {}, delayed.Name("x.large")),
			"take a pointer or a slice",
		},
		"an interface as a parameter": {
			delayed.Func(func(io.Reader) {}, delayed.Name("x.reader")),
			"parameter 1: io.Reader cannot travel",
		},
	} {
		all = append(all, misuse{
			"Delay of " + name,
			wraps(func() error { _, err := q.Delay(f.fn); return err }, delayed.ErrFunction), f.want,
		})
	}
	return all
}

func misusedArguments(t *testing.T, rdb *delayed.Store) (all []misuse) {
	t.Helper()
	q := delayed.NewQueue(redistest.Name(t), rdb)
	ref, err := q.With(delayed.In(time.Hour)).Delay(wrongOne, 1)
	if err != nil {
		t.Fatal(err)
	}
	cyclic := map[string]any{}
	cyclic["self"] = cyclic
	const refused = ", which is no argument: give it to Queue.With"
	for name, c := range map[string]struct {
		fn   any
		args []any
		want string
	}{
		"an option for any": {
			wrongAny,
			[]any{"x", delayed.In(time.Hour)},
			"argument 2: expected interface {}, found the option In" + refused,
		},
		"a secret option for any": {
			wrongAny,
			[]any{delayed.Header("k", "hunter2")},
			"found the option Header" + refused,
		},
		"an option for a number": {wrongOne, []any{delayed.In(time.Hour)}, "found the option In" + refused},
		"an option for a text":   {wrongText, []any{delayed.TaskID("x")}, "found the option TaskID" + refused},
		"an option too many": {
			wrongOne,
			[]any{1, delayed.MaxRetry(3)},
			"argument 2: expected no argument, found the option MaxRetry" + refused,
		},
		"an option in the tail": {
			wrongList,
			[]any{"x", 1, delayed.In(time.Hour)},
			"argument 3: expected int64, found the option In" + refused,
		},
		"options as a list": {
			wrongList,
			[]any{"x", delayed.MaxRetry(1)},
			"found the option MaxRetry" + refused,
		},
		"an option of Func": {
			wrongAny, []any{delayed.Name("x")}, "the option Name, which is no argument: give it to Func",
		},
		"a context":                 {wrongOne, []any{t.Context(), 1}, "DelayContext"},
		"a context for any":         {wrongAny, []any{t.Context()}, "DelayContext"},
		"a Ref":                     {wrongAny, []any{ref}, "pass its ID()"},
		"a Queue":                   {wrongAny, []any{q}, "a *Queue, which cannot travel"},
		"a handle":                  {wrongAny, []any{rdb}, "a *Store, which cannot travel"},
		"a Task":                    {wrongAny, []any{delayed.Call(wrongOne, 1)}, "a *Task, which cannot travel"},
		"none":                      {wrongOne, nil, "expected 1 argument (int), found 0"},
		"too many":                  {wrongOne, []any{1, 2}, "expected 1 argument (int), found 2"},
		"one for none":              {wrongNothing, []any{1}, "expected no arguments, found 1"},
		"too few before a tail":     {wrongList, nil, "expected at least 1 argument"},
		"a text for a number":       {wrongOne, []any{"x"}, "argument 1: expected int, found string"},
		"a fraction for a number":   {wrongOne, []any{1.5}, "argument 1: expected int, found float64 1.5"},
		"a number beyond int":       {wrongOne, []any{uint64(math.MaxUint64)}, "argument 1: expected int"},
		"a number for a text":       {wrongText, []any{65}, "argument 1: expected string"},
		"bytes for a text":          {wrongText, []any{[]byte("x")}, "argument 1: expected string"},
		"nil for a number":          {wrongOne, []any{nil}, "argument 1: expected int, found nil"},
		"nil in the tail":           {wrongList, []any{"x", 1, nil}, "argument 3: expected int64, found nil"},
		"a large number for floats": {wrongFloat, []any{int64(math.MaxInt64)}, "argument 1: expected float32"},
		"a text that is not UTF-8":  {wrongText, []any{"\xff"}, "UTF-8"},
		"a channel":                 {wrongAny, []any{make(chan int)}, "argument 1"},
		"a function":                {wrongAny, []any{wrongOne}, "argument 1"},
		"a cyclic map":              {wrongTable, []any{cyclic}, "argument 1"},
		"too much":                  {wrongText, []any{strings.Repeat("x", 2<<20)}, "delayed: "},
	} {
		all = append(all, misuse{
			"Delay with " + name,
			wraps(func() error { _, err := q.Delay(c.fn, c.args...); return err }, delayed.ErrArguments,
				delayed.ErrFunction), c.want,
		})
	}
	return all
}

func misusedConfigs(rdb *delayed.Store) (all []misuse) {
	strict := delayed.Strict{"q"}
	for name, c := range map[string]struct {
		cfg  delayed.WorkerConfig
		want string
	}{
		"no Queues":      {delayed.WorkerConfig{}, "Queues is missing"},
		"nil Strict":     {delayed.WorkerConfig{Queues: delayed.Strict(nil)}, "Queues is missing"},
		"nil *Strict":    {delayed.WorkerConfig{Queues: (*delayed.Strict)(nil)}, "Queues is missing"},
		"empty Strict":   {delayed.WorkerConfig{Queues: delayed.Strict{}}, "no queues"},
		"nil Weighted":   {delayed.WorkerConfig{Queues: delayed.Weighted(nil)}, "Queues is missing"},
		"empty Weighted": {delayed.WorkerConfig{Queues: delayed.Weighted{}}, "no queues"},
		"an empty name":  {delayed.WorkerConfig{Queues: delayed.Strict{""}}, "name is empty"},
		"a queue twice":  {delayed.WorkerConfig{Queues: delayed.Strict{"q", "q"}}, "named twice"},
		"weight 0":       {delayed.WorkerConfig{Queues: delayed.Weighted{"q": 0}}, "weight 0"},
		"weight -1":      {delayed.WorkerConfig{Queues: delayed.Weighted{"q": -1}}, "weight -1"},
		"weight 1001":    {delayed.WorkerConfig{Queues: delayed.Weighted{"q": 1001}}, "weight 1001"},
		"Concurrency -1": {delayed.WorkerConfig{Queues: strict, Concurrency: -1}, "Concurrency is -1"},
		"Concurrency 1e6": {
			delayed.WorkerConfig{Queues: strict, Concurrency: 1_000_000},
			"Concurrency is 1000000",
		},
		"Prefetch 1e6":     {delayed.WorkerConfig{Queues: strict, Prefetch: 1_000_000}, "Prefetch is 1000000"},
		"HeartbeatLife 15": {delayed.WorkerConfig{Queues: strict, HeartbeatLife: 15}, "HeartbeatLife is 15ns"},
		"HeartbeatLife -1s": {
			delayed.WorkerConfig{Queues: strict, HeartbeatLife: -time.Second},
			"HeartbeatLife is -1s",
		},
		"SweepInterval 8": {delayed.WorkerConfig{Queues: strict, SweepInterval: 8}, "SweepInterval is 8ns"},
		"Grace 25": {
			delayed.WorkerConfig{Queues: strict, Grace: 25},
			"Grace is 25ns: expected at least 1ms",
		},
		"CancelGrace 3": {
			delayed.WorkerConfig{Queues: strict, CancelGrace: 3},
			"CancelGrace is 3ns: expected at least 1ms",
		},
		"Timeout 30": {
			delayed.WorkerConfig{Queues: strict, Timeout: 30},
			"Timeout is 30ns: expected at least 1ms",
		},
		"Timeout -1s": {delayed.WorkerConfig{Queues: strict, Timeout: -time.Second}, "Timeout is -1s"},
		"StuckAfter 30": {
			delayed.WorkerConfig{Queues: strict, StuckAfter: 30},
			"StuckAfter is 30ns: expected at least 1ms",
		},
		"MaxStuck 1e6": {delayed.WorkerConfig{Queues: strict, MaxStuck: 1_000_000}, "MaxStuck is 1000000"},
		"MaxTasks -1": {
			delayed.WorkerConfig{Queues: strict, Limits: delayed.WorkerLimits{MaxTasks: -1}}, "MaxTasks is -1",
		},
		"MaxTime 3600": {
			delayed.WorkerConfig{Queues: strict, Limits: delayed.WorkerLimits{MaxTime: 3600}},
			"MaxTime is 3.6µs: expected at least 1ms",
		},
		"MaxTime -1s": {
			delayed.WorkerConfig{Queues: strict, Limits: delayed.WorkerLimits{MaxTime: -time.Second}}, "MaxTime is -1s",
		},
		"MaxMemory 512": {
			delayed.WorkerConfig{Queues: strict, Limits: delayed.WorkerLimits{MaxMemory: 512}},
			"MaxMemory is 512: expected a number of bytes of at least 1048576",
		},
		"MaxMemory -1": {
			delayed.WorkerConfig{Queues: strict, Limits: delayed.WorkerLimits{MaxMemory: -1}}, "MaxMemory is -1",
		},
		"StopWhenEmptyFor 10": {
			delayed.WorkerConfig{Queues: strict, Limits: delayed.WorkerLimits{StopWhenEmptyFor: 10}},
			"StopWhenEmptyFor is 10ns: expected at least 1ms",
		},
		"Rest 10": {
			delayed.WorkerConfig{Queues: strict, Rest: 10},
			"Rest is 10ns: expected at least 1ms",
		},
		"Rest -1s":      {delayed.WorkerConfig{Queues: strict, Rest: -time.Second}, "Rest is -1s"},
		"ArchiveMax -1": {delayed.WorkerConfig{Queues: strict, ArchiveMax: -1}, "ArchiveMax is -1"},
		"ArchiveFor 90": {delayed.WorkerConfig{Queues: strict, ArchiveFor: 90}, "ArchiveFor is 90ns"},
		"Allow of anything": {
			delayed.WorkerConfig{Queues: strict, Allow: []string{"everything"}},
			`unknown name "everything"`,
		},
		"PythonQueue of spaces": {delayed.WorkerConfig{Queues: strict, PythonQueue: "a b"}, "without spaces"},
		"nil *logrus.Logger": {
			delayed.WorkerConfig{Queues: strict, Logger: (*logrus.Logger)(nil)},
			"Logger is a nil or zero *logrus.Logger",
		},
		"nil *logrus.Entry": {
			delayed.WorkerConfig{Queues: strict, Logger: (*logrus.Entry)(nil)},
			"Logger is a nil or zero *logrus.Entry",
		},
		"zero *logrus.Entry": {
			delayed.WorkerConfig{Queues: strict, Logger: &logrus.Entry{}},
			"Logger is a nil or zero *logrus.Entry",
		},
		"Periodic without a name": {
			delayed.WorkerConfig{Queues: strict, Schedulers: []delayed.SchedulerConfig{{}}},
			"name is empty",
		},
	} {
		all = append(all, misuse{"WorkerConfig with " + name, func() error {
			_, err := delayed.NewWorker(rdb, c.cfg)
			return err
		}, c.want})
	}
	for name, c := range map[string]struct {
		cfg  delayed.SweeperConfig
		want string
	}{
		"no Queues":        {delayed.SweeperConfig{}, "no queues"},
		"an empty name":    {delayed.SweeperConfig{Queues: []string{""}}, "name is empty"},
		"Interval 8":       {delayed.SweeperConfig{Queues: strict, Interval: 8}, "Interval is 8ns"},
		"HeartbeatLife 15": {delayed.SweeperConfig{Queues: strict, HeartbeatLife: 15}, "HeartbeatLife is 15ns"},
		"ArchiveMax -1":    {delayed.SweeperConfig{Queues: strict, ArchiveMax: -1}, "ArchiveMax is -1"},
		"ArchiveFor 1":     {delayed.SweeperConfig{Queues: strict, ArchiveFor: 1}, "ArchiveFor is 1ns"},
		"a nil logger": {
			delayed.SweeperConfig{Queues: strict, Logger: (*logrus.Logger)(nil)},
			"Logger is a nil or zero",
		},
	} {
		all = append(all, misuse{
			"SweeperConfig with " + name,
			func() error { _, err := delayed.NewSweeper(rdb, c.cfg); return err }, c.want,
		})
	}
	for name, c := range map[string]struct {
		cfg  delayed.SchedulerConfig
		want string
	}{
		"no Queue": {delayed.SchedulerConfig{}, "name is empty"},
		"no Owner": {
			delayed.SchedulerConfig{
				Queue:   "q",
				Entries: []delayed.Entry{{Name: "e", Spec: "@daily", Task: delayed.Call(wrongOne, 1)}},
			},
			"Owner is missing",
		},
		"a long Owner": {
			delayed.SchedulerConfig{Queue: "q", Owner: strings.Repeat("o", 129)},
			"Owner is 129 bytes long",
		},
		"a Version of no Owner": {delayed.SchedulerConfig{Queue: "q", Version: 1}, "Version is 1"},
		"Version -1":            {delayed.SchedulerConfig{Queue: "q", Owner: "o", Version: -1}, "Version is -1"},
		"a nil logger": {
			delayed.SchedulerConfig{Queue: "q", Logger: (*logrus.Entry)(nil)},
			"Logger is a nil or zero",
		},
		"an entry twice": {delayed.SchedulerConfig{Queue: "q", Owner: "o", Entries: []delayed.Entry{
			{Name: "e", Spec: "@daily", Task: delayed.Call(wrongOne, 1)},
			{Name: "e", Spec: "@daily", Task: delayed.Call(wrongOne, 1)},
		}}, "declared twice"},
	} {
		all = append(all, misuse{
			"SchedulerConfig with " + name,
			func() error { _, err := delayed.NewScheduler(rdb, c.cfg); return err }, c.want,
		})
	}
	prefixed := rdb.WithPrefix("p").WithLegacy()
	return append(all,
		misuse{"OpenQueue with WithLegacy behind a prefix", func() error {
			_, err := delayed.OpenQueue("q", prefixed, delayed.QueueConfig{})
			return err
		}, "key prefix"},
		misuse{"NewWorker with WithLegacy behind a prefix", func() error {
			_, err := delayed.NewWorker(prefixed, delayed.WorkerConfig{Queues: strict})
			return err
		}, "key prefix"})
}

func misusedEntries(t *testing.T, rdb *delayed.Store) (all []misuse) {
	t.Helper()
	q := delayed.NewQueue(redistest.Name(t), rdb)
	good := delayed.Entry{Name: "e", Spec: "@daily", Task: delayed.Call(wrongOne, 1)}
	for name, do := range map[string]func(context.Context, *delayed.PeriodicControl) error{
		"Set":    func(ctx context.Context, p *delayed.PeriodicControl) error { return p.Set(ctx, good) },
		"Remove": func(ctx context.Context, p *delayed.PeriodicControl) error { return p.Remove(ctx, "e") },
		"Pause":  func(ctx context.Context, p *delayed.PeriodicControl) error { return p.Pause(ctx, "e") },
		"Resume": func(ctx context.Context, p *delayed.PeriodicControl) error { return p.Resume(ctx, "e") },
		"RunNow": func(ctx context.Context, p *delayed.PeriodicControl) error {
			_, err := p.RunNow(ctx, "e")
			return err
		},
		"List": func(ctx context.Context, p *delayed.PeriodicControl) error { _, err := p.List(ctx); return err },
		"History": func(ctx context.Context, p *delayed.PeriodicControl) error {
			_, err := p.History(ctx, "e")
			return err
		},
	} {
		all = append(all,
			misuse{
				name + " of a nil Periodic", func() error { return do(t.Context(), nil) },
				"the *PeriodicControl is nil or zero",
			},
			misuse{
				name + " of a zero Periodic", func() error { return do(t.Context(), &delayed.PeriodicControl{}) },
				"the *PeriodicControl is nil or zero",
			},
			misuse{
				name + " of entries without a context", func() error { return do(nil, q.Periodic()) },
				"the context is nil",
			},
		)
	}
	for name, c := range map[string]struct {
		change func(*delayed.Entry)
		want   string
	}{
		"no name":            {func(e *delayed.Entry) { e.Name = "" }, "without a name"},
		"a name with @":      {func(e *delayed.Entry) { e.Name = "@e" }, "does not begin with @"},
		"no spec":            {func(e *delayed.Entry) { e.Spec = "" }, "spec"},
		"a spec of nonsense": {func(e *delayed.Entry) { e.Spec = "often" }, "spec"},
		"a short interval":   {func(e *delayed.Entry) { e.Spec = "@every 1ms" }, "at least 1s"},
		"an unknown zone":    {func(e *delayed.Entry) { e.Zone = "Berlin" }, "Berlin"},
		"no task":            {func(e *delayed.Entry) { e.Name, e.Task = "new", nil }, "has no task"},
		"a zero task":        {func(e *delayed.Entry) { e.Task = &delayed.Task{} }, "the *Task is nil or zero"},
		"a wrong task": {
			func(e *delayed.Entry) { e.Task = delayed.Call(wrongOne, delayed.In(time.Hour)) },
			"found the option In",
		},
		"a nil option": {func(e *delayed.Entry) { e.Options = []delayed.Option{nil} }, "option 1 is nil"},
		"In": {
			func(e *delayed.Entry) { e.Options = []delayed.Option{delayed.In(time.Hour)} },
			"In and At",
		},
		"Jitter of 30":    {func(e *delayed.Entry) { e.Jitter = 30 }, "Jitter is 30ns: expected 1ms to 1h0m0s"},
		"Jitter of a day": {func(e *delayed.Entry) { e.Jitter = 24 * time.Hour }, "Jitter is 24h0m0s"},
		"Overlap of 9":    {func(e *delayed.Entry) { e.Overlap = 9 }, "Overlap is 9"},
	} {
		e := good
		c.change(&e)
		all = append(all, misuse{"Set with " + name, func() error { return q.Periodic().Set(t.Context(), e) }, c.want})
	}
	return append(all,
		misuse{
			"Set through With(In)",
			func() error { return q.With(delayed.In(time.Hour)).Periodic().Set(t.Context(), good) }, "In and At",
		},
		misuse{
			"Set through a wrong With",
			func() error { return q.With(delayed.TTL(0)).Periodic().Set(t.Context(), good) }, "option TTL(0s)",
		},
		misuse{"Set of options without a task", func() error {
			return q.With(delayed.Header("k", "v")).Periodic().Set(t.Context(),
				delayed.Entry{Name: "e", Spec: "@daily"})
		}, "options but no task"},
		misuse{
			"Pause of no entry", func() error { return q.Periodic().Pause(t.Context(), "nothing") },
			"no such periodic entry",
		},
		misuse{
			"Remove of no entry", func() error { return q.Periodic().Remove(t.Context(), "") },
			"no such periodic entry",
		},
		misuse{
			"RunNow of no entry", func() error { _, err := q.Periodic().RunNow(t.Context(), "nothing"); return err },
			"no such periodic entry",
		},
	)
}

func misusedURLs() (all []misuse) {
	for url, want := range map[string]string{
		"":                                 "malformed Redis URL",
		"localhost":                        "malformed Redis URL",
		"localhost:6379":                   "malformed Redis URL",
		"http://localhost":                 "unknown scheme",
		"redis://":                         "server 1",
		"redis://localhost:port":           "server 1",
		"redis://localhost/x":              "expected the number of a database",
		"redis://localhost/-1":             "expected the number of a database",
		"redis://localhost?db=1":           `parameter "db"`,
		"redis://localhost?timeout=1s":     `parameter "timeout"`,
		"redis://a,b":                      "rediscluster.Dial",
		"redis://a?master=m":               "redissentinel.Dial",
		"redis://user:hunter2/x@localhost": "malformed Redis URL",
		"unix://":                          "malformed Redis URL",
		"unix:///s?db=x":                   "expected the number of a database",
		"unix:///s?db=-1":                  "expected the number of a database",
		"unix:///s?database=1":             `parameter "database" of the Redis URL: expected one of db, password, user`,
		"unix:///s?username=me":            `parameter "username"`,
		"unix:///s?pass=hunter2":           `parameter "pass"`,
		"unix:///s?%zz":                    "malformed Redis URL",
		"unix:///s?user=me":                "a user without a password",
		"unix:///s?db=1&db=2":              "expected it once, found it 2 times",
		"redis://me@a":                     "a user without a password",
	} {
		all = append(all, misuse{"Dial(" + url + ")", func() error { _, err := delayed.Dial(url); return err }, want})
	}
	return all
}

func misusedNames(rdb *delayed.Store) (all []misuse) {
	for name, want := range map[string]string{
		"": "is empty", " ": "without spaces", "a b": "without spaces", "a\nb": "printable", "a\x00": "printable",
		"\xff":    "printable",
		"a\u200b": "printable", strings.Repeat("q", 129): "at most 128", "mail_noti": "a key of queue",
		"mail_workers": "a key of queue",
		"_retry":       "a key of queue", "mail_processing:x": "keys of another queue",
		"x_group:": "keys of another queue",
	} {
		all = append(all,
			misuse{
				fmt.Sprintf("OpenQueue(%q)", name),
				func() error { _, err := delayed.OpenQueue(name, rdb, delayed.QueueConfig{}); return err }, want,
			},
			misuse{fmt.Sprintf("NewQueue(%q)", name), none(func() { delayed.NewQueue(name, rdb) }), want},
		)
	}
	return all
}

func misusedHandles(t *testing.T, rdb *delayed.Store) (all []misuse) {
	t.Helper()
	for name, do := range map[string]func(*delayed.Store) error{
		"Ping":  func(r *delayed.Store) error { return r.Ping(t.Context()) },
		"Check": func(r *delayed.Store) error { _, err := r.Check(t.Context()); return err },
		"Close": (*delayed.Store).Close,
		"OpenQueue": func(r *delayed.Store) error {
			_, err := delayed.OpenQueue("q", r, delayed.QueueConfig{})
			return err
		},
		"NewQueue": func(r *delayed.Store) error { delayed.NewQueue("q", r); return nil },
		"NewWorker": func(r *delayed.Store) error {
			_, err := delayed.NewWorker(r, delayed.WorkerConfig{Queues: delayed.Strict{"q"}})
			return err
		},
		"NewSweeper": func(r *delayed.Store) error {
			_, err := delayed.NewSweeper(r, delayed.SweeperConfig{Queues: []string{"q"}})
			return err
		},
		"NewScheduler": func(r *delayed.Store) error {
			_, err := delayed.NewScheduler(r, delayed.SchedulerConfig{Queue: "q"})
			return err
		},
		"WithPrefix": func(r *delayed.Store) error { r.WithPrefix("p"); return nil },
	} {
		all = append(all,
			misuse{name + " of a nil Store", func() error { return do(nil) }, "the *Store is nil or zero"},
			misuse{
				name + " of a zero Store", func() error { return do(&delayed.Store{}) },
				"the *Store is nil or zero",
			},
		)
	}
	closed, err := delayed.Dial(redistest.Shared(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	late := delayed.NewQueue(redistest.Name(t), closed)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	sweeper, err := delayed.NewSweeper(rdb, delayed.SweeperConfig{Queues: []string{redistest.Name(t)}})
	if err != nil {
		t.Fatal(err)
	}
	scheduler, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: redistest.Name(t)})
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	unfinished := delayed.FromPool(&redis.Pool{})
	twice := func(run func(context.Context) error) func() error {
		return func() error { return errors.Join(run(ended), run(ended)) }
	}
	return append(all,
		misuse{"FromPool(nil)", none(func() { delayed.FromPool(nil) }), "FromPool(nil)"},
		misuse{"FromPool of a zero pool", func() error { return unfinished.Ping(t.Context()) }, "connecting to Redis"},
		misuse{"NewWorker on a small pool", func() error {
			small := delayed.FromPool(&redis.Pool{MaxActive: 3})
			_, err := delayed.NewWorker(small, delayed.WorkerConfig{Queues: delayed.Strict{"q"}})
			return err
		}, "the pool's MaxActive is 3"},
		misuse{"FromSource(nil)", none(func() { delayed.FromSource(nil) }), "FromSource(nil)"},
		misuse{
			"FromSource of a nil pointer", none(func() { delayed.FromSource((*wrongSource)(nil)) }),
			"FromSource(nil)",
		},
		misuse{"SlogLogger(nil)", none(func() { delayed.SlogLogger(nil) }), "SlogLogger(nil)"},
		misuse{
			"SlogLogger of a nil pointer", none(func() { delayed.SlogLogger((*slog.JSONHandler)(nil)) }),
			"SlogLogger(nil)",
		},
		misuse{"Ping without a context", func() error { return rdb.Ping(noContext) }, "the context is nil"},
		misuse{
			"Check without a context", func() error { _, err := rdb.Check(noContext); return err },
			"the context is nil",
		},
		misuse{
			"Check with an unknown name", func() error { _, err := rdb.Check(t.Context(), "evictions"); return err },
			`unknown name "evictions"`,
		},
		misuse{"Ping of a closed handle", func() error { return closed.Ping(t.Context()) }, "closed"},
		misuse{
			"Check of a closed handle", func() error { _, err := closed.Check(t.Context()); return err },
			"delayed: closed",
		},
		misuse{
			"Delay on a closed handle", func() error { _, err := late.Delay(wrongOne, 1); return err },
			"delayed: closed",
		},
		misuse{
			"Len on a closed handle", func() error { _, err := late.Len(t.Context()); return err },
			"delayed: closed",
		},
		misuse{
			"Run of a nil Sweeper", func() error { return (*delayed.Sweeper)(nil).Run(t.Context()) },
			"the *Sweeper is nil or zero",
		},
		misuse{
			"Run of a zero Sweeper", func() error { return new(delayed.Sweeper).Run(t.Context()) },
			"the *Sweeper is nil or zero",
		},
		misuse{
			"Run of a Sweeper without a context", func() error { return sweeper.Run(noContext) },
			"the context is nil",
		},
		misuse{"Run of a Sweeper twice", twice(sweeper.Run), "delayed: closed: Run was called before"},
		misuse{
			"Run of a nil Scheduler", func() error { return (*delayed.Scheduler)(nil).Run(t.Context()) },
			"the *Scheduler is nil or zero",
		},
		misuse{
			"Run of a zero Scheduler", func() error { return new(delayed.Scheduler).Run(t.Context()) },
			"the *Scheduler is nil or zero",
		},
		misuse{
			"Run of a Scheduler without a context", func() error { return scheduler.Run(noContext) },
			"the context is nil",
		},
		misuse{"Run of a Scheduler twice", twice(scheduler.Run), "delayed: closed: Run was called before"},
	)
}
