package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

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
