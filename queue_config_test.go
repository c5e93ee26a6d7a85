package delayed_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/rediscluster"
	"github.com/godelayed/delayed/state"
)

// aroundQueue opens the queue of b with Around, and Inject that takes its header from the context.
func (b *bench) aroundQueue(
	around func(context.Context, []*delayed.Task, func(context.Context) ([]*delayed.Ref, error)),
) *delayed.Queue {
	b.T.Helper()
	q, err := delayed.OpenQueue(b.Name, b.rdb, delayed.QueueConfig{
		Around: around,
		Inject: func(ctx context.Context) map[string]string {
			trace, _ := ctx.Value(traceKey{}).(string)
			return map[string]string{"trace": trace}
		},
	})
	b.Must(err)
	return q
}

// TestAround: it learns the tasks and how each call has gone, and gives Inject a context.
func TestAround(t *testing.T) {
	b := newBench(t)
	var seen []string
	q := b.aroundQueue(func(
		ctx context.Context, tasks []*delayed.Task, enqueue func(context.Context) ([]*delayed.Ref, error),
	) {
		refs, err := enqueue(context.WithValue(ctx, traceKey{}, fmt.Sprint("call ", len(seen))))
		var names []string
		for i, t := range tasks {
			names = append(names, t.Path()[strings.LastIndexByte(t.Path(), '.')+1:])
			if i < len(refs) && refs[i].ID() == "" {
				b.T.Errorf("%v has no id", t)
			}
		}
		seen = append(seen, fmt.Sprint(names, " ", len(refs), err == nil, errors.Is(err, delayed.ErrDuplicate)))
		clear(refs) // is Around's own
	})
	first, err := q.DelayContext(t.Context(), plainForTest, 1)
	b.Must(err)
	_, err = q.With(delayed.TaskID("again")).Delay(plainForTest, 2)
	b.Must(err)
	_, err = q.With(delayed.TaskID("again")).Enqueue(t.Context(), delayed.Call(plainForTest, 3))
	if duplicate := new(delayed.DuplicateError); !errors.As(err, &duplicate) || duplicate.ID != "again" {
		t.Errorf("the second task with an id: %v", err)
	}
	refs, err := q.DelayMany(t.Context(), delayed.Call(plainForTest, 4), delayed.NewPyTask("m:f.g", nil, nil))
	b.Must(err)
	if len(refs) != 2 || refs[0] == nil || refs[1] == nil {
		t.Errorf("DelayMany returned %v", refs)
	}
	for name, try := range map[string]func() error{
		"Delay": func() error { _, err := q.Delay(plainForTest, "x"); return err },
		"DelayMany": func() error {
			_, err := q.DelayMany(t.Context(), delayed.Call(plainForTest, 1), delayed.Call(plainForTest, "x"))
			return err
		},
	} {
		if err := try(); !errors.Is(err, delayed.ErrArguments) {
			t.Errorf("%s with wrong arguments: %v", name, err)
		}
	}
	want := []string{
		"[plainForTest] 1 true false", "[plainForTest] 1 true false", "[plainForTest] 0 false true",
		"[plainForTest g] 2 true false",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("Around saw\n%q, expected\n%q", seen, want)
	}
	pending := b.pending()
	if pending[0].Meta.ID != first.ID() {
		t.Errorf("the first task is %q, its Ref %q", pending[0].Meta.ID, first.ID())
	}
	for i, call := range []int{0, 1, 3, 3} {
		if got, want := headersOf(&pending[i]), fmt.Sprint("call ", call); got["trace"] != want {
			t.Errorf("message %d: expected the header %q, found %q", i, want, got)
		}
	}
	if len(pending) != 4 {
		t.Errorf("%d tasks are pending", len(pending))
	}
}

// TestAroundKeepsTasks: what Around has got is not changed by later calls, although they use memory again.
func TestAroundKeepsTasks(t *testing.T) {
	b := newBench(t)
	var kept []*delayed.Task
	q := b.aroundQueue(func(
		ctx context.Context, tasks []*delayed.Task, enqueue func(context.Context) ([]*delayed.Ref, error),
	) {
		kept = append(kept, tasks...)
		_, _ = enqueue(ctx)
	})
	for i := range 20 {
		b.delayWith(q, plainForTest, i)
	}
	_, err := b.q.DelayMany(t.Context(), kept...)
	b.Must(err)
	pending := b.pending()
	for i := range 20 {
		if a, b := pending[i].Payload, pending[20+i].Payload; string(a) != string(b) {
			t.Errorf("task %d had the arguments %x, and has %x", i, a, b)
		}
	}
}

// TestAroundThatDoesNotEnqueueOnce: the call is an error, and nothing is enqueued twice.
func TestAroundThatDoesNotEnqueueOnce(t *testing.T) {
	b := newBench(t)
	var second error
	for name, test := range map[string]struct {
		around func(context.Context, func(context.Context) ([]*delayed.Ref, error))
		says   string
	}{
		"never": {
			func(context.Context, func(context.Context) ([]*delayed.Ref, error)) {},
			"QueueConfig.Around did not enqueue",
		},
		"without a context": {
			func(_ context.Context, enqueue func(context.Context) ([]*delayed.Ref, error)) {
				_, _ = enqueue(nil) //nolint:contextcheck // what the test is about
			}, "context is nil",
		},
		"twice": {
			func(ctx context.Context, enqueue func(context.Context) ([]*delayed.Ref, error)) {
				_, _ = enqueue(ctx)
				_, second = enqueue(ctx)
			}, "",
		},
	} {
		q := b.aroundQueue(func(
			ctx context.Context, _ []*delayed.Task, enqueue func(context.Context) ([]*delayed.Ref, error),
		) {
			test.around(ctx, enqueue)
		})
		_, err := q.Delay(plainForTest, 1)
		_, many := q.DelayMany(t.Context(), delayed.Call(plainForTest, 1))
		if test.says == "" {
			b.Must(err)
			b.Must(many)
			continue
		}
		if err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: expected %q, found %v", name, test.says, err)
		}
		if batch := new(delayed.BatchError); !errors.As(many, &batch) || batch.Sent != 0 {
			t.Errorf("%s: DelayMany: expected a *BatchError, found %v", name, many)
		}
	}
	if second == nil || !strings.Contains(second.Error(), "a second time") {
		t.Errorf("the second call of enqueue: %v", second)
	}
	if n := len(b.pending()); n != 2 {
		t.Errorf("%d tasks are pending, expected 2", n)
	}
}

// checked returns the bench's queue with QueueConfig.Check, over a handle of its own, which remembers nothing.
func (b *bench) checked(src delayed.Source) *delayed.Queue {
	b.T.Helper()
	q, err := delayed.OpenQueue(b.Name, delayed.FromSource(src), delayed.QueueConfig{Check: true})
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
			q, err := delayed.OpenQueue(b.Name, rdb, delayed.QueueConfig{Check: true})
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

// replicated starts a master with the given arguments, and a replica that is up to date.
func replicated(t testing.TB, args ...string) (master, replica *redistest.Server) {
	t.Helper()
	master = redistest.Start(t, append(args, "--repl-diskless-sync-delay", "0")...)
	host, port, _ := strings.Cut(master.Addr(), ":")
	replica = redistest.Start(t, "--replicaof", host, port)
	for deadline := time.Now().Add(20 * time.Second); ; <-time.After(2 * time.Millisecond) {
		info, err := redis.String(master.Do(t, "INFO", "replication"), nil)
		if err == nil && strings.Contains(info, "state=online") {
			return master, replica
		}
		if time.Now().After(deadline) {
			t.Fatalf("the replica does not follow: %v\n%s", err, info)
		}
	}
}

func TestWaitForReplicas(t *testing.T) {
	t.Parallel()
	background := context.Background() //nolint:usetesting // cannot end: such calls go another way
	master, replica := replicated(t)
	rdb, err := delayed.Dial(master.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q, err := delayed.OpenQueue("mail", rdb, delayed.QueueConfig{WaitReplicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	call := func() *delayed.Task { return delayed.NewGoTask("example.com/app/mail.Welcome") }

	for name, enqueue := range map[string]func(ctx context.Context) error{
		"Enqueue": func(ctx context.Context) error { _, err := q.Enqueue(ctx, call()); return err },
		"DelayMany": func(ctx context.Context) error {
			_, err := q.DelayMany(ctx, call(), call())
			return err
		},
		"In": func(ctx context.Context) error {
			_, err := q.With(delayed.In(time.Hour)).Enqueue(ctx, call())
			return err
		},
		"TaskID": func(ctx context.Context) error {
			_, err := q.With(delayed.TaskID("welcome")).Enqueue(ctx, call())
			return err
		},
		"Group": func(ctx context.Context) error {
			_, err := q.With(delayed.Group("g")).Enqueue(ctx,
				delayed.NewGoTask("example.com/app/search.Index", []int{1}))
			return err
		},
	} {
		for _, ctx := range []context.Context{background, t.Context()} {
			master.FlushScripts(t)
			before := master.CommandStats(t)
			if err := enqueue(ctx); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			// One WAIT goes with EVALSHA, which finds no script, and one with EVAL.
			if n := master.CommandStats(t).Since(before)["wait"]; n != 2 {
				t.Errorf("%s: Redis was asked to wait %d times, expected 2", name, n)
			}
			if n, err := redis.Int(replica.Do(t, "EXISTS", "mail", "mail_tasks", "mail_groups"), nil); n == 0 ||
				err != nil {
				t.Errorf("%s: the replica has nothing, %v", name, err)
			}
			master.Do(t, "FLUSHALL")
		}
	}

	// Tasks that are sent together wait together.
	const callers, each = 32, 20
	before := master.CommandStats(t)
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range each {
				if _, err := q.Enqueue(background, call()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := master.CommandStats(t).Since(before)["wait"]; n < 1 || n >= callers*each {
		t.Errorf("Redis was asked to wait %d times for %d tasks of %d callers", n, callers*each, callers)
	}

	replica.Pause(t)
	defer replica.Resume(t)
	pending := redisInt(t, master, "LLEN", "mail")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = q.Enqueue(ctx, call())
	if !errors.Is(err, delayed.ErrUnknown) || !strings.Contains(err.Error(), "0 of 1 replicas") {
		t.Errorf("with a frozen replica: expected ErrUnknown and 0 of 1 replicas, found %v", err)
	}
	if n := redisInt(t, master, "LLEN", "mail"); n != pending+1 {
		t.Errorf("%d tasks are pending, expected %d: it was enqueued", n, pending+1)
	}
	// A caller that does not ask for replicas waits neither for them nor for those who do.
	if _, err := delayed.NewQueue("mail", rdb).Enqueue(t.Context(), call()); err != nil {
		t.Errorf("without WaitReplicas: %v", err)
	}
}

// TestWaitRefused: if the server refuses WAIT, the producer does not report the task as safe.
func TestWaitRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do(t, "ACL", "SETUSER", "default", "-wait")
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q, err := delayed.OpenQueue("mail", rdb, delayed.QueueConfig{WaitReplicas: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = q.Enqueue(t.Context(), delayed.NewGoTask("example.com/app/mail.Welcome"))
	if !errors.Is(err, delayed.ErrUnknown) || !strings.Contains(err.Error(), "NOPERM") {
		t.Errorf("expected ErrUnknown and NOPERM, found %v", err)
	}
	if _, err := delayed.OpenQueue("mail", rdb, delayed.QueueConfig{WaitReplicas: -1}); err == nil ||
		!strings.Contains(err.Error(), "WaitReplicas is -1") {
		t.Errorf("WaitReplicas: -1: %v", err)
	}
}

func redisInt(t *testing.T, s *redistest.Server, cmd string, args ...any) int {
	t.Helper()
	n, err := redis.Int(s.Do(t, cmd, args...), nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

type (
	structInner struct {
		B int
		A string `msgpack:"a"`
	}
	structOuter struct {
		In   structInner
		List []*structInner
		Any  any
		At   time.Time
		Raw  []byte
	}
)

var structArg = structOuter{
	In: structInner{1, "x"}, List: []*structInner{{2, "y"}, nil}, Any: structInner{3, "z"}, At: time.Unix(1, 0).UTC(),
	Raw: []byte{7},
}

// structArg in messages, by name and by position.
var (
	structByName = wireDict{
		{K: "In", V: wireDict{{K: "B", V: 1}, {K: "a", V: "x"}}},
		{K: "List", V: wireList{wireDict{{K: "B", V: 2}, {K: "a", V: "y"}}, nil}},
		{K: "Any", V: wireDict{{K: "B", V: 3}, {K: "a", V: "z"}}},
		{K: "At", V: time.Unix(1, 0)},
		{K: "Raw", V: []byte{7}},
	}
	structByPosition = wireList{
		wireList{1, "x"}, wireList{wireList{2, "y"}, nil}, wireList{3, "z"}, time.Unix(1, 0), []byte{7},
	}
)

// Each way of enqueueing a call writes structs by name, at every depth, and by position on legacy queues.
func TestStructsGoByNameExceptOnLegacyQueues(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int, structOuter) {})
	for _, c := range []struct {
		legacy bool
		want   any
	}{{false, structByName}, {true, structByPosition}} {
		q, err := delayed.OpenQueue(b.Name, sharing(b.rdb, c.legacy), delayed.QueueConfig{})
		if err != nil {
			t.Fatal(err)
		}
		list := packed(wireList{1, c.want})
		call, byPath := delayed.Call(f, 1, structArg), delayed.NewGoTask(b.Name+".f", 1, structArg)
		py := delayed.NewPyTask("m:f", []any{1, structArg}, map[string]any{"k": structArg})
		for name, enqueue := range map[string]func(q *delayed.Queue) error{
			"Delay":     func(q *delayed.Queue) error { _, err := q.Delay(f, 1, structArg); return err },
			"Enqueue":   func(q *delayed.Queue) error { _, err := q.Enqueue(t.Context(), call); return err },
			"DelayMany": func(q *delayed.Queue) error { _, err := q.DelayMany(t.Context(), call); return err },
			"NewGoTask": func(q *delayed.Queue) error { _, err := q.Enqueue(t.Context(), byPath); return err },
			"with options": func(q *delayed.Queue) error {
				_, err := q.With(delayed.Timeout(time.Hour)).Enqueue(t.Context(), call)
				return err
			},
		} {
			if err := enqueue(q); err != nil {
				t.Fatal(name, err)
			}
			if m := b.take(); !bytes.Equal(m.Payload, list) {
				t.Errorf("%s, legacy %v: payload %x, expected %x", name, c.legacy, m.Payload, list)
			}
		}
		if _, err := q.Enqueue(t.Context(), py); err != nil {
			t.Fatal(err)
		}
		kwargs := packed(wireDict{{K: "k", V: c.want}})
		if m := b.take(); !bytes.Equal(m.Args(), list) || !bytes.Equal(m.Kwargs(), kwargs) {
			t.Errorf("Python, legacy %v: %x and %x, expected %x and %x", c.legacy, m.Args(), m.Kwargs(), list, kwargs)
		}

		// Equal calls have one lock, however they are enqueued.
		unique := q.With(delayed.Unique(time.Hour))
		if _, err := unique.Delay(f, 1, structArg); err != nil {
			t.Fatal(err)
		}
		if _, err := unique.Enqueue(t.Context(), call); err == nil {
			t.Errorf("legacy %v: Delay and Call of the same arguments have different locks", c.legacy)
		}
		b.Do("DEL", b.Name, b.Name+"_noti", b.Name+"_locks")

		// A periodic entry that code declares uses the form of its queue.
		s, err := delayed.NewScheduler(sharing(b.rdb, c.legacy), delayed.SchedulerConfig{
			Queue: b.Name, Owner: "test", Logger: b.log.Logger(),
			Entries: []delayed.Entry{{Name: "e", Spec: "@hourly", Task: call}},
		})
		b.Must(err)
		b.Must(delayed.Declare(bg, s))
		if msg := parsed(t, b.definition("e").Message); !bytes.Equal(msg.Payload, list) {
			t.Errorf("periodic, legacy %v: payload %x, expected %x", c.legacy, msg.Payload, list)
		}
		b.Must(q.Periodic().Remove(bg, "e"))

		// Other arguments for an archived task use it as well.
		b.archive(1)
		page, _, err := q.Archived(t.Context(), 0, 1)
		if err != nil || len(page) != 1 {
			t.Fatal(page, err)
		}
		again := delayed.NewGoTask(page[0].Function, 1, structArg)
		if err := q.Ref(page[0].ID).RunAgainWith(t.Context(), again); err != nil {
			t.Fatal(err)
		}
		if m := b.take(); !bytes.Equal(m.Payload, list) {
			t.Errorf("RunAgainWith, legacy %v: payload %x, expected %x", c.legacy, m.Payload, list)
		}
	}
}

// take removes and returns the only pending message.
func (b *bench) take() wire.Message {
	b.T.Helper()
	list := b.List("")
	if len(list) != 1 {
		b.T.Fatalf("expected one pending message, found %q", list)
	}
	b.Do("DEL", b.Name, b.Name+"_noti")
	m, err := wire.Parse([]byte(list[0]), wire.Default)
	if err != nil {
		b.T.Fatalf("%s: %v", hex.EncodeToString([]byte(list[0])), err)
	}
	return m
}

type (
	wireDict []wirePair // a map on the wire
	wireList []any      // an array on the wire
	wirePair struct{ K, V any }
)

// packed encodes a value without the codecs under test.
func packed(v any) []byte { return appendPacked(nil, v) }

func appendPacked(b []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return wire.AppendNil(b)
	case bool:
		return wire.AppendBool(b, v)
	case int:
		return wire.AppendInt(b, int64(v))
	case uint64:
		return wire.AppendUint(b, v)
	case float64:
		return wire.AppendFloat64(b, v)
	case string:
		return wire.AppendString(b, v)
	case []byte:
		return wire.AppendBin(b, v)
	case time.Time:
		return wire.AppendTime(b, v)
	case wireList:
		b = wire.AppendArrayHeader(b, len(v))
		for _, x := range v {
			b = appendPacked(b, x)
		}
		return b
	case wireDict:
		b = wire.AppendMapHeader(b, len(v))
		for _, x := range v {
			b = appendPacked(appendPacked(b, x.K), x.V)
		}
		return b
	default:
		panic(fmt.Sprintf("pack cannot write a %T", v))
	}
}

// goldenCall is an entry of testdata/wire/calls.json; README.md there describes the fields.
type goldenCall struct {
	Name, Path, ID, Lock, Group, Hex string
	Extended                         bool
	Args, Kwargs                     any
	Options                          map[string]any
	List                             []int
}

// Calls with options give the messages, locks and groups of the vectors, with which Python's producer is tested as
// well.
func TestGoldenCalls(t *testing.T) {
	raw, err := os.ReadFile("testdata/wire/calls.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Now     int64
		Vectors []goldenCall
	}
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Vectors) < 30 {
		t.Fatalf("only %d vectors", len(doc.Vectors))
	}
	for _, v := range doc.Vectors {
		t.Run(v.Name, func(t *testing.T) { v.check(t, doc.Now) })
	}
}

func (v *goldenCall) check(t *testing.T, now int64) {
	t.Helper()
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	legacy := strings.Contains(v.Path, ":") && !v.Extended
	q, err := delayed.OpenQueue("golden", sharing(rdb, legacy), delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	args := goldenAs[[]any](t, plainJSON(t, v.Args))
	task := delayed.NewGoTask(v.Path, args...)
	if strings.Contains(v.Path, ":") {
		kwargs, _ := plainJSON(t, v.Kwargs).(map[string]any)
		task = delayed.NewPyTask(v.Path, args, kwargs)
	}
	b, _, lock, err := delayed.Message(q.With(goldenOptions(t, v.Options)...), task, now)
	if err != nil {
		t.Fatal(err)
	}
	if lock != v.Lock {
		t.Errorf("lock %q, expected %q", lock, v.Lock)
	}
	msg, err := wire.Parse(b, wire.Default)
	if err != nil {
		t.Fatal(err)
	}
	if msg.Meta.ID != "" { // a random id
		msg.Meta.ID = v.ID
	}
	if msg.Kind == wire.PyExtended { // Go need not count arguments with names
		kwargs, _ := v.Kwargs.(map[string]any)
		msg.Meta.HasN, msg.Meta.N = true, len(args)+len(kwargs)
	}
	b = msg.Append(nil)
	if got := hex.EncodeToString(b); got != v.Hex {
		t.Errorf("message\n%s, expected\n%s", got, v.Hex)
	}
	if v.Group == "" {
		return
	}
	m, err := group.NewMember(b)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(m.Group, m.Bytes, m.Values); got != fmt.Sprint(v.Group, v.List[0], v.List[1]) {
		t.Errorf("group %s, expected %s %v", got, v.Group, v.List)
	}
}

// goldenOptions are options by the names that Python gives them. Durations are in seconds.
func goldenOptions(t *testing.T, given map[string]any) (options []delayed.Option) {
	t.Helper()
	number := func(v any) float64 {
		f, err := goldenAs[json.Number](t, v).Float64()
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	span := func(name string) time.Duration {
		return time.Duration(math.Round(number(given[name])*1e6)) * time.Microsecond
	}
	var gather delayed.GatherPolicy
	for name, value := range given {
		switch name {
		case "retry":
			options = append(options, delayed.MaxRetry(int(number(value))))
		case "timeout":
			options = append(options, delayed.Timeout(span(name)))
		case "deadline":
			options = append(options, delayed.Deadline(goldenAs[time.Time](t, plainJSON(t, value))))
		case "ttl":
			options = append(options, delayed.TTL(span(name)))
		case "retention":
			options = append(options, delayed.Retention(span(name)))
		case "keep_result":
			options = append(options, delayed.KeepResult(span(name)))
		case "retry_until":
			options = append(options, delayed.RetryUntil(goldenAs[time.Time](t, plainJSON(t, value))))
		case "max_backoff":
			options = append(options, delayed.MaxBackoff(span(name)))
		case "backoff":
			var waits []time.Duration
			for _, w := range goldenAs[[]any](t, value) {
				waits = append(waits, time.Duration(number(w)*1e9))
			}
			options = append(options, delayed.Backoff(waits...))
		case "headers":
			for key, text := range goldenAs[map[string]any](t, value) {
				options = append(options, delayed.Header(key, fmt.Sprint(text)))
			}
		case "task_id":
			options = append(options, delayed.TaskID(fmt.Sprint(value)))
		case "unique":
			if key, ok := given["unique_key"]; ok {
				options = append(options, delayed.UniqueKey(fmt.Sprint(key), span(name)))
			} else {
				options = append(options, delayed.Unique(span(name)))
			}
		case "until_start":
			options = append(options, delayed.UntilStart())
		case "on_conflict":
			options = append(options,
				delayed.OnConflict(map[any]delayed.Conflict{
					"error": delayed.ConflictFail, "skip": delayed.ConflictSkip,
					"replace": delayed.ConflictReplace,
				}[value]))
		case "debounce":
			options = append(options, delayed.Debounce(span(name)))
		case "group":
			options = append(options, delayed.Group(fmt.Sprint(value)))
		case "group_grace":
			gather.Grace = span(name)
		case "group_max_delay":
			gather.MaxDelay = span(name)
		case "group_max_size":
			gather.MaxSize = int(number(value))
		case "unique_key":
		default:
			t.Fatalf("unknown option %q", name)
		}
	}
	if given["group"] != nil {
		options = append(options, delayed.Gather(gather))
	}
	return options
}

// goldenAs returns v as a T.
func goldenAs[T any](t *testing.T, v any) T {
	t.Helper()
	x, ok := v.(T)
	if !ok {
		t.Fatalf("%v is a %T, expected a %T", v, v, x)
	}
	return x
}

// plainJSON turns a value in the notation of testdata/wire/README.md into one of Go.
func plainJSON(t *testing.T, v any) any {
	t.Helper()
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, err := v.Float64()
		if err != nil {
			t.Fatal(err)
		}
		return f
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plainJSON(t, v[i])
		}
		return out
	case map[string]any:
		if text, ok := v["$bin"].(string); ok {
			b, err := hex.DecodeString(text)
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		if parts, ok := plainJSON(t, v["$time"]).([]any); ok {
			return time.Unix(goldenAs[int64](t, parts[0]), goldenAs[int64](t, parts[1])).UTC()
		}
		if pairs, ok := plainJSON(t, v["$map"]).([]any); ok {
			out := map[any]any{}
			for _, pair := range pairs {
				kv := goldenAs[[]any](t, pair)
				out[kv[0]] = kv[1]
			}
			return out
		}
		out := map[string]any{}
		for key, e := range v {
			out[key] = plainJSON(t, e)
		}
		return out
	}
	return v
}

// TestNamesInACluster: a name whose keys would be in several slots is refused, and the error proposes one that works.
func TestNamesInACluster(t *testing.T) {
	cluster, err := rediscluster.Dial("redis://127.0.0.1:1") // never connects
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	for _, c := range []struct{ prefix, name, want string }{
		{"", "mail", `name it "{mail}"`},
		{"", "{}mail", `name it "{mail}"`},
		{"", "mail}", `name it "{mail}"`},
		{"", "{mail", `name it "{mail}"`},
		{"", "{}", "choose another prefix"},
		{
			"app:", "mail",
			`behind the key prefix "app:" has no tag: all keys of a queue are in one slot of a Redis Cluster ` +
				`because of a {tag} in its name: name it "{mail}"`,
		},
		{"{}", "{mail}", "choose another prefix"},
		{"", "{mail}", ""},
		{"", "{mail}:low", ""},
		{"", "app{mail}", ""},
		{"app:", "{mail}", ""},
		{"{app}:", "mail", ""},
	} {
		rdb := cluster.WithPrefix(c.prefix)
		for where, open := range map[string]func() error{
			"OpenQueue": func() error {
				_, err := delayed.OpenQueue(c.name, rdb, delayed.QueueConfig{})
				return err
			},
			"NewWorker": func() error {
				_, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{c.name}})
				return err
			},
			"NewSweeper": func() error {
				_, err := delayed.NewSweeper(rdb, delayed.SweeperConfig{Queues: []string{c.name}})
				return err
			},
			"NewScheduler": func() error {
				_, err := delayed.NewScheduler(rdb, delayed.SchedulerConfig{Queue: c.name})
				return err
			},
		} {
			err := open()
			if c.want == "" && err != nil || c.want != "" &&
				(err == nil || !strings.HasPrefix(err.Error(), "delayed: ") || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %q behind %q: found %v, expected %q", where, c.name, c.prefix, err, c.want)
			}
		}
	}
}

// TestTextsOfHandles: how queues and tasks look in a log.
func TestTextsOfHandles(t *testing.T) {
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	q := delayed.NewQueue("mail", rdb)
	for _, c := range []struct {
		value any
		want  string
	}{
		{q, "queue mail"},
		{delayed.NewQueue("mail", rdb.WithPrefix("app:")).With(delayed.Header("token", "hunter2")), "queue app:mail"},
		{(*delayed.Queue)(nil), "no queue"},
		{&delayed.Queue{}, "no queue"},
		{delayed.Call(wrongText, "hunter2"), "task github.com/godelayed/delayed_test.wrongText (1 argument)"},
		{delayed.Call(wrongList, "hunter2", 1, 2), "task github.com/godelayed/delayed_test.wrongList (3 arguments)"},
		{delayed.NewGoTask("app/mail.Send"), "task app/mail.Send (0 arguments)"},
		{
			delayed.NewPyTask("mail:send", []any{"hunter2"}, map[string]any{"key": "hunter2"}),
			"task mail:send (2 arguments)",
		},
		{delayed.Call(wrongText, 1), "task that was not built"},
		{&delayed.Task{}, "task that was not built"},
		{(*delayed.Task)(nil), "no task"},
		{(*delayed.Ref)(nil), "no task"},
		{q.Ref("x"), "mail/x"},
		{state.Worker(9), "state.Worker(9)"},
		{state.Worker(-1), "state.Worker(-1)"},
		{state.Task(99), "state.Task(99)"},
		{event.Kind(99), "unknown event"},
		{delayed.Conflict(9), "Conflict(9)"},
		{delayed.Overlap(9), "Overlap(9)"},
	} {
		if got := fmt.Sprint(c.value); got != c.want {
			t.Errorf("found %q, expected %q", got, c.want)
		}
		if _, ok := c.value.(fmt.GoStringer); ok && fmt.Sprintf("%#v", c.value) != c.want {
			t.Errorf("found %#v, expected %q", c.value, c.want)
		}
	}
}
