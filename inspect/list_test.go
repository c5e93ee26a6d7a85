package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// TestListsAreWhole reads lists of each state page by page, in both directions.
func TestListsAreWhole(t *testing.T) {
	t.Parallel()
	const n = 25
	for _, c := range []struct {
		state state.Task
		fill  func(*bench, int)
	}{
		{state.Pending, func(b *bench, i int) {
			_, err := b.q.With(delayed.TaskID(id(i))).Delay(welcome, i, "en")
			b.Must(err)
		}},
		{state.Scheduled, func(b *bench, i int) {
			// Several are due at the same time.
			at := time.UnixMilli(4_000_000_000_000 + int64(i/10))
			_, err := b.q.With(delayed.TaskID(id(i)), delayed.At(at)).Delay(welcome, i, "en")
			b.Must(err)
		}},
		{state.Aggregating, func(b *bench, i int) {
			key := fmt.Sprint("group", i/10)
			_, err := b.q.With(delayed.Group(key)).Delay(gathered, []int{i})
			b.Must(err)
		}},
	} {
		t.Run(c.state.String(), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for i := range n {
				c.fill(b, i)
			}
			forward := b.tasks(inspect.Query{State: c.state, Limit: 7})
			back := b.tasks(inspect.Query{State: c.state, Limit: 3, NewestFirst: true})
			slices.Reverse(back)
			if c.state == state.Aggregating {
				slices.SortStableFunc(forward, byID)
				slices.SortStableFunc(back, byID)
			}
			if !slices.Equal(ids(forward), ids(back)) || len(slices.Compact(ids(forward))) != n {
				t.Errorf("forward %v, backward %v: expected the same %d tasks", ids(forward), ids(back), n)
			}
			if c.state != state.Aggregating && (forward[0].ID != id(0) || forward[n-1].ID != id(n-1)) {
				t.Errorf("from %s to %s: expected the order of ids", forward[0].ID, forward[n-1].ID)
			}
			if c.state == state.Aggregating {
				first := inspect.Query{State: c.state, Limit: 7, Filter: inspect.Filter{Group: "group0"}}
				if n := len(b.tasks(first)); n != 10 {
					t.Errorf("found %d calls of group0, expected 10", n)
				}
			}
			page, err := b.ins.Tasks(bg, queueName, inspect.Query{State: c.state, Limit: n})
			b.Must(err)
			if page.Total != n || page.Scanned != n {
				t.Errorf("%d tasks, %d scanned: expected %d", page.Total, page.Scanned, n)
			}
		})
	}
}

func byID(a, b inspect.Task) int { return strings.Compare(a.ID, b.ID) }

// TestPagesWhileTasksMove claims tasks and adds others between two pages: no task that stays is left out.
func TestPagesWhileTasksMove(t *testing.T) {
	t.Parallel()
	for _, newest := range []bool{false, true} {
		t.Run(fmt.Sprint("newest first ", newest), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			for i := range 60 {
				_, err := b.q.With(delayed.TaskID(id(i))).Delay(welcome, i, "en")
				b.Must(err)
			}
			q := inspect.Query{State: state.Pending, Limit: 10, NewestFirst: newest}
			seen := map[string]bool{}
			next := 60
			for taken := 0; ; taken += 5 {
				page, err := b.ins.Tasks(bg, queueName, q)
				b.Must(err)
				for _, task := range page.Tasks {
					seen[task.ID] = true
				}
				if page.Cursor == "" {
					break
				}
				q.Cursor = page.Cursor
				if taken < 20 { // as a worker does, without one
					b.Do("LPOP", b.Name, 5)
					b.Do("LPOP", b.Name+"_noti", 5)
					for range 3 {
						_, err := b.q.With(delayed.TaskID(id(next))).Delay(welcome, next, "en")
						b.Must(err)
						next++
					}
				}
			}
			for i := 20; i < 60; i++ {
				if !seen[id(i)] {
					t.Errorf("%s was pending all the time, and is in no page", id(i))
				}
			}
		})
	}
}

// TestFilters holds each part of a filter against a list.
func TestFilters(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	add := func(id string, opts []delayed.Option, fn any, args ...any) {
		t.Helper()
		_, err := b.q.With(append(opts, delayed.TaskID(id))...).Delay(fn, args...)
		b.Must(err)
	}
	add("a", nil, welcome, 42, "en")
	add("b", []delayed.Option{delayed.Header("tenant", "acme")}, welcome, 7, "de")
	add("c", nil, digest, []User{{"Ann", 30}, {"Bob", 4}}, map[string]int{"x": 1})
	_, err := b.q.With(delayed.TaskID("d")).Enqueue(bg, delayed.NewPyTask("mail.tasks:welcome", []any{42},
		map[string]any{"lang": "en"}))
	b.Must(err)
	for _, c := range []struct {
		filter inspect.Filter
		want   string
	}{
		{inspect.Filter{}, "a b c d"},
		{inspect.Filter{Function: "welcome"}, "a b d"},
		{inspect.Filter{Function: "inspect_test.welcome"}, "a b"},
		{inspect.Filter{Function: path("welcome")}, "a b"},
		{inspect.Filter{Function: "elcome"}, ""},
		{inspect.Filter{ID: "b"}, "b"},
		{inspect.Filter{Headers: map[string]string{"tenant": "acme"}}, "b"},
		{inspect.Filter{Headers: map[string]string{"tenant": ""}}, "b"},
		{inspect.Filter{Headers: map[string]string{"tenant": "other"}}, ""},
		{inspect.Filter{Text: `42, "en"`}, "a"},
		{inspect.Filter{Text: "Ann"}, "c"},
		{inspect.Filter{Arg: "0=42"}, "a d"},
		{inspect.Filter{Arg: "1=de"}, "b"},
		{inspect.Filter{Arg: "0.1.Name=Bob"}, "c"},
		{inspect.Filter{Arg: "0.1.Age=4"}, "c"},
		{inspect.Filter{Arg: "1.x"}, "c"},
		{inspect.Filter{Arg: "lang=en"}, "d"},
		{inspect.Filter{Arg: "2"}, ""},
		{inspect.Filter{MinAttempt: 2}, ""},
		{inspect.Filter{MaxAttempt: 1, Function: "digest"}, "c"},
		{inspect.Filter{OlderThan: time.Hour}, ""},
		{inspect.Filter{YoungerThan: time.Hour}, "a b c d"},
	} {
		got := strings.Join(ids(b.tasks(inspect.Query{State: state.Pending, Filter: c.filter, Limit: 1})), " ")
		if got != c.want {
			t.Errorf("%+v: found %q, expected %q", c.filter, got, c.want)
		}
	}
}

// TestCalls shows arguments as code.
func TestCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.Delay(welcome, 42, "en\x1b[2J\u202e")
	b.Must(err)
	_, err = b.q.Delay(digest, []User{{"Ann", 30}}, map[string]int{"b": 2, "a": 1})
	b.Must(err)
	_, err = b.q.Enqueue(bg, delayed.NewPyTask("mail.tasks:welcome", []any{1.5, nil, []byte("\x00")},
		map[string]any{"to": "Ann"}))
	b.Must(err)
	want := []string{
		`inspect_test.welcome(42, "en\x1b[2J\u202e")`,
		`inspect_test.digest([{Age: 30, Name: "Ann"}], {a: 1, b: 2})`,
		`mail.tasks:welcome(1.5, nil, []byte("\x00"), to="Ann")`,
	}
	for i, task := range b.tasks(inspect.Query{State: state.Pending}) {
		if task.Call != want[i] {
			t.Errorf("found %s, expected %s", task.Call, want[i])
		}
	}
}

// TestQueriesRefused holds wrong queries against their errors.
func TestQueriesRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.q.Delay(welcome, 1, "en")
	b.Must(err)
	_, err = b.q.Delay(welcome, 2, "en")
	b.Must(err)
	page, err := b.ins.Tasks(bg, queueName, inspect.Query{State: state.Pending, Limit: 1})
	b.Must(err)
	for _, c := range []struct {
		q    inspect.Query
		want string
	}{
		{inspect.Query{}, "Query.State is unknown: expected one of States"},
		{inspect.Query{State: state.Dropped}, "listed as completed"},
		{inspect.Query{State: state.Pending, Limit: 1001}, "Query.Limit is 1001"},
		{inspect.Query{State: state.Pending, Limit: -1}, "Query.Limit is -1"},
		{inspect.Query{State: state.Pending, ScanLimit: -1}, "Query.ScanLimit is -1"},
		{inspect.Query{State: state.Retry, Cursor: page.Cursor}, "expected that of a Page of retry tasks"},
		{inspect.Query{State: state.Pending, NewestFirst: true, Cursor: page.Cursor}, "same order"},
		{inspect.Query{State: state.Pending, Cursor: "rubbish"}, "Query.Cursor"},
	} {
		if _, err := b.ins.Tasks(bg, queueName, c.q); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, expected an error with %q", c.q, err, c.want)
		}
	}
	if _, err := b.ins.Tasks(bg, queueName, inspect.Query{State: state.Retry, Cursor: page.Cursor}); !errors.Is(err,
		inspect.ErrCursor) {
		t.Errorf("%v, expected ErrCursor", err)
	}
	if _, err := b.ins.Tasks(bg, "a b", inspect.Query{State: state.Pending}); err == nil {
		t.Error("a malformed queue name was accepted")
	}
	var none context.Context
	if _, err := b.ins.Tasks(none, queueName, inspect.Query{State: state.Pending}); err == nil {
		t.Error("a nil context was accepted")
	}
	if _, err := inspect.New(nil, inspect.Config{}); err == nil {
		t.Error("a nil handle was accepted")
	}
	if _, err := b.ins.Task(bg, queueName, "nothing"); !errors.Is(err, inspect.ErrNotFound) {
		t.Errorf("%v, expected ErrNotFound", err)
	}
}

// TestFailuresOfAllAttempts: a task remembers each attempt that has failed, also when it is run again.
func TestFailuresOfAllAttempts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.work(fails)
	ref, err := b.q.With(delayed.MaxRetry(2), delayed.Backoff(time.Millisecond)).Delay(fails, 7)
	b.Must(err)
	task := b.archived(ref.ID())
	var attempts []int
	for _, f := range task.Failures {
		attempts = append(attempts, f.Attempt)
		if f.Error != task.Error || f.Worker == "" || f.At.Before(task.FirstFailed) || f.At.After(task.At) {
			t.Errorf("found %+v of %+v", f, task)
		}
	}
	if !slices.Equal(attempts, []int{1, 2, 3}) {
		t.Errorf("failures of attempts %v, expected 1, 2, 3", attempts)
	}
	b.Must(ref.RunAgain(bg))
	if task = b.archived(ref.ID()); len(task.Failures) != 6 || task.Failures[3].Attempt != 1 {
		t.Errorf("run again: %+v, expected three failures more", task.Failures)
	}
}

// TestLastFailureOfAnArchivedTask looks at tasks that have failed and are archived because of that, or of something
// else. What is known of a task has the whole text of an error that its message has shortened.
func TestLastFailureOfAnArchivedTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	failed := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	failures := wire.AddFailure(nil, wire.Failed{Attempt: 1, At: failed.UnixMilli(), Error: "refused …"})
	for id, c := range map[string]struct {
		info wire.Info
		want string
	}{
		"failed": {wire.Info{Reason: "failed", At: failed, Error: "refused by all hosts"}, "refused by all hosts"},
		"died":   {wire.Info{Reason: "deaths", At: failed.Add(time.Second), Error: "its worker died"}, "refused …"},
	} {
		msg := wire.Message{Kind: wire.GoExtended, Path: "a.f", Payload: []byte{0x90}, Meta: wire.Meta{
			ID: id, Extra: &wire.Extra{Failures: failures},
		}}
		b.Do("ZADD", b.Name+"_archived", time.Now().Add(time.Hour).UnixMilli(), id)
		b.Do("HSET", b.Name+"_tasks", id, msg.Append(nil))
		b.Do("HSET", b.Name+"_info", id, c.info.Encode())
		task, err := b.ins.Task(bg, queueName, id)
		b.Must(err)
		if task.Error != c.info.Error || len(task.Failures) != 1 || task.Failures[0].Error != c.want {
			t.Errorf("%s: %q, and its failures are %+v: expected %q", id, task.Error, task.Failures, c.want)
		}
	}
}

// archived waits until the task is archived.
func (b *bench) archived(id string) (task inspect.Task) {
	b.T.Helper()
	b.Until("the task is archived", func() bool {
		task, _ = b.ins.Task(bg, queueName, id)
		return task.State == state.Archived
	})
	return task
}
