package delayed_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

func TestScheduledTasksRunWhenDue(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ran := make(chan time.Time, 10)
	f := b.fn("f", func(string) { ran <- time.Now() })
	b.work(b.config(), f)
	b.Until("the worker sleeps", func() bool { return b.Size("_workers") == 1 })
	for _, tt := range []struct {
		name  string
		opt   func() delayed.Option
		delay time.Duration
	}{
		{"In", func() delayed.Option { return delayed.In(300 * time.Millisecond) }, 300 * time.Millisecond},
		{
			"At", func() delayed.Option { return delayed.At(time.Now().Add(200 * time.Millisecond)) },
			200 * time.Millisecond,
		},
		{"At in the past", func() delayed.Option { return delayed.At(time.Now().Add(-time.Hour)) }, 0},
		{"In the past", func() delayed.Option { return delayed.In(-time.Hour) }, 0},
	} {
		start := time.Now()
		b.delayWith(b.q.With(tt.opt()), f, tt.name)
		at := await(b, tt.name, ran)
		// A little earlier is possible because times are whole milliseconds.
		if at.Sub(start) < tt.delay-2*time.Millisecond {
			t.Errorf("%s: ran after %v, expected %v", tt.name, at.Sub(start), tt.delay)
		}
	}
	b.Check(redistest.Invariants{})
}

func TestThousandsFallDueTogether(t *testing.T) {
	b := newBench(t)
	ran := make(chan int, 5000)
	f := b.fn("f", func(i int) { ran <- i })
	calls := make([]*delayed.Task, 3*redisstore.MoveBatch+1)
	for i := range calls {
		calls[i] = delayed.Call(f, i)
	}
	if _, err := b.q.With(delayed.In(100*time.Millisecond)).DelayMany(t.Context(), calls...); err != nil {
		t.Fatal(err)
	}
	b.work(b.config(), f)
	seen := map[int]bool{}
	for range calls {
		seen[await(b, "a task", ran)] = true
	}
	if len(seen) != len(calls) {
		t.Errorf("%d different tasks ran, expected %d", len(seen), len(calls))
	}
	b.Idle()
	b.Check(redistest.Invariants{})
}

func TestTaskIDOfScheduledTaskIsTaken(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	q := b.q.With(delayed.In(time.Hour), delayed.TaskID("mine"))
	if ref := b.delayWith(q, f, 1); ref.ID() != "mine" {
		t.Fatalf("id %q", ref.ID())
	}
	before := redistest.Dump(t, b.Conn, b.Name)
	_, err := q.Delay(f, 2)
	var dup *delayed.DuplicateError
	if !errors.As(err, &dup) || dup.ID != "mine" || !errors.Is(err, delayed.ErrDuplicate) {
		t.Errorf("error %v", err)
	}
	if d := redistest.Diff(redistest.Dump(t, b.Conn, b.Name), before); d != "" {
		t.Errorf("the refused task left traces:\n%s", d)
	}
	if _, err := b.q.With(delayed.TaskID("mine")).Delay(f, 3); !errors.Is(err, delayed.ErrDuplicate) {
		t.Errorf("a pending task of the same id: %v", err)
	}
}

func TestOptionsPrintAsWritten(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, o := range map[string]delayed.Option{
		"In(1m30s)": delayed.In(90 * time.Second), "At(2026-01-02T03:04:05Z)": delayed.At(at),
		"MaxRetry(3)":   delayed.MaxRetry(3),
		"MaxRetry(0)":   delayed.MaxRetry(-3),
		`TaskID("a b")`: delayed.TaskID("a b"), "Unique(1m0s)": delayed.Unique(time.Minute),
		`UniqueKey("a", 1s)`: delayed.UniqueKey("a", time.Second),
		"UntilStart()":       delayed.UntilStart(), "OnConflict(Fail)": delayed.OnConflict(delayed.Fail),
		"OnConflict(Skip)":    delayed.OnConflict(delayed.Skip),
		"OnConflict(Replace)": delayed.OnConflict(delayed.Replace), "OnConflict(Conflict(7))": delayed.OnConflict(7),
		"Debounce(5s)": delayed.Debounce(5 * time.Second), "Front()": delayed.Front(),
	} {
		if fmt.Sprint(o) != want {
			t.Errorf("%v, expected %s", o, want)
		}
	}
}

func TestBadOptionsAreErrors(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	for name, q := range map[string]*delayed.Queue{
		"empty id": b.q.With(delayed.TaskID("")), "long id": b.q.With(delayed.TaskID(string(make([]byte, 300)))),
		"nil": b.q.With(nil),
	} {
		if _, err := q.Delay(f, 1); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := q.DelayMany(t.Context(), delayed.Call(f, 1)); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s: DelayMany: %v", name, err)
		}
	}
	if _, err := b.q.With(delayed.TaskID("x")).DelayMany(t.Context(), delayed.Call(f, 1),
		delayed.Call(f, 2)); !errors.Is(err, delayed.ErrArguments) {
		t.Errorf("one id for two tasks: %v", err)
	}
	if len(redistest.Dump(t, b.Conn, b.Name)) != 0 {
		t.Error("something was written")
	}
}

// A task that waits says in its message when it is due, by which the time is measured that it waits for a worker.
func TestMessagesSayWhenTasksAreDue(t *testing.T) {
	q := offline(t)
	const now = 1_700_000_000_000
	for _, c := range []struct {
		option delayed.Option
		want   int64
	}{
		{delayed.In(time.Minute), now + 60_000},
		{delayed.At(time.UnixMilli(1_900_000_000_000)), 1_900_000_000_000},
		{delayed.In(0), 0},
		{delayed.MaxRetry(1), 0},
	} {
		message, _, _, err := delayed.Message(q.With(c.option), delayed.NewGoTask("a.b", 1), now)
		if err != nil {
			t.Fatal(err)
		}
		due := int64(0)
		if x := parsed(t, message).Meta.Extra; x != nil {
			due = x.Due
		}
		if due != c.want {
			t.Errorf("%v: due at %d, expected %d", c.option, due, c.want)
		}
	}
}
