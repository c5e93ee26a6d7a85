package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// conflicting are the ways to make a call that conflicts with another task; each returns the Ref that the call got.
var conflicting = map[string]func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref{
	"Delay": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		return b.delayWith(q, fn, arg)
	},
	"later": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		return b.delayWith(q.With(delayed.In(time.Hour)), fn, arg)
	},
	"front": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		return b.delayWith(q.With(delayed.Front()), fn, arg)
	},
	"Enqueue": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		ref, err := q.Enqueue(bg, delayed.Call(fn, arg))
		b.Must(err)
		return ref
	},
	"DelayMany": func(b *bench, q *delayed.Queue, fn *delayed.Function, arg int) *delayed.Ref {
		refs, err := q.DelayMany(bg, delayed.Call(fn, arg))
		b.Must(err)
		return refs[0]
	},
}

// awaited is the result of Await.
type awaited struct {
	n   int
	err error
}

// awaiting waits for a task's result in another goroutine, and returns once its subscription in Redis is active.
func (b *bench) awaiting(ref *delayed.Ref) <-chan awaited {
	b.T.Helper()
	c := make(chan awaited, 1)
	go func() {
		n, err := delayed.Await[int](b.within(), ref)
		c <- awaited{n, err}
	}()
	b.Until("it waits", func() bool { return len(c) > 0 || b.subscribed(ref.ID()) > 0 })
	return c
}

// TestAwaitBySkippedRef: the Ref of a skipped call waits for the existing task, whether Await begins before or after
// that task runs. The options of the existing task decide what is kept, not those of the skipped call.
func TestAwaitBySkippedRef(t *testing.T) {
	for how, call := range conflicting {
		for kind, lock := range map[string]delayed.Option{
			"key": delayed.UniqueKey("k", time.Hour),
			"id":  delayed.TaskID("k"),
		} {
			t.Run(how+" "+kind, func(t *testing.T) {
				b := newBench(t)
				delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
				f := b.fn("f", func(n int) int { return 2 * n })
				first := b.delayWith(b.q.With(lock, delayed.KeepResult(time.Hour)), f, 1)
				last := time.Now().UnixMilli()
				b.Until("it is a millisecond later", func() bool { return time.Now().UnixMilli() > last })
				skip := b.q.With(lock, delayed.OnConflict(delayed.Skip))
				ref := call(b, skip, f, 2)
				if ref.ID() != first.ID() {
					t.Fatalf("found the Ref of %v, expected %v", ref, first)
				}
				early := b.awaiting(ref)
				w := b.work(b.config(), f)
				for what, got := range map[string]awaited{"early": await(b, "the result", early), "late": {}} {
					if what == "late" {
						got.n, got.err = delayed.Await[int](b.within(), ref)
					}
					if got.n != 2 || got.err != nil {
						t.Errorf("%s: Await returned %d, %v", what, got.n, got.err)
					}
				}
				w.mustStop()
				if kind == "key" {
					return // its lock is free
				}
				// The task is over but kept, so its id is still taken.
				if n, err := delayed.Await[int](b.within(), call(b, skip, f, 3)); n != 2 || err != nil {
					t.Errorf("of a task that is over: Await returned %d, %v", n, err)
				}
			})
		}
	}
}

// TestManySkippedRefs: of a call for many tasks, each Ref of a skipped one is that of the existing task, also after the
// first batch.
func TestManySkippedRefs(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(n int) int { return n }, delayed.Unique(time.Hour), delayed.OnConflict(delayed.Skip),
		delayed.KeepResult(time.Hour))
	const n = 2*redisstore.MaxEnlisted + 10
	calls := make([]*delayed.Task, 0, n)
	for i := range n {
		calls = append(calls, delayed.Call(f, i/2*3%n)) // pairs, one behind the other
	}
	there := b.delay(f, 3)
	refs, err := b.q.DelayMany(bg, calls...)
	b.Must(err)
	if refs[2].ID() != there.ID() || refs[3].ID() != there.ID() {
		t.Errorf("found the Refs of %v and %v, expected %v", refs[2], refs[3], there)
	}
	b.work(b.config(), f)
	for i, ref := range refs {
		if got, err := delayed.Await[int](b.within(), ref); got != i/2*3%n || err != nil {
			t.Fatalf("task %d: Await returned %d, %v", i, got, err)
		}
	}
	b.unlocked()
}

// TestFailureBySkippedRef: the Ref reports how the existing task ended.
func TestFailureBySkippedRef(t *testing.T) {
	b := newBench(t)
	delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
	f := b.fn("f", func(int) (int, error) { return 0, errors.New("no") })
	first := b.delayWith(b.q.With(delayed.UniqueKey("k", time.Hour), delayed.KeepResult(time.Hour),
		delayed.MaxRetry(1)), f, 1)
	ref := b.delayWith(b.q.With(delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.Skip),
		delayed.MaxRetry(5)), f, 2)
	early := b.awaiting(ref)
	b.work(b.config(), f)
	for what, err := range map[string]error{"early": await(b, "the error", early).err, "late": ref.Wait(b.within())} {
		var failed *delayed.TaskError
		if !errors.As(err, &failed) || failed.ID != first.ID() || failed.State != state.Archived ||
			failed.Attempts != 2 || failed.Text != "no" {
			t.Errorf("%s: Wait returned %v", what, err)
		}
	}
	// Its other methods are those of that task as well.
	b.Must(ref.RunAgain(bg))
	b.Until("it has failed again", func() bool { s, err := first.State(bg); return err == nil && s == state.Archived })
	b.Must(ref.Delete(bg))
	if s, err := first.State(bg); s != state.Unknown || err != nil {
		t.Errorf("deleted: its state is %v, %v", s, err)
	}
}

// TestInfoBySkippedRef: Info describes the existing task, which waits for longer than the call would have.
func TestInfoBySkippedRef(t *testing.T) {
	for how, call := range conflicting {
		t.Run(how, func(t *testing.T) {
			b := newBench(t)
			f, g := b.fn("f", func(int) {}), b.fn("g", func(int) {})
			first := b.delayWith(b.q.With(delayed.UniqueKey("k", time.Hour), delayed.In(48*time.Hour)), f, 1)
			ref := call(b, b.q.With(delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.Skip)), g, 2)
			want, err := first.Info(bg)
			b.Must(err)
			got, err := ref.Info(bg)
			b.Must(err)
			if fmt.Sprint(got.Task) != fmt.Sprint(want.Task) {
				t.Errorf("found %v, expected %v", got.Task, want.Task)
			}
			got.Task, want.Task = nil, nil
			if got != want || got.State != state.Scheduled || got.Function != b.Name+".f" ||
				time.Until(got.Due) < 24*time.Hour {
				t.Errorf("found %+v, expected %+v", got, want)
			}
			if s, err := ref.State(bg); s != state.Scheduled || err != nil {
				t.Errorf("its state is %v, %v", s, err)
			}
		})
	}
}

// TestCancelBySkippedRef cancels the existing task, wherever it is, and that frees its lock.
func TestCancelBySkippedRef(t *testing.T) {
	for name, opts := range map[string][]delayed.Option{
		"pending": nil, "scheduled": {delayed.In(time.Hour)},
		"running": nil,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
			began, ran := make(chan struct{}, 1), make(chan int, 10)
			f := b.fn("f", func(ctx context.Context, n int) error {
				if name == "running" && n == 1 {
					began <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				}
				ran <- n
				return nil
			})
			skip := b.q.With(delayed.UniqueKey("k", time.Hour), delayed.OnConflict(delayed.Skip))
			first := b.delayWith(b.q.With(append(opts, delayed.UniqueKey("k", time.Hour),
				delayed.KeepResult(time.Hour))...), f, 1)
			ref := b.delayWith(skip, f, 2)
			early := b.awaiting(first)
			if name == "running" {
				b.work(b.config(), f)
				await(b, "the task", began)
			}
			b.Must(ref.Cancel(bg))
			if next := b.delayWith(skip, f, 3); next.ID() == first.ID() {
				t.Errorf("the lock is held by the task that was cancelled")
			}
			if name != "running" {
				b.work(b.config(), f)
			}
			if n := await(b, "the next task", ran); n != 3 {
				t.Errorf("%d ran", n)
			}
			for what, err := range map[string]error{
				"early": await(b, "the error", early).err,
				"late":  ref.Wait(b.within()),
			} {
				if !errors.Is(err, delayed.ErrCanceled) {
					t.Errorf("%s: Wait returned %v", what, err)
				}
			}
			if err := ref.Cancel(bg); !errors.Is(err, delayed.ErrEnded) {
				t.Errorf("cancelled again: %v", err)
			}
			b.Idle()
			b.unlocked()
			if len(ran) > 0 {
				t.Errorf("%d more ran", len(ran))
			}
		})
	}
}

// TestRefsOfReplacedTasks: the Ref of a replaced task reports that, and does not affect the task that replaced it,
// which has a Ref of its own.
func TestRefsOfReplacedTasks(t *testing.T) {
	for how, call := range conflicting {
		for name, opts := range map[string][]delayed.Option{"until end": nil, "until start": {delayed.UntilStart()}} {
			t.Run(how+" "+name, func(t *testing.T) {
				b := newBench(t)
				delayed.Signals(b.rdb).Again = time.Hour // so that only a signal wakes it
				f := b.fn("f", func(n int) int { return 2 * n })
				lock := append([]delayed.Option{delayed.UniqueKey("k", time.Hour)}, opts...)
				q := b.q.With(append(lock, delayed.OnConflict(delayed.Replace), delayed.KeepResult(time.Hour))...)
				old := b.delayWith(q, f, 1)
				tellOld := b.awaiting(old)
				ref := call(b, q, f, 2)
				if ref.ID() == old.ID() {
					t.Fatalf("both have the Ref of %v", ref)
				}
				b.Must(old.Cancel(bg)) // a replaced task counts as cancelled already
				_, err := b.q.With(lock...).Delay(f, 3)
				inTheWay(t, err, ref.ID())
				if how == "later" {
					if s, err := ref.State(bg); s != state.Scheduled || err != nil {
						t.Errorf("the state of the one that stands is %v, %v", s, err)
					}
					b.work(b.config(), f)
				} else {
					tell := b.awaiting(ref)
					b.work(b.config(), f)
					if got := await(b, "the result", tell); got.n != 4 || got.err != nil {
						t.Errorf("of the one that stands, Await returned %d, %v", got.n, got.err)
					}
				}
				for what, err := range map[string]error{
					"early": await(b, "the error", tellOld).err,
					"late":  old.Wait(b.within()),
				} {
					var failed *delayed.TaskError
					if !errors.Is(err, delayed.ErrCanceled) || !errors.As(err, &failed) || failed.ID != old.ID() ||
						failed.State != state.Canceled {
						t.Errorf("of the one that was replaced, %s: Wait returned %v", what, err)
					}
				}
				info, err := old.Info(bg)
				if info.State != state.Canceled || info.Function != b.Name+".f" || err != nil {
					t.Errorf("found %+v, %v", info, err)
				}
				if err := old.Cancel(bg); !errors.Is(err, delayed.ErrEnded) ||
					!strings.Contains(err.Error(), old.ID()) {
					t.Errorf("cancelled when it was over: %v", err)
				}
				if how == "later" {
					b.Must(ref.Cancel(bg))
				}
				b.unlocked()
				b.Check(redistest.Invariants{})
			})
		}
	}
}
