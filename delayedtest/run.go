package delayedtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/seam"
)

// forever is longer than any test lets pass.
const forever = 10 * 365 * 24 * time.Hour

const (
	// mostRuns is the default of RunConfig.Most.
	mostRuns = 10_000
	// mostIdle bounds what Run does besides calling functions: parking tasks, and letting time pass.
	mostIdle = 100_000
)

// RunConfig defines what Run runs. Its zero value lacks only Queues.
type RunConfig struct {
	// Queues to run tasks of, all on one server; those of an earlier one come first. Required.
	Queues []*delayed.Queue
	// Funcs are what tasks call: functions, what delayed.Func returned, or receivers whose methods are called.
	Funcs []any
	// Setup, if not nil, prepares the worker further: middleware, for instance.
	Setup func(*delayed.Worker) error
	// Worker has settings of the worker that matter to tasks: Backoff, MaxRetry, Logger and others. Queues, Concurrency
	// and HeartbeatLife are ignored. Without a Logger, warnings go to the test's log.
	Worker delayed.WorkerConfig
	// Within bounds how far time moves on. Run moves it on by exactly that. 0: as far as tasks need; negative: not at
	// all.
	Within time.Duration
	// Most bounds the calls of functions, so that tasks that delay each other without end do not run for ever. Defaults
	// to 10,000.
	Most int
}

// Result is what Run has run.
type Result struct {
	// Calls has an element for every call of a function, in their order.
	Calls []Call
	// Archived are the tasks that went to the archive: they failed for good, or could not run.
	Archived []Task
	// Parked are the tasks that were parked: their functions are not among RunConfig.Funcs.
	Parked []Task
	// Waiting are the tasks that are still pending, scheduled or waiting for a retry.
	Waiting []Task
	// Elapsed is how far time was moved on.
	Elapsed time.Duration
	// Endless reports that Run gave up after RunConfig.Most calls.
	Endless bool

	now time.Time
}

// Call is one call of a function.
type Call struct {
	Task    Task
	At      time.Time // by the time of Now
	Attempt int       // from 1
	Err     error     // what the function returned, or its panic
	// Failed is whether Err counts as a failure: the errors of Snooze and Drop do not, nor those that
	// WorkerConfig.IsFailure excuses.
	Failed bool
	// Outcome is what happened to the task: done, retry, snoozed or archived; released if the worker was stopping.
	Outcome string
}

// Drain runs every task of q that is pending, scheduled, gathered or waiting for a retry, and those that these delay,
// until none is left: one after the other, in the goroutine of the test, in the order in which they are due. Time moves
// on to the next due task whenever none is pending. fns are the functions, or receivers whose methods are called. Drain
// ends the test if a function returned an error, even if a retry went well, if a task needs a function that is not
// among fns, or if there is no end after 10,000 calls.
//
// A function may call t.FailNow, as it runs in the goroutine of the test. Timeouts of tasks run in real time.
func Drain(t testing.TB, q *delayed.Queue, fns ...any) {
	t.Helper()
	if r := Run(t, RunConfig{Queues: []*delayed.Queue{q}, Funcs: fns}); r.Err() != nil {
		t.Fatalf("delayedtest: Drain: %v", r.Err())
	}
}

// Run is Drain with settings, and with a result in place of a failure of the test.
func Run(t testing.TB, cfg RunConfig) *Result {
	t.Helper()
	if len(cfg.Queues) == 0 {
		t.Fatal("delayedtest: RunConfig.Queues is empty: expected at least one queue")
	}
	r, err := drainQueues(t, cfg)
	if err != nil {
		t.Fatalf("delayedtest: %v", err)
	}
	return r
}

func drainQueues(t testing.TB, cfg RunConfig) (r *Result, err error) {
	t.Helper()
	k := kitOf(t, cfg.Queues[0])
	for _, q := range cfg.Queues {
		if kitOf(t, q) != k {
			return nil, fmt.Errorf("queues %q and %q are on two servers: expected all on one, made with one NewRedis",
				cfg.Queues[0].Name(), q.Name())
		}
	}
	ctx := context.WithoutCancel(t.Context()) // a handler may end the test
	before, err := finished(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s, err := k.stepper(ctx, t, cfg)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, k.close(s)) }()
	r = &Result{}
	if err := r.drain(ctx, k, s, cfg); err != nil {
		return nil, err
	}
	return r, r.collect(ctx, cfg, before)
}

// stepper makes a worker with the settings.
func (k *kit) stepper(ctx context.Context, t testing.TB, cfg RunConfig) (seam.Stepper, error) {
	t.Helper()
	wc := cfg.Worker
	names := make(delayed.Strict, len(cfg.Queues))
	_, prefix, _ := seam.Locate(cfg.Queues[0])
	for i, q := range cfg.Queues {
		_, other, name := seam.Locate(q)
		if names[i] = name; other != prefix {
			return nil, fmt.Errorf("queues %q and %q are on handles with different prefixes: run them one after the "+
				"other", names[0], name)
		}
	}
	wc.Queues, wc.Concurrency, wc.HeartbeatLife = names, 1, forever
	if wc.Logger == nil {
		wc.Logger = delayed.SlogLogger(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	}
	w, err := delayed.NewWorker(k.srv.Redis().WithPrefix(prefix), wc)
	if err != nil {
		return nil, err
	}
	for _, fn := range cfg.Funcs {
		_, named := fn.(*delayed.Function)
		if named || fn == nil || reflect.TypeOf(fn).Kind() == reflect.Func {
			err = w.Register(fn)
		} else {
			err = w.RegisterMethods(fn)
		}
		if err != nil {
			return nil, err
		}
	}
	if cfg.Setup != nil {
		if err := cfg.Setup(w); err != nil {
			return nil, err
		}
	}
	s, err := seam.NewStepper(ctx, w)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	k.steppers[s] = true
	k.mu.Unlock()
	return s, nil
}

// close ends a stepper.
func (k *kit) close(s seam.Stepper) error {
	k.mu.Lock()
	delete(k.steppers, s)
	k.mu.Unlock()
	return s.Close()
}

// drain runs tasks until none is left.
func (r *Result) drain(ctx context.Context, k *kit, s seam.Stepper, cfg RunConfig) error {
	most := cfg.Most
	if most == 0 {
		most = mostRuns
	}
	for steps := 0; ; steps++ {
		if len(r.Calls) >= most || steps > most+mostIdle {
			// Look once more: this may have been the last task.
			if all, err := listAll(ctx, cfg); err != nil || len(waiting(all)) == 0 {
				return err
			}
			r.Endless = true
			return nil
		}
		at := k.srv.Now()
		ran, wait, err := s.Step(ctx)
		switch {
		case err != nil:
			return err
		case ran != nil:
			if ran.Called {
				r.Calls = append(r.Calls, callOf(ran, at, cfg.Funcs))
			}
			continue
		}
		left := cfg.Within - r.Elapsed
		if cfg.Within == 0 {
			left = wait
		}
		if step := min(wait, left); step > 0 || wait < 0 && cfg.Within > 0 && left > 0 {
			if wait < 0 {
				step = left
			}
			if err := k.advance(ctx, step); err != nil {
				return err
			}
			r.Elapsed += step
		}
		if wait < 0 || wait > left {
			return nil
		}
	}
}

func callOf(ran *seam.Run, at time.Time, fns []any) Call {
	c := Call{At: at, Err: ran.Err, Failed: ran.Failed, Outcome: ran.Outcome}
	var typed []any
	for _, fn := range fns {
		if _, ok, _ := seam.Args(fn, ran.Message); ok {
			typed = append(typed, fn)
		}
	}
	c.Task, _ = taskOf(ran.Queue, &seam.Filed{State: ran.Outcome, Message: ran.Message}, typed)
	c.Attempt = c.Task.Retried + 1
	return c
}

func listAll(ctx context.Context, cfg RunConfig) ([]Task, error) {
	var all []Task
	for _, q := range cfg.Queues {
		tasks, err := list(ctx, q, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, tasks...)
	}
	return all, nil
}

// place names a task that is filed.
type place struct{ queue, id string }

// finished returns the tasks that are archived or parked.
func finished(ctx context.Context, cfg RunConfig) (map[place]bool, error) {
	all, err := listAll(ctx, cfg)
	places := map[place]bool{}
	for _, t := range all {
		if t.State == "archived" || t.State == "parked" {
			places[place{t.Queue, t.ID}] = true
		}
	}
	return places, err
}

// collect notes where tasks are in the end.
func (r *Result) collect(ctx context.Context, cfg RunConfig, before map[place]bool) error {
	all, err := listAll(ctx, cfg)
	r.now, r.Waiting = nowOf(cfg.Queues[0]), waiting(all)
	for _, t := range all {
		switch {
		case before[place{t.Queue, t.ID}]:
		case t.State == "archived":
			r.Archived = append(r.Archived, t)
		case t.State == "parked":
			r.Parked = append(r.Parked, t)
		}
	}
	return err
}

// Failed returns the calls that failed.
func (r *Result) Failed() []Call {
	var failed []Call
	for _, c := range r.Calls {
		if c.Failed {
			failed = append(failed, c)
		}
	}
	return failed
}

// Err returns everything that Drain would complain about, nil for nothing: functions that returned errors, tasks that
// were parked or archived, and no end. Errors of functions are found by errors.Is and errors.As.
func (r *Result) Err() error {
	var problems []string
	var causes []error
	archived := map[place]bool{}
	for _, c := range r.Failed() {
		causes = append(causes, c.Err)
		problems = append(problems,
			fmt.Sprintf("%s failed at attempt %d (%s): %s", c.Task, c.Attempt, c.Outcome, firstLine(c.Err.Error())))
		if c.Outcome == "archived" {
			archived[place{c.Task.Queue, c.Task.ID}] = true
		}
	}
	for i := range r.Archived {
		if t := &r.Archived[i]; !archived[place{t.Queue, t.ID}] {
			problems = append(problems, fmt.Sprintf("%s is %s", t, t.state(r.now)))
		}
	}
	for _, t := range r.Parked {
		problems = append(problems, fmt.Sprintf("%s is parked (%s): give its function to Drain", t, t.Reason))
	}
	if len(problems) > mostShown {
		problems = append(problems[:mostShown], fmt.Sprintf("… and %d more", len(problems)-mostShown))
	}
	if r.Endless {
		problems = append(problems, r.endless())
	}
	if len(problems) == 0 {
		return nil
	}
	return &resultError{"\n    " + strings.Join(problems, "\n    "), causes}
}

// endless describes the tasks that still wait after RunConfig.Most calls.
func (r *Result) endless() string {
	last := ""
	if n := len(r.Calls); n > 0 {
		last = fmt.Sprintf(", the last of them %s", r.Calls[n-1].Task)
	}
	text := fmt.Sprintf("no end after %d calls within %v%s: tasks that delay each other for ever? Limit them with "+
		"RunConfig.Within, or raise RunConfig.Most. Still waiting:\n",
		len(r.Calls), r.Elapsed, last)
	return text + tableOf(r.Waiting, r.now)
}

// resultError has a text that lists all that is wrong, and wraps the errors of functions.
type resultError struct {
	text   string
	causes []error
}

func (e *resultError) Error() string   { return e.text }
func (e *resultError) Unwrap() []error { return e.causes }
