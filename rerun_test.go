package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

func TestRunAgain(t *testing.T) {
	b := newBench(t)
	var broken atomic.Bool
	broken.Store(true)
	ran := make(chan string, 10)
	f := b.fn("f", func(_ context.Context, name string, n int) (string, error) {
		if broken.Load() {
			return "", errors.New("broken")
		}
		ran <- fmt.Sprint(name, n)
		return name, nil
	}, delayed.MaxRetry(1), delayed.KeepResult(time.Hour))
	b.work(b.config(), f)
	ctx := b.within()
	fail := func(name string) *delayed.Ref {
		t.Helper()
		ref := b.delay(f, name, 1)
		var failed *delayed.TaskError
		if err := ref.Wait(b.within()); !errors.As(err, &failed) || failed.Attempts != 2 {
			t.Fatalf("Wait: %v", err)
		}
		return ref
	}
	first, second := fail("a"), fail("b")
	broken.Store(false)
	if err := first.RunAgain(ctx); err != nil {
		t.Fatal(err)
	}
	if got := await(b, "the first task", ran); got != "a1" {
		t.Errorf("ran %q", got)
	}
	if name, err := delayed.Await[string](ctx, first); name != "a" || err != nil {
		t.Errorf("Await: %q, %v", name, err)
	}
	// With edited arguments, which RunAgainWith checks.
	for _, c := range []struct {
		task *delayed.Task
		is   error
		want string
	}{
		{nil, delayed.ErrArguments, "nil"},
		{delayed.Call(f, "b"), delayed.ErrArguments, "expected 2 arguments"},
		{delayed.Call(f, "b", "one"), delayed.ErrArguments, "argument 2"},
		{
			delayed.Call(b.fn("g", func(string, int) {}), "b", 2), delayed.ErrFunction,
			"expected arguments of " + b.Name + ".f",
		},
		{delayed.NewPyTask("a:b", nil, nil), delayed.ErrFunction, "found those of a:b"},
	} {
		if err := second.RunAgainWith(ctx, c.task); !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("found %v, expected %q", err, c.want)
		}
	}
	if err := second.RunAgainWith(ctx, delayed.Call(f, "c", 2)); err != nil {
		t.Fatal(err)
	}
	if got := await(b, "the second task", ran); got != "c2" {
		t.Errorf("ran %q", got)
	}
	if err := second.Wait(ctx); err != nil {
		t.Error(err)
	}
	// By path, for a function that this program does not link.
	broken.Store(true)
	third := fail("d")
	broken.Store(false)
	if err := third.RunAgainWith(ctx, delayed.NewGoTask(b.Name+".f", "e", 3)); err != nil {
		t.Fatal(err)
	}
	if got := await(b, "the third task", ran); got != "e3" {
		t.Errorf("ran %q", got)
	}
	for _, err := range []error{
		first.RunAgain(ctx), b.q.Ref("nobody").RunAgain(ctx), b.q.Ref("nobody").Delete(ctx),
		b.delayWith(b.q.With(delayed.In(time.Hour)), f, "x", 1).RunAgain(ctx),
	} {
		if !errors.Is(err, delayed.ErrNotArchived) {
			t.Errorf("found %v, expected ErrNotArchived", err)
		}
	}
	for _, err := range []error{b.q.Ref("").RunAgain(ctx), b.q.Ref("").Delete(ctx)} {
		if !errors.Is(err, delayed.ErrNoID) {
			t.Errorf("found %v, expected ErrNoID", err)
		}
	}
	if err := first.Delete(ctx); err != nil {
		t.Error(err)
	}
	if where, err := first.State(ctx); where != state.Unknown || err != nil {
		t.Errorf("the state of a deleted task is %v, %v", where, err)
	}
}

// archive fills the archive with tasks of a function.
func (b *bench) archive(n int) {
	b.T.Helper()
	for i := range n {
		id := fmt.Sprintf("t%04d", i)
		msg := wire.Message{
			Kind: wire.GoExtended, Path: "a.b",
			Meta: wire.Meta{ID: id, Retried: 3, Deaths: 1, DiedAt: 5, EnqueuedAt: 7},
		}
		info := wire.Info{
			Reason: []state.Reason{"failed", "deaths"}[i%2], Function: "a.b", Error: "no",
			At: time.UnixMilli(9), Attempts: 4,
		}
		b.Do("HSET", b.Name+"_tasks", id, msg.Append(nil))
		b.Do("HSET", b.Name+"_info", id, info.Encode())
		b.Do("ZADD", b.Name+"_archived", time.Now().Add(time.Hour).UnixMilli()+int64(i), id)
	}
}

func TestArchivedPages(t *testing.T) {
	b := newBench(t)
	b.archive(30)
	ctx := b.within()
	page, total, err := b.q.Archived(ctx, 10, 5)
	if err != nil || total != 30 || len(page) != 5 {
		t.Fatalf("%d of %d, %v", len(page), total, err)
	}
	for i, task := range page {
		due := task.Due
		if task.Task.ID() != task.ID {
			t.Errorf("found %v", task.Task)
		}
		task.Task = nil
		want := delayed.TaskInfo{
			ID: fmt.Sprintf("t%04d", 10+i), State: state.Archived, Function: "a.b", Due: due, At: time.UnixMilli(9),
			EnqueuedAt: time.UnixMilli(7),
			Reason:     []state.Reason{"failed", "deaths"}[i%2],
			Error:      "no", Attempts: 4,
		}
		if task != want || time.Until(due) > time.Hour+time.Minute || time.Until(due) < 50*time.Minute {
			t.Errorf("found %+v, expected %+v", task, want)
		}
	}
	if _, _, err := b.q.Archived(ctx, 0, 0); err == nil || !strings.Contains(err.Error(), "Archived(0, 0): expected") {
		t.Errorf("found %v", err)
	}
}

func TestRunArchivedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	const n = 1200 // more than one page
	b.archive(n)
	b.Do("HSET", b.Name+"_tasks", "odd", "no message")
	b.Do("ZADD", b.Name+"_archived", round, "odd")
	ctx := b.within()
	seen := 0
	got, err := b.q.RunArchivedAgain(ctx, func(task delayed.TaskInfo) bool {
		if seen++; seen == 500 {
			// A task that fails again at once stays in the archive.
			b.Do("HSET", b.Name+"_tasks", "later", "m")
			b.Do("ZADD", b.Name+"_archived", later, "later")
		}
		return task.Reason == "deaths"
	})
	if got != n/2 || err != nil || seen != n+1 {
		t.Errorf("%d run again, %v, %d seen; expected %d", got, err, seen, n/2)
	}
	list := b.List("")
	if len(list) != n/2 || b.Size("_noti") != n/2 || b.Size("_archived") != n/2+2 {
		t.Errorf("%d are pending with %d notifications, %d are archived", len(list), b.Size("_noti"),
			b.Size("_archived"))
	}
	msg, err := wire.Parse([]byte(list[0]), wire.WorkerLimits)
	if want := (wire.Meta{ID: "t0001", EnqueuedAt: 7}); err != nil || !reflect.DeepEqual(msg.Meta, want) {
		t.Errorf("found %+v, %v, expected %+v", msg.Meta, err, want)
	}
	got, err = b.q.DeleteArchived(ctx, func(task delayed.TaskInfo) bool { return task.ID > "t" && task.ID < "t0600" })
	if got != 300 || err != nil || b.Size("_archived") != n/2+2-300 {
		t.Errorf("%d deleted, %v, %d are left", got, err, b.Size("_archived"))
	}
	b.Check(redistest.Invariants{})
	if got, err = b.q.RunArchivedAgain(ctx, nil); got != 302 || err != nil ||
		b.Size("_archived")+b.Size("_tasks")+b.Size("_info") != 0 {
		t.Errorf("%d run again, %v, %d are left", got, err, b.Size("_archived"))
	}
	if got, err = b.q.DeleteArchived(ctx, nil); got != 0 || err != nil {
		t.Errorf("%d deleted of none, %v", got, err)
	}
	b.Check(redistest.Invariants{})
}

// TestRerunMessages checks the messages of tasks that run again.
func TestRerunMessages(t *testing.T) {
	now := time.Now().UnixMilli()
	extra := func(x wire.Extra) []byte {
		m := wire.Message{
			Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x01},
			Meta: wire.Meta{ID: "x", Retried: 2, Deaths: 1, DiedAt: 1, Extra: &x},
		}
		return m.Append(nil)
	}
	for _, c := range []struct {
		name string
		old  []byte
		task *delayed.Task
		want wire.Message
		same bool
		due  bool // the message says that it is due now
	}{
		{name: "plain", old: []byte("\x92\xa3a.b\xc4\x01\x01"), same: true},
		{name: "Python", old: []byte("\x91\xa3a:b"), same: true},
		{name: "no message", old: []byte("no message"), same: true},
		{
			name: "times that are over go, others stay", due: true,
			old: extra(wire.Extra{
				Deadline: 5, Expiry: now + 1e6, RetryUntil: now, FirstFailed: 3, AloneDeaths: 2,
				Timeout: 7, KeepResult: 9,
			}),
			want: wire.Message{
				Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x01},
				Meta: wire.Meta{ID: "x", Extra: &wire.Extra{Expiry: now + 1e6, Timeout: 7, KeepResult: 9}},
			},
		},
		{
			name: "arguments of a plain one",
			old:  []byte("\x92\xa3a.b\xc4\x01\x01"), task: delayed.NewGoTask("a.b", 2, 3),
			want: wire.Message{
				Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x92, 2, 3},
				Meta: wire.Meta{HasN: true, N: 2},
			},
		},
		{
			name: "arguments in another form",
			old:  extra(wire.Extra{Timeout: 7}), task: delayed.NewGoTask("a.b", 2),
			want: wire.Message{
				Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x91, 2},
				Meta: wire.Meta{ID: "x", HasN: true, N: 1, Extra: &wire.Extra{Timeout: 7}},
			},
		},
		{
			name: "arguments of a Python task",
			old:  []byte("\x92\xa3a:b\x91\x01"), task: delayed.NewPyTask("a:b", []any{2}, map[string]any{"k": 1}),
			want: wire.Message{
				Kind: wire.Py, Path: "a:b",
				Py: &wire.PyCall{Args: []byte{0x91, 2}, Kwargs: []byte("\x81\xa1k\x01")},
			},
		},
		{
			name: "arguments of what is no message",
			old:  []byte("no message"), task: delayed.NewGoTask("a.b", 2),
			want: wire.Message{
				Kind: wire.GoExtended, Path: "a.b", Payload: []byte{0x91, 2},
				Meta: wire.Meta{ID: "f", HasN: true, N: 1},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Do("HSET", b.Name+"_tasks", "f", c.old)
			b.Do("ZADD", b.Name+"_archived", later, "f")
			if c.task != nil {
				b.Must(b.q.Ref("f").RunAgainWith(b.within(), c.task))
			} else {
				b.Must(b.q.Ref("f").RunAgain(b.within()))
			}
			want := c.old
			if c.due {
				begin := redistest.Time(t, b.Conn) - time.Minute.Milliseconds()
				found, err := wire.Parse([]byte(b.List("")[0]), wire.WorkerLimits)
				b.Must(err)
				c.want.Meta.Extra.Due = found.Meta.Extra.Due
				if due := found.Meta.Extra.Due; due < begin || due > begin+time.Hour.Milliseconds() {
					t.Errorf("due at %d, expected the present, about %d", due, begin)
				}
			}
			if !c.same {
				want = c.want.Append(nil)
			}
			if found := b.List(""); len(found) != 1 || found[0] != string(want) {
				t.Errorf("found %q, expected %q", found, want)
			}
			if n := b.Size("_archived") + b.Size("_tasks"); n != 0 {
				t.Errorf("%d elements are left in the archive", n)
			}
		})
	}
}

// TestRefsOfNoTask: a Ref without a task returns errors and does not panic.
func TestRefsOfNoTask(t *testing.T) {
	b := newBench(t)
	ctx := t.Context()
	for name, do := range map[string]func(*delayed.Ref) error{
		"Cancel":       func(r *delayed.Ref) error { return r.Cancel(ctx) },
		"Delete":       func(r *delayed.Ref) error { return r.Delete(ctx) },
		"RunAgain":     func(r *delayed.Ref) error { return r.RunAgain(ctx) },
		"RunAgainWith": func(r *delayed.Ref) error { return r.RunAgainWith(ctx, delayed.Call(plainForTest, 1)) },
		"State":        func(r *delayed.Ref) error { return second(r.State(ctx)) },
		"Info":         func(r *delayed.Ref) error { return second(r.Info(ctx)) },
		"Progress": func(r *delayed.Ref) error {
			_, _, _, err := r.Progress(ctx)
			return err
		},
		"Wait": func(r *delayed.Ref) error { return r.Wait(ctx) },
	} {
		for _, r := range []*delayed.Ref{nil, b.q.Ref("")} {
			if err := do(r); !errors.Is(err, delayed.ErrNoID) {
				t.Errorf("%s: %v, expected ErrNoID", name, err)
			}
		}
	}
}

// TestTaskOnItsWayIsLeftAlone leaves tasks to an inspector that moves them, until it is clear that it has given up.
func TestTaskOnItsWayIsLeftAlone(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	ctx := b.within()
	for id, ago := range map[string]time.Duration{"young": time.Second, "old": time.Hour} {
		b.Do("ZADD", b.Name+"_archived", time.Now().Add(time.Hour).UnixMilli(), id)
		msg := wire.Message{Kind: wire.GoExtended, Path: "a.b", Meta: wire.Meta{ID: id}}
		b.Do("HSET", b.Name+"_tasks", id, msg.Append(nil))
		info := wire.Info{Reason: "moving", At: time.Now().Add(-ago)}
		b.Do("HSET", b.Name+"_info", id, info.Encode())
	}
	young := b.q.Ref("young")
	for what, err := range map[string]error{
		"RunAgain": young.RunAgain(ctx), "RunAgainWith": young.RunAgainWith(ctx, delayed.NewGoTask("a.b", 1)),
		"Delete": young.Delete(ctx),
	} {
		if !errors.Is(err, delayed.ErrNotArchived) || !strings.Contains(err.Error(), "on its way to another queue") {
			t.Errorf("%s: found %v", what, err)
		}
	}
	n, err := b.q.DeleteArchived(ctx, func(i delayed.TaskInfo) bool { return i.ID == "young" })
	if n != 0 || err != nil {
		t.Errorf("deleted %d, %v", n, err)
	}
	if n, err := b.q.RunArchivedAgain(ctx, nil); n != 1 || err != nil {
		t.Errorf("%d tasks run again, %v, expected the one that nobody moves any more", n, err)
	}
	if pending := b.pending(); len(pending) != 1 || pending[0].Meta.ID != "old" {
		t.Errorf("pending: %+v", pending)
	}
	b.Do("DEL", b.Name+"_archived", b.Name+"_tasks", b.Name+"_info", b.Name, b.Name+"_noti")
}
