package delayedtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/delayedtest"
	"github.com/godelayed/delayed/embedded"
	"github.com/godelayed/delayed/event"
)

// otherHandle returns the queue test on an embedded server with a ping in it.
func otherHandle(t *testing.T, _ *delayed.Queue) *delayed.Queue {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { srv.Close() })
	q := delayed.NewQueue("test", srv.Redis())
	delay(t, q, ping)
	return q
}

// diary is what tasks of a test write. Its methods are its functions.
type diary struct {
	t     testing.TB
	q     *delayed.Queue
	lines []string
	fails int
}

func newDiary(t testing.TB) *diary {
	t.Helper()
	return &diary{t: t, q: delayedtest.NewQueue(t)}
}

func (d *diary) Write(line string) { d.lines = append(d.lines, line) }

// Chain writes and delays itself.
func (d *diary) Chain(ctx context.Context, n int) error {
	d.Write(fmt.Sprint("chain ", n))
	if n == 0 {
		return nil
	}
	_, err := d.q.With(delayed.In(time.Hour)).DelayContext(ctx, (*diary).Chain, n-1)
	return err
}

var errWeather = errors.New("bad weather")

// Fail fails as often as d says.
func (d *diary) Fail() error {
	d.Write("fail")
	if d.fails--; d.fails >= 0 {
		return errWeather
	}
	return nil
}

func (d *diary) Panic() { panic("at the disco") }

// Forever delays itself.
func (d *diary) Forever() error {
	_, err := d.q.Delay((*diary).Forever)
	return err
}

func (d *diary) FailNow() { d.t.FailNow() }

func (d *diary) wrote(t *testing.T, want ...string) {
	t.Helper()
	if !slices.Equal(d.lines, want) {
		t.Errorf("expected %q, found %q", want, d.lines)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	d := newDiary(t)
	start := delayedtest.Now(t, d.q)
	delay(t, d.q.With(delayed.In(24*time.Hour)), (*diary).Write, "tomorrow")
	delay(t, d.q, (*diary).Write, "now")
	delay(t, d.q, (*diary).Chain, 2)
	delay(t, d.q.With(delayed.At(start.Add(90*time.Minute))), (*diary).Write, "in 90 minutes")
	delay(t, d.q, (*diary).Write, "now too")
	delayedtest.Drain(t, d.q, d)
	d.wrote(t, "now", "chain 2", "now too", "chain 1", "in 90 minutes", "chain 0", "tomorrow")
	if took := delayedtest.Now(t, d.q).Sub(start); took != 24*time.Hour {
		t.Errorf("expected that 24 h have passed, found %v", took)
	}
	delayedtest.RequireEmpty(t, d.q)
	if left := delayedtest.Tasks(t, d.q); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// TestDrainTimeouts runs functions whose time is not over, and one whose time is.
func TestDrainTimeouts(t *testing.T) {
	q := delayedtest.NewQueue(t)
	var causes []error
	f := delayed.Func(func(ctx context.Context, wait bool) {
		if wait {
			<-ctx.Done()
		}
		causes = append(causes, context.Cause(ctx))
	}, delayed.Name("test.timeouts"))
	delay(t, q.With(delayed.Timeout(time.Hour), delayed.Deadline(time.Now().Add(time.Hour))), f, false)
	delay(t, q.With(delayed.Timeout(time.Millisecond)), f, true)
	delayedtest.Drain(t, q, f)
	if len(causes) != 2 || causes[0] != nil || !errors.Is(causes[1], delayed.ErrTimeout) {
		t.Errorf("causes %v, expected none and ErrTimeout", causes)
	}
}

func TestDrainFails(t *testing.T) {
	t.Parallel()
	fails(t, func(t testing.TB) {
		d := newDiary(t)
		d.fails = 2
		delay(t, d.q, (*diary).Fail)
		delay(t, d.q, (*diary).Write, "")
		delayedtest.Drain(t, d.q, d)
	}, "(*diary).Fail() failed at attempt 1 (retry): bad weather",
		"(*diary).Fail() failed at attempt 2 (retry): bad weather")
	fails(t, func(t testing.TB) {
		d := newDiary(t)
		delay(t, d.q.With(delayed.MaxRetry(0)), (*diary).Panic)
		delayedtest.Drain(t, d.q, d)
	}, "(*diary).Panic() failed at attempt 1 (archived)", "at the disco")
	fails(t, func(t testing.TB) {
		d := newDiary(t)
		delay(t, d.q, ping)
		delayedtest.Drain(t, d.q, d)
	}, here+"ping() is parked (unknown function): give its function to Drain")
	fails(t, func(t testing.TB) {
		d := newDiary(t)
		if _, err := d.q.Enqueue(t.Context(), delayed.NewGoTask(here+"welcome", "x")); err != nil {
			t.Fatal(err)
		}
		delayedtest.Drain(t, d.q, welcome)
	}, `welcome("x") failed at attempt 1 (archived)`, "expected 2 arguments")
	fails(t, func(t testing.TB) {
		d := newDiary(t)
		d.t = t
		delay(t, d.q, (*diary).FailNow)
		delayedtest.Drain(t, d.q, d)
		t.Errorf("Drain went on after FailNow")
	}, "FailNow")
	if problem := try(t, func(t testing.TB) {
		d := newDiary(t)
		d.t = t
		delay(t, d.q, (*diary).FailNow)
		delayedtest.Drain(t, d.q, d)
	}); strings.Contains(problem, "went on") {
		t.Error(problem)
	}
	fails(t, func(t testing.TB) {
		d := newDiary(t)
		delay(t, d.q, (*diary).Forever)
		r := delayedtest.Run(t, delayedtest.RunConfig{Queues: []*delayed.Queue{d.q}, Funcs: []any{d}, Most: 50})
		if !r.Endless || len(r.Calls) != 50 {
			t.Errorf("endless: %v after %d calls", r.Endless, len(r.Calls))
		}
		t.Fatalf("%v", r.Err())
	}, "no end after 50 calls within 0s, the last of them", "Forever()\tpending")
	fails(t, func(t testing.TB) { delayedtest.Run(t, delayedtest.RunConfig{}) }, "Queues is empty")
	//delayed:allow the test expects the refusal
	fails(t, func(t testing.TB) { delayedtest.Drain(t, delayedtest.NewQueue(t), ping, ping) }, "is taken")
	fails(t, func(t testing.TB) {
		delayedtest.Run(t, delayedtest.RunConfig{Queues: []*delayed.Queue{
			delayedtest.NewQueue(t),
			delayedtest.NewQueue(t),
		}})
	}, "on two servers")
}

func TestRun(t *testing.T) {
	t.Parallel()
	d := newDiary(t)
	d.fails = 5
	delay(t, d.q.With(delayed.MaxRetry(2)), (*diary).Fail)
	delay(t, d.q, ping)
	delay(t, d.q.With(delayed.In(48*time.Hour)), (*diary).Write, "in two days")
	cfg := delayedtest.RunConfig{
		Queues: []*delayed.Queue{d.q}, Funcs: []any{d}, Within: 24 * time.Hour,
		Worker: delayed.WorkerConfig{Backoff: func(retried int) time.Duration {
			return time.Duration(retried+1) * time.Minute
		}},
		Setup: func(w *delayed.Worker) error { return w.Register(welcome) },
	}
	start := delayedtest.Now(t, d.q)
	r := delayedtest.Run(t, cfg)
	outcomes := []string{"retry", "retry", "archived"}
	times := []time.Duration{0, time.Minute, 3 * time.Minute}
	for i, c := range r.Calls {
		if c.Outcome != outcomes[i] || c.Attempt != i+1 || !errors.Is(c.Err, errWeather) ||
			c.At.Sub(start) != times[i] {
			t.Errorf("call %d: %+v", i, c)
		}
	}
	if len(r.Calls) != 3 || len(r.Failed()) != 3 || len(r.Archived) != 1 || r.Archived[0].Error != "bad weather" ||
		r.Archived[0].Retried != 2 {
		t.Errorf("found %+v", r)
	}
	if len(r.Parked) != 1 || r.Parked[0].Func != here+"ping" || len(r.Waiting) != 1 || r.Endless ||
		!errors.Is(r.Err(), errWeather) {
		t.Errorf("found %+v", r)
	}
	if now := delayedtest.Now(t, d.q); r.Elapsed != 24*time.Hour || now.Sub(start) != 24*time.Hour {
		t.Errorf("elapsed: %v, now %v", r.Elapsed, now.Sub(start))
	}
	// What was archived and parked before does not count; a parked task of a function that is known now runs.
	again := cfg
	again.Within = -1
	if r = delayedtest.Run(t, again); r.Err() != nil || len(r.Archived)+len(r.Parked) > 0 {
		t.Errorf("found %+v", r)
	}
	cfg.Funcs = append(cfg.Funcs, ping)
	if r = delayedtest.Run(t, cfg); r.Err() != nil || len(r.Calls) != 2 || r.Calls[0].Task.Func != here+"ping" {
		t.Errorf("found %+v", r)
	}
}

// TestRunThroughMiddleware has middleware see the task and change its end, and a listener hear of it.
func TestRunThroughMiddleware(t *testing.T) {
	t.Parallel()
	d := newDiary(t)
	d.fails = 1
	delay(t, d.q.With(delayed.Header("tenant", "a")), (*diary).Fail)
	var seen string
	var heard []event.Kind
	r := delayedtest.Run(t, delayedtest.RunConfig{
		Queues: []*delayed.Queue{d.q}, Funcs: []any{d},
		Setup: func(w *delayed.Worker) error {
			return errors.Join(w.OnEvent(func(e delayed.Event) { heard = append(heard, e.Kind) }),
				w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
					return func(ctx context.Context, task *delayed.Task) error {
						err := next(ctx, task)
						seen = fmt.Sprint(delayed.TaskFromContext(ctx).Header("tenant"), " ",
							errors.Is(err, errWeather))
						return delayed.Archive(err)
					}
				}))
		},
	})
	if seen != "a true" || len(r.Calls) != 1 || r.Calls[0].Outcome != "archived" {
		t.Errorf("middleware saw %q, and the task was %+v", seen, r.Calls)
	}
	if want := []event.Kind{
		event.TaskStarted, event.TaskFailed,
		event.TaskArchived,
	}; !slices.Equal(heard, want) {
		t.Errorf("expected %v, found %v", want, heard)
	}
}

// TestOutcomes runs functions that say what becomes of their tasks, and tasks that leave something behind.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	snoozed := false
	fns := map[string]*delayed.Function{
		"drop":    delayed.Func(func() error { return delayed.Drop(errWeather) }, delayed.Name("drop")),
		"discard": delayed.Func(func() error { return delayed.Archive(errWeather) }, delayed.Name("discard")),
		"sum":     delayed.Func(func(a, b int) int { return a + b }, delayed.Name("sum")),
		"late":    delayed.Func(func() {}, delayed.Name("late")),
		"snooze": delayed.Func(func() error {
			if snoozed = !snoozed; snoozed {
				return delayed.Snooze(24 * time.Hour)
			}
			return nil
		}, delayed.Name("snooze")),
	}
	delay(t, q, fns["drop"])
	delay(t, q, fns["snooze"])
	delay(t, q.With(delayed.Retention(48*time.Hour)), fns["sum"], 1, 2)
	result := delay(t, q.With(delayed.KeepResult(48*time.Hour)), fns["sum"], 3, 4)
	delayedtest.Drain(t, q, fns["drop"], fns["snooze"], fns["sum"])
	if sum, err := delayed.Await[int](t.Context(), result); sum != 7 || err != nil {
		t.Errorf("expected 7, found %d, %v", sum, err)
	}
	tasks := delayedtest.Tasks(t, q)
	if len(tasks) != 2 || tasks[0].State != "completed" || tasks[0].Func != "sum" || tasks[1].Func != "sum" {
		t.Errorf("found %+v", tasks)
	}

	delay(t, q, fns["discard"])
	delay(t, q.With(delayed.TTL(time.Hour)), fns["late"])
	delayedtest.Advance(t, q, time.Hour)
	r := delayedtest.Run(t, delayedtest.RunConfig{
		Queues: []*delayed.Queue{q},
		Funcs:  []any{fns["discard"], fns["late"]},
	})
	if len(r.Calls) != 1 || r.Calls[0].Outcome != "archived" || len(r.Archived) != 2 ||
		r.Archived[1].Reason != "expired" && r.Archived[0].Reason != "expired" {
		t.Errorf("found %+v", r)
	}
	// What is stamped now is stamped by the time of the server.
	delay(t, q.With(delayed.TTL(time.Hour)), fns["late"])
	delayedtest.Drain(t, q, fns["late"])
}

// TestGroups gathers calls.
func TestGroups(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	var gathered []string
	tell := delayed.Func(func(user int, what ...string) { gathered = append(gathered, what...) }, delayed.Name("tell"))
	group := q.With(delayed.Group("news"))
	delay(t, group, tell, 1, "a")
	delay(t, group, tell, 1, "b")
	task := delayedtest.RequireEnqueued(t, q, tell, 1, "b")
	if task.State != "aggregating" || task.Due.IsZero() {
		t.Errorf("found %+v", task)
	}
	r := delayedtest.Run(t, delayedtest.RunConfig{Queues: []*delayed.Queue{q}, Funcs: []any{tell}})
	if len(r.Calls) != 1 || !slices.Equal(gathered, []string{"a", "b"}) || r.Err() != nil || r.Elapsed == 0 {
		t.Errorf("found %v, %+v", gathered, r)
	}
}

// TestControl cancels a task and pauses the queue.
func TestControl(t *testing.T) {
	t.Parallel()
	d := newDiary(t)
	for _, q := range []*delayed.Queue{d.q, d.q.With(delayed.In(time.Hour))} {
		if err := delay(t, q, (*diary).Write, "canceled").Cancel(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	delayedtest.RefuteEnqueued(t, d.q, (*diary).Write, "canceled")
	delay(t, d.q, (*diary).Write, "kept")
	if err := d.q.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	fails(t, func(t testing.TB) { delayedtest.Drain(t, d.q, d) }, "paused")
	d.wrote(t)
	if err := d.q.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	delayedtest.Drain(t, d.q, d)
	d.wrote(t, "kept")
	delayedtest.RequireEmpty(t, d.q)
}

// TestUnique delays what is delayed already.
func TestUnique(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	once := q.With(delayed.Unique(time.Hour))
	delay(t, once, ping)
	if _, err := once.Delay(ping); !errors.Is(err, delayed.ErrDuplicate) {
		t.Errorf("expected ErrDuplicate, found %v", err)
	}
	delayedtest.RequireCount(t, q, 1, ping)
	delayedtest.Drain(t, q, ping)
	delay(t, once, ping)
	delayedtest.Inline(t, q, ping)
	delay(t, once, ping)
	delayedtest.RequireEmpty(t, q)
}

func TestRunWithoutTime(t *testing.T) {
	t.Parallel()
	rdb := delayedtest.NewRedis(t)
	first, second := delayed.NewQueue("first", rdb), delayed.NewQueue("second", rdb)
	delay(t, second, digest, 1)
	delay(t, first.With(delayed.In(time.Minute)), digest, 2)
	delay(t, first, digest, 3)
	r := delayedtest.Run(t, delayedtest.RunConfig{
		Queues: []*delayed.Queue{first, second}, Funcs: []any{digest},
		Within: -1,
	})
	if len(r.Calls) != 2 || r.Calls[0].Task.Queue != "first" || r.Calls[1].Task.Queue != "second" || r.Elapsed != 0 ||
		len(r.Waiting) != 1 {
		t.Errorf("found %+v", r)
	}
	delayedtest.Advance(t, first, time.Minute)
	r = delayedtest.Run(t, delayedtest.RunConfig{Queues: []*delayed.Queue{first}, Funcs: []any{digest}, Within: -1})
	if len(r.Calls) != 1 || r.Calls[0].Task.Args[0] != 2 {
		t.Errorf("found %+v", r)
	}
	// Nothing is due, and time passes all the same.
	before := delayedtest.Now(t, first)
	r = delayedtest.Run(t, delayedtest.RunConfig{Queues: []*delayed.Queue{first}, Within: time.Hour})
	if passed := delayedtest.Now(t, first).Sub(before); len(r.Calls) != 0 || r.Elapsed != time.Hour ||
		passed != time.Hour {
		t.Errorf("%v passed, found %+v", passed, r)
	}
	prefixed := delayed.NewQueue("first", rdb.WithPrefix("p:"))
	fails(t, func(t testing.TB) {
		delayedtest.Run(t, delayedtest.RunConfig{Queues: []*delayed.Queue{first, prefixed}})
	}, "different prefixes")
}

func TestInline(t *testing.T) {
	t.Parallel()
	d := newDiary(t)
	delay(t, d.q, (*diary).Write, "before")
	delayedtest.Inline(t, d.q, d, welcome)
	d.wrote(t, "before")
	delay(t, d.q, (*diary).Write, "now")
	d.wrote(t, "before", "now")
	delay(t, d.q.With(delayed.In(time.Minute)), (*diary).Write, "later")
	delay(t, d.q, (*diary).Chain, 1) // its second link is an hour later
	if _, err := d.q.DelayMany(t.Context(), delayed.Call((*diary).Write, "one"),
		delayed.Call((*diary).Write, "two")); err != nil {
		t.Fatal(err)
	}
	d.wrote(t, "before", "now", "chain 1", "one", "two")
	delayedtest.Advance(t, d.q, time.Hour)
	if _, err := d.q.DelayContext(t.Context(), (*diary).Write, "an hour later"); err != nil {
		t.Fatal(err)
	}
	d.wrote(t, "before", "now", "chain 1", "one", "two", "an hour later", "later", "chain 0")
	delayedtest.RequireEmpty(t, d.q)

	fails(t, func(t testing.TB) {
		d := newDiary(t)
		d.fails = 1
		delayedtest.Inline(t, d.q, d)
		delay(t, d.q, (*diary).Fail)
		delay(t, d.q, ping)
	}, "(*diary).Fail() failed (retry): bad weather", "ping() is parked: give its function to Inline")
	fails(t, func(t testing.TB) {
		d := newDiary(t)
		delayedtest.Inline(t, d.q, d)
		delay(t, d.q, (*diary).Forever)
	}, "tasks delay tasks 100 deep")
	// What a test makes inline is afterwards as it was before.
	passes(t, func(t testing.TB) { delayedtest.Inline(t, d.q, d) })
	delay(t, d.q, welcome, 1, "en")
	delayedtest.RequireEmpty(t, d.q)
	other := newDiary(t)
	passes(t, func(t testing.TB) { delayedtest.Inline(t, other.q, other) })
	delay(t, other.q, (*diary).Write, "no longer")
	other.wrote(t)
	fails(t, func(t testing.TB) { delayedtest.Inline(t, d.q, 42) }, "expected an exported method")
}

func TestBreak(t *testing.T) {
	t.Parallel()
	q := delayedtest.NewQueue(t)
	for _, test := range []struct {
		fault delayedtest.Fault
		want  error
		left  int
	}{{delayedtest.Full, delayed.ErrFull, 0}, {delayedtest.Lost, delayed.ErrUnknown, 1}, {delayedtest.Down, nil, 1}} {
		mend := delayedtest.Break(t, q, test.fault)
		_, err := q.Delay(ping)
		if err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("fault %d: expected %v, found %v", test.fault, test.want, err)
		}
		delayedtest.RequireCount(t, q, test.left, ping)
		mend()
	}
	// What a test breaks is mended after it.
	passes(t, func(t testing.TB) { delayedtest.Break(t, q, delayedtest.Down) })
	delay(t, q, ping)
	defer delayedtest.Break(t, q, delayedtest.Down)()
	delayedtest.Drain(t, q, ping)
}

// TestWorkerOfOnesOwn runs a worker on a server of the kit, in which time stands still.
func TestWorkerOfOnesOwn(t *testing.T) {
	t.Parallel()
	rdb := delayedtest.NewRedis(t)
	q := delayed.NewQueue("jobs", rdb)
	done := make(chan string, 2)
	write := delayed.Func(func(s string) { done <- s }, delayed.Name("write"))
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"jobs"}, Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(write); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- w.Run(ctx) }()
	delay(t, q.With(delayed.In(time.Hour)), write, "later")
	delay(t, q, write, "now")
	if got := <-done; got != "now" {
		t.Errorf("found %q", got)
	}
	delayedtest.RequireEnqueued(t, q, write, "later")
	stop()
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
}
