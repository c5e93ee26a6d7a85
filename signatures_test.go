package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// checked returns the bench's queue with QueueConfig.Check, over a handle of its own, which remembers nothing.
func (b *bench) checked(src delayed.Source) *delayed.Queue {
	b.T.Helper()
	q, err := delayed.OpenQueue(delayed.FromSource(src), delayed.QueueConfig{Name: b.Name, Check: true})
	b.Must(err)
	return q
}

// publishes waits until a worker has published so many functions.
func (b *bench) publishes(w *started, n int) {
	b.T.Helper()
	b.Until("the functions are published", func() bool { return len(b.published(w).Functions) == n })
}

type checkedAddress struct {
	Street string
	Number int8
}

// TestCheckedCalls enqueues calls that workers take, and calls that they do not.
func TestCheckedCalls(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	welcome := b.fn("mail.Welcome", func(int64, string) {}, delayed.Alias(b.Name+".letters.Welcome"))
	visit := b.fn("shop.Visit", func(context.Context, checkedAddress, []uint16, ...bool) error { return nil })
	missing := b.fn("mail.Missing", func() {})
	// The same path as welcome, as another version of this program has it.
	newer := delayed.Func(func(int64, string, bool) {}, delayed.Name(b.Name+".mail.Welcome"))
	w := b.work(b.config(), welcome, visit, b.fn("nothing", func() {}))
	b.publishes(w, 3)
	b.Must(b.q.Pause(bg))
	q := b.checked(b.src)
	goTask := func(name string, args ...any) *delayed.Task { return delayed.NewGoTask(b.Name+"."+name, args...) }
	good := []*delayed.Task{
		goTask("mail.Welcome", 42, "en"), goTask("letters.Welcome", 42, "en"), goTask("nothing"),
		goTask("shop.Visit", map[string]any{"Street": "Elm"}, nil),
		goTask("shop.Visit", checkedAddress{"Elm", 7}, []int{65535}),
		goTask("shop.Visit", checkedAddress{}, nil, []bool{true}),
		goTask("shop.Visit", checkedAddress{}, nil, true, false),
		delayed.Call(welcome, 42, "en"), delayed.Call(visit, checkedAddress{}, []uint16{7}),
		delayed.Call(visit, checkedAddress{}, nil, true), delayed.NewPyTask("nobody:runs", []any{1}, nil),
	}
	for _, task := range good {
		if _, err := q.Enqueue(bg, task); err != nil {
			t.Errorf("%v was refused: %v", task, err)
		}
	}
	if _, err := q.DelayMany(bg, good...); err != nil {
		t.Error(err)
	}
	before, err := q.Len(bg)
	b.Must(err)
	if before != 2*len(good) {
		t.Errorf("%d tasks are pending, expected %d", before, 2*len(good))
	}
	for _, c := range []struct {
		task *delayed.Task
		kind error
		want string
	}{
		{
			goTask("mail.Welcome", 42), delayed.ErrArguments,
			"expected the arguments of " + b.Name + ".mail.Welcome(int64, string), found 1",
		},
		{
			goTask("mail.Welcome", "secret", "en"), delayed.ErrArguments,
			"argument 1: expected int64, as in " + b.Name + ".mail.Welcome(int64, string), found a string",
		},
		{goTask("mail.Welcome", 42, 1.5), delayed.ErrArguments, "argument 2: expected string, as in "},
		{goTask("shop.Visit", map[string]any{"secret": 1}, nil), delayed.ErrArguments, "Street, Number"},
		{goTask("shop.Visit", checkedAddress{}, []int{65536}), delayed.ErrArguments, "at [0]"},
		{goTask("mail.Welcom", 42, "en"), delayed.ErrFunction, "did you mean " + b.Name + ".mail.Welcome?"},
		{delayed.NewGoTask("mail.Welcome", 42, "en"), delayed.ErrFunction, "expected a function that a worker"},
		{delayed.Call(missing), delayed.ErrFunction, "has registered"},
		{delayed.Call(newer, 42, "en", true), delayed.ErrArguments, "found 3"},
	} {
		_, err := q.Enqueue(bg, c.task)
		_, many := q.DelayMany(bg, good[0], c.task)
		var batch *delayed.BatchError
		if !errors.As(many, &batch) || batch.Sent != 0 || !strings.Contains(many.Error(), "task 2: ") {
			t.Errorf("%v: DelayMany returned %v", c.task, many)
		}
		for _, err := range []error{err, many} {
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.want) ||
				strings.Contains(err.Error(), "secret") {
				t.Errorf("%v: error %v, expected %v with %q", c.task, err, c.kind, c.want)
			}
		}
	}
	if _, err := q.Delay(missing); !errors.Is(err, delayed.ErrFunction) {
		t.Errorf("Delay of a function that no worker has registered: %v", err)
	}
	var wrong *delayed.ArgumentError
	if _, err := q.Enqueue(bg, goTask("mail.Welcome", 42, 1.5)); !errors.As(err, &wrong) || wrong.Index != 1 ||
		wrong.Func != b.Name+".mail.Welcome" || wrong.Got != "the number 1.5" {
		t.Errorf("error %#v", err)
	}
	if n, err := q.Len(bg); err != nil || n != before {
		t.Errorf("%d tasks are pending (%v), expected %d: those that were refused are none", n, err, before)
	}
	b.Do("DEL", b.Name, b.Name+"_noti")
}

// TestCheckedCallsDuringADeploy: while two versions of a worker run, calls of both are taken, and no others; when the
// old one has gone, its calls are refused.
func TestCheckedCallsDuringADeploy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Must(b.q.Pause(bg))
	name := delayed.Name(b.Name + ".Send")
	call := func(args ...any) *delayed.Task { return delayed.NewGoTask(b.Name+".Send", args...) }
	before := b.work(b.config(), delayed.Func(func(int64) {}, name))
	b.publishes(before, 1)
	q := b.checked(b.src)
	try := func(q *delayed.Queue, takes ...bool) {
		t.Helper()
		for i, task := range []*delayed.Task{call(1), call(1, "en"), call("en")} {
			_, err := q.Enqueue(bg, task)
			if (err == nil) != takes[i] || err != nil && !errors.Is(err, delayed.ErrArguments) {
				t.Errorf("call %d: error %v, taken is %t", i+1, err, takes[i])
			}
		}
	}
	try(q, true, false, false)
	after := b.work(b.config(), delayed.Func(func(int64, string) {}, name))
	b.publishes(after, 1)
	try(q, true, true, false) // although q has just read what there was
	before.mustStop()
	try(b.checked(b.src), false, true, false)

	// A running worker registers one more.
	later := delayed.NewGoTask(b.Name + ".Later")
	if _, err := q.Enqueue(bg, later); !errors.Is(err, delayed.ErrFunction) {
		t.Errorf("error %v, expected ErrFunction", err)
	}
	b.Must(after.Register(b.fn("Later", func() {})))
	b.Until("it is taken", func() bool { _, err := q.Enqueue(bg, later); return err == nil })
	after.mustStop()
	if _, err := b.checked(b.src).Enqueue(bg, delayed.NewGoTask(b.Name+".Wrong")); err != nil {
		t.Errorf("without workers: %v", err)
	}
	b.Do("DEL", b.Name, b.Name+"_noti")
}

// TestCheckedCallsOfPython compares calls with what a Python worker publishes.
func TestCheckedCallsOfPython(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.Do("SADD", b.Name+"_workers", "py")
	b.Do("HSET", b.Name+"_functions", "py", `{"version": 1, "functions": [
		{"path": "post.tasks:send", "optional": 1, "parameters": [
			{"name": "to", "go": "str", "type": {"kind": "string"}},
			{"name": "times", "go": "int", "type": {"kind": "int64"}}]}]}`)
	q := b.checked(b.src)
	send := func(kwargs map[string]any, args ...any) *delayed.Task {
		return delayed.NewPyTask("post.tasks:send", args, kwargs)
	}
	for task, want := range map[*delayed.Task]string{
		send(nil, "ann"): "",
		send(map[string]any{"to": "ann", "times": 2}): "",
		delayed.NewGoTask("no/go.Worker", 1):          "",
		send(nil):                                     "post.tasks:send(to str, times int), found 0",
		send(nil, 1):                                  "argument 1: expected str, as in ",
		delayed.NewPyTask("post.tasks:sent", []any{"ann"}, nil): "did you mean post.tasks:send?",
	} {
		_, err := q.Enqueue(bg, task)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v: error %v, expected %q", task, err, want)
		}
	}
	b.Do("DEL", b.Name, b.Name+"_noti", b.Name+"_workers", b.Name+"_functions", b.Name+"_mode")
}

// TestCheckedCallsShareReads: what workers publish is read once for all callers and queues of a handle, and a call that
// fits costs no more round trips than one that is not checked.
func TestCheckedCallsShareReads(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishes(b.work(b.config(), b.fn("f", func(int) {})), 1)
	var reads atomic.Int64
	src := redistest.Intercept(b.src, func(cmd string, args []any, send func() (any, error)) (any, error) {
		if cmd == "SMEMBERS" || len(args) > 2 && strings.HasSuffix(fmt.Sprint(args[2]), "_functions") {
			reads.Add(1)
		}
		return send()
	})
	rdb := delayed.FromSource(src)
	task := delayed.NewGoTask(b.Name+".f", 7)
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			q, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: b.Name, Check: true})
			if err == nil {
				_, err = q.Enqueue(bg, task)
			}
			if err != nil {
				t.Error(err)
			}
			many := slices.Repeat([]*delayed.Task{task}, 10)
			if _, err := q.With(delayed.MaxRetry(1)).DelayMany(bg, many...); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
	if n := reads.Load(); n != 2 {
		t.Errorf("%d reads, expected 2: the ids of workers, and their functions", n)
	}
}

// TestCheckedCallsNeedAnAnswer: a call fails if it cannot be compared, and nothing is enqueued.
func TestCheckedCallsNeedAnAnswer(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	task := delayed.NewGoTask("f")
	asked, hang := make(chan struct{}, 1), make(chan struct{})
	src := redistest.Intercept(b.src, func(cmd string, _ []any, send func() (any, error)) (any, error) {
		if cmd != "SMEMBERS" {
			return send()
		}
		asked <- struct{}{}
		<-hang
		return nil, redis.Error("NOPERM no permission to access a key")
	})
	q := b.checked(src)
	first := make(chan error, 1)
	go func() { _, err := q.Enqueue(bg, task); first <- err }()
	await(b, "the first look at the workers", asked)
	ctx, cancel := context.WithTimeout(bg, 20*time.Millisecond)
	defer cancel()
	if _, err := q.Enqueue(ctx, task); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, delayed.ErrUnknown) {
		t.Errorf("error %v, expected that of the context", err)
	}
	close(hang)
	if err := await(b, "the first call", first); err == nil || !strings.Contains(err.Error(), "NOPERM") ||
		!strings.Contains(err.Error(), "nothing was enqueued") {
		t.Errorf("error %v, expected NOPERM", err)
	}
	if n, err := b.q.Len(bg); n != 0 || err != nil {
		t.Errorf("%d tasks are pending, %v", n, err)
	}
}

// TestCheckedCallsRunAgain: other arguments of an archived task are compared as well.
func TestCheckedCallsRunAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publishes(b.work(b.config(), b.fn("f", func(int) {})), 1)
	err := b.checked(b.src).Ref("no-such-task").RunAgainWith(bg, delayed.NewGoTask(b.Name+".f", "seven"))
	if !errors.Is(err, delayed.ErrArguments) {
		t.Errorf("error %v, expected ErrArguments", err)
	}
}
