package delayed_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/seam"
)

func (b *bench) stepper(fns ...any) seam.Stepper {
	b.T.Helper()
	w, err := delayed.NewWorker(b.rdb, b.config())
	if err != nil {
		b.T.Fatal(err)
	}
	if err := w.Register(fns...); err != nil {
		b.T.Fatal(err)
	}
	s, err := seam.NewStepper(b.T.Context(), w)
	if err != nil {
		b.T.Fatal(err)
	}
	if err := w.Run(b.T.Context()); !errors.Is(err, delayed.ErrClosed) {
		b.T.Errorf("Run of a worker that is stepped: expected ErrClosed, found %v", err)
	}
	return s
}

// step does steps until a task has ended, or there is nothing to do for now.
func (b *bench) step(s seam.Stepper) (*seam.Run, time.Duration) {
	b.T.Helper()
	run, wait, err := s.Step(b.T.Context())
	if err != nil {
		b.T.Fatal(err)
	}
	return run, wait
}

func TestStepper(t *testing.T) {
	b := newBench(t)
	var ran []int
	fail := errors.New("no")
	again := true
	work := b.fn("work", func(n int) error {
		ran = append(ran, n)
		if n == 2 && again {
			again = false
			return fail
		}
		return nil
	})
	unknown := b.fn("unknown", func() {})
	for i := range 3 {
		b.delay(work, i+1)
	}
	b.delay(unknown)
	b.delayWith(b.q.With(delayed.In(time.Hour)), work, 4)
	s := b.stepper(work)
	for _, want := range []struct {
		called  bool
		err     error
		outcome string
	}{{true, nil, "done"}, {true, fail, "retry"}, {true, nil, "done"}, {false, nil, "parked"}} {
		run, _ := b.step(s)
		if run == nil || run.Called != want.called || !errors.Is(run.Err, want.err) || run.Outcome != want.outcome ||
			run.Queue != b.Name {
			t.Errorf("expected %+v, found %+v", want, run)
		}
	}
	b.Until("the retry runs", func() bool {
		run, _ := b.step(s)
		return run != nil
	})
	if run, wait := b.step(s); run != nil || wait <= 59*time.Minute || wait > time.Hour {
		t.Errorf("expected to wait for an hour, found %v, %+v", wait, run)
	}
	if want := []int{1, 2, 3, 2}; !slices.Equal(ran, want) {
		t.Errorf("expected %v, found %v", want, ran)
	}
	if err := s.Beat(t.Context()); err != nil {
		t.Error(err)
	}
	tasks, err := seam.List(t.Context(), b.q)
	if err != nil || len(tasks) != 2 || tasks[0].State != "scheduled" || tasks[1].State != "parked" ||
		len(tasks[1].Info) == 0 || tasks[0].At.IsZero() {
		t.Errorf("found %+v, %v", tasks, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	b.Check(redistest.Invariants{Idle: true})
	if got := b.counters()["processed"]; got != 4 {
		t.Errorf("expected 4 tasks counted as processed, found %d", got)
	}
}

// TestStepperGoexit ends the goroutine of a step from within a task.
func TestStepperGoexit(t *testing.T) {
	b := newBench(t)
	b.delay(b.fn("exit", runtime.Goexit))
	s := b.stepper(b.fn("exit", runtime.Goexit))
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _, _ = s.Step(t.Context())
		t.Error("Step came back")
	}()
	await(b, "the goroutine", gone)
	if b.Size("_retry") != 1 {
		t.Error("expected that the task is tried again")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	b.Check(redistest.Invariants{Idle: true})
}

// TestStepperWithin cancels a task within which another one has run.
func TestStepperWithin(t *testing.T) {
	b := newBench(t)
	var s seam.Stepper
	var ref *delayed.Ref
	inner := b.fn("inner", func() {})
	outer := b.fn("outer", func(ctx context.Context) error {
		b.delay(inner)                                                //nolint:contextcheck // a bench has no context
		if run, _ := b.step(s); run == nil || run.Outcome != "done" { //nolint:contextcheck // likewise
			t.Errorf("within the task: %+v", run)
		}
		b.Must(ref.Cancel(ctx))
		b.Must(s.Beat(t.Context())) //nolint:contextcheck // that of the task ends meanwhile
		return context.Cause(ctx)
	})
	ref = b.delay(outer)
	s = b.stepper(inner, outer)
	if run, _ := b.step(s); run == nil || run.Outcome != "canceled" || !errors.Is(run.Err, delayed.ErrCanceled) {
		t.Errorf("expected that the context of the task has ended, found %+v", run)
	}
	b.Must(s.Close())
	b.Check(redistest.Invariants{Idle: true})
}

func TestSeamMatch(t *testing.T) {
	b := newBench(t)
	fn := b.fn("fn", func(int64, ...string) {})
	wild := func(a any) bool { return a == "wild" }
	message := func(q *delayed.Queue, task *delayed.Task) []byte {
		return messageOf(t, q, task)
	}
	call, byPath := message(b.q, delayed.Call(fn, 1, "a", "b")),
		message(b.q, delayed.NewGoTask(b.Name+".fn", 1, "a", "b"))
	for _, test := range []struct {
		args []any
		want bool
	}{
		{[]any{1, "a", "b"}, true},
		{[]any{uint8(1), []string{"a", "b"}}, true},
		{[]any{2, "a", "b"}, false},
		{[]any{1, "a"}, false},
		{[]any{1, "a", "wild"}, true},
		{[]any{"wild", "b", "wild"}, false},
	} {
		match, path, err := seam.Match(fn, test.args, wild)
		if err != nil || path != b.Name+".fn" || match(call) != test.want || match(byPath) != test.want {
			t.Errorf("%v: expected %v, found %v and %v, path %q, %v", test.args, test.want, match(call), match(byPath),
				path, err)
		}
		if match([]byte("x")) ||
			match(message(b.q, delayed.Call(b.fn("other", func(int64, ...string) {}), 1, "a", "b"))) {
			t.Errorf("%v: other messages match", test.args)
		}
	}
	if _, _, err := seam.Match(fn, []any{"x"}, wild); !errors.Is(err, delayed.ErrArguments) {
		t.Errorf("arguments that do not fit: %v", err)
	}
	if _, _, err := seam.Match("fn", nil, wild); !errors.Is(err, delayed.ErrFunction) {
		t.Errorf("no function: %v", err)
	}
	python := delayed.NewPyTask("m:f", []any{1}, nil)
	match, path, err := seam.Match(python, nil, wild)
	if err != nil || path != "m:f" || !match(message(b.q, python)) ||
		match(message(b.q, delayed.NewPyTask("m:f", []any{2}, nil))) {
		t.Errorf("Python task: %q, %v", path, err)
	}
	if args, ok, err := seam.Args(fn, call); !ok || err != nil || !slices.Equal(args, []any{int64(1), "a", "b"}) {
		t.Errorf("arguments: %v, %v, %v", args, ok, err)
	}
	if seam.Refusable("x") || seam.Refusable(redisstore.ScriptAck.Sha) ||
		!seam.Refusable(redisstore.ScriptEnqueue.Sha) ||
		!seam.Refusable(redisstore.ScriptMode.Source) {
		t.Error("a full Redis refuses enqueue and mode, and not ack")
	}
}
