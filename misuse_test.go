package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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

func misusedQueues(t *testing.T, rdb *delayed.Redis) (all []misuse) {
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

func misusedRefs(t *testing.T, rdb *delayed.Redis) (all []misuse) {
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
			misuse{name + " of an empty id", func() error { return do(t.Context(), q.Ref("")) }, "task has no id"},
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

func misusedWorkers(t *testing.T, rdb *delayed.Redis) (all []misuse) {
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
		"Use":    func(_ context.Context, w *delayed.Worker) error { return w.Use(through) },
		"Listen": func(_ context.Context, w *delayed.Worker) error { return w.Listen(func(delayed.Event) {}) },
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
		misuse{"Listen(nil)", func() error { return w.Listen(nil) }, "found nil"},
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
