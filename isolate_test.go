//go:build linux

package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// The functions of children. Each has a name, because children and tests are the same binary.
var (
	errTransient = errors.New("transient")
	errExit      = errors.New("whoever is asked about it ends its goroutine")

	isolatedPid  = isolatedFunc("pid", os.Getpid)
	isolatedEcho = isolatedFunc("echo", func(ctx context.Context, text string) (string, error) {
		t := delayed.TaskFromContext(ctx)
		return strings.Join([]string{
			text, t.ID(), t.Queue(), strconv.Itoa(t.Attempt()), strconv.Itoa(t.MaxRetry()), t.Header("h"),
			fmt.Sprint(ctx.Value(middlewareKey{})),
		}, " "), nil
	}, delayed.MaxRetry(7), delayed.Middleware(func(next delayed.HandlerFunc) delayed.HandlerFunc {
		return func(ctx context.Context, t *delayed.Task) error {
			return next(context.WithValue(ctx, middlewareKey{}, fmt.Sprint(ctx.Value(middlewareKey{}))+"+"), t)
		}
	}))
	isolatedProgress = isolatedFunc("progress", func(ctx context.Context) error {
		if err := delayed.Progress(ctx, 1, 2, "half \xe9"+strings.Repeat(" ", 2<<20)); err != nil {
			return err
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	isolatedWait = isolatedFunc("wait", func(ctx context.Context) error {
		<-ctx.Done()
		return context.Cause(ctx)
	})
	isolatedSays = isolatedFunc("says", func(what string) error {
		switch what {
		case "discard":
			return delayed.Archive(errors.New("no use"))
		case "drop":
			return delayed.Drop(errors.New("whatever"))
		case "snooze":
			return delayed.Snooze(time.Hour)
		case "retry":
			return delayed.RetryIn(time.Hour, errors.New("later"))
		case "transient":
			return errTransient
		case "backoff exits":
			return errExit
		case "bytes":
			return delayed.Archive(errors.New("Latin-1: \xe9"))
		case "long":
			return delayed.Archive(errors.New(strings.Repeat("long ", 1<<20)))
		case "panic":
			panic("at the disco")
		case "goexit":
			runtime.Goexit()
		}
		return errors.New("failed")
	}, delayed.BackoffFunc(func(_ int, err error) time.Duration {
		if errors.Is(err, errTransient) {
			return 2 * time.Hour
		}
		if errors.Is(err, errExit) {
			runtime.Goexit()
		}
		return 3 * time.Hour
	}))
	// limited is not isolated. It says where it runs, and how much memory it may map.
	limited = delayed.Func(func() ([]int, error) {
		const rlimitData = 2
		var limit syscall.Rlimit
		err := syscall.Getrlimit(rlimitData, &limit)
		return []int{os.Getpid(), int(min(limit.Cur, math.MaxInt))}, err
	}, delayed.Name("isolated.limited"), delayed.KeepResult(time.Minute))
	isolatedDies = isolatedFunc("dies", func(how string) {
		switch how {
		case "exit":
			os.Exit(3)
		case "spin":
			spin()
		case "stop":
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			select {}
		case "segv":
			_ = syscall.Kill(os.Getpid(), syscall.SIGSEGV)
			select {}
		}
	}, delayed.MaxRetry(0))
)

var spun int

// spin never returns, and calls nothing.
func spin() {
	for n := 0; ; n++ {
		spun = n
	}
}

type middlewareKey struct{}

func isolatedFunc(name string, fn any, opts ...delayed.FuncOption) *delayed.Function {
	return delayed.Func(fn, append([]delayed.FuncOption{
		delayed.Name("isolated." + name), delayed.Isolated(), delayed.KeepResult(time.Minute),
	}, opts...)...)
}

// isolatedWorker makes the workers of tests and of their children.
func isolatedWorker(rdb *delayed.Store, cfg delayed.WorkerConfig) (*delayed.Worker, error) {
	cfg.IsFailure = func(err error) bool { return !errors.Is(err, errTransient) }
	w, err := delayed.NewWorker(rdb, cfg)
	if err != nil {
		return nil, err
	}
	return w, errors.Join(
		w.Register(isolatedNoop, isolatedPid, isolatedEcho, isolatedProgress, isolatedWait, isolatedSays, isolatedDies,
			limited),
		w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
			return func(ctx context.Context, t *delayed.Task) error {
				return next(context.WithValue(ctx, middlewareKey{}, "middleware"), t)
			}
		}))
}

func init() { childMain = func() { delayed.ChildMain(newChildWorker) } }

// newChildWorker makes the worker of a child.
func newChildWorker() (*delayed.Worker, error) {
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		return nil, err
	}
	return isolatedWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"any"}})
}

func (b *bench) workIsolated(change func(*delayed.WorkerConfig)) *started {
	b.T.Helper()
	cfg := b.config()
	cfg.Isolation.Grace = 50 * time.Millisecond
	if change != nil {
		change(&cfg)
	}
	w, err := isolatedWorker(b.rdb, cfg)
	b.Must(err)
	return b.start(w)
}

func TestIsolatedTask(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workIsolated(nil)
	pid, err := delayed.Await[int](t.Context(), b.delay(isolatedPid))
	if err != nil || pid == os.Getpid() || pid == 0 {
		t.Errorf("ran in process %d, %v", pid, err)
	}
	ref := b.delayWith(b.q.With(delayed.Header("h", "header")), isolatedEcho, "text")
	got, err := delayed.Await[string](t.Context(), ref)
	if want := "text " + ref.ID() + " " + b.Name + " 1 7 header middleware+"; err != nil || got != want {
		t.Errorf("found %q, %v; expected %q", got, err, want)
	}
	b.Idle()
	b.Check(redistest.Invariants{})
}

// What a handler says counts in the parent as if it had run there.
func TestIsolatedTaskSays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.workIsolated(nil)
	for _, test := range []struct {
		what   string
		state  state.Task
		reason state.Reason
		in     time.Duration // when it runs again
		text   string
	}{
		{"discard", state.Archived, "failed", 0, "no use"},
		{"drop", state.Dropped, "dropped", 0, "whatever"},
		{"snooze", state.Scheduled, "", time.Hour, ""},
		{"retry", state.Retry, "failed", time.Hour, "later"},
		{"bytes", state.Archived, "failed", 0, "Latin-1: \uFFFD"},
		{"long", state.Archived, "failed", 0, "long long"},
		{"transient", state.Retry, "not failed", 2 * time.Hour, "transient"},
		{"panic", state.Retry, "failed", 3 * time.Hour, "isolate_test.go"},
		{"goexit", state.Retry, "failed", 3 * time.Hour, "runtime.Goexit"},
		{"backoff exits", state.Retry, "failed", 0, "BackoffFunc) ended its goroutine by runtime.Goexit"},
		{"", state.Retry, "failed", 3 * time.Hour, "failed"},
	} {
		ref := b.delay(isolatedSays, test.what)
		var info delayed.TaskInfo
		b.Until(test.what+" has ended", func() bool {
			var err error
			info, err = ref.Info(t.Context())
			return err == nil && info.State == test.state
		})
		if !strings.Contains(info.Error, test.text) || test.reason != "" && info.Reason != test.reason {
			t.Errorf("%s: found %+v", test.what, info)
		}
		if in := info.Due.Sub(info.At); test.in > 0 && (in < test.in-time.Minute || in > test.in+time.Minute) {
			t.Errorf("%s: runs again in %v, expected %v", test.what, in, test.in)
		}
		if test.what == "panic" && !strings.Contains(info.Stack, "isolate_test.go") {
			t.Errorf("the stack of the panic is %q", info.Stack)
		}
	}
}

// A child that dies costs one attempt of its own task, and nobody else anything.
func TestIsolatedTaskDies(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var beside atomic.Int64
	w, err := isolatedWorker(b.rdb, func() delayed.WorkerConfig {
		cfg := b.config()
		cfg.Isolation.Grace = 50 * time.Millisecond
		return cfg
	}())
	b.Must(err)
	plain := b.fn("plain", func() { beside.Add(1) })
	b.Must(w.Register(plain))
	h := new(heard)
	b.Must(w.OnEvent(h.listen))
	b.start(w)
	for how, want := range map[string]string{
		"exit": "exit status 3", "segv": "SIGSEGV",
		"spin": "handler took longer than 100ms: delayed: child process died",
	} {
		if how == "spin" { // on another goroutine of the child than before
			_ = b.delayWith(b.q.With(delayed.MaxRetry(0), delayed.KeepResult(time.Hour)), isolatedSays,
				"goexit").Wait(t.Context())
		}
		ref := b.delayWith(b.q.With(delayed.Timeout(100*time.Millisecond)), isolatedDies, how)
		b.delay(plain)
		err := ref.Wait(t.Context())
		var failed *delayed.TaskError
		if !errors.As(err, &failed) || failed.State != state.Archived || failed.Deaths != 0 ||
			!strings.Contains(failed.Text, want) {
			t.Errorf("%s: found %+v", how, err)
		}
		info, err := ref.Info(t.Context())
		if b.Must(err); how == "spin" && !strings.Contains(info.Stack, "isolate_test.go") {
			t.Errorf("%s: the stack is %q", how, info.Stack)
		}
	}
	b.Until("the others have run", func() bool { return beside.Load() == 3 })
	for _, e := range h.of(event.TaskFailed) {
		if !errors.Is(e.Err, delayed.ErrChildDied) && !strings.Contains(e.Err.Error(), "Goexit") {
			t.Errorf("listeners get %v", e.Err)
		}
	}
	b.Idle()
}

func TestIsolatedTaskIsCanceled(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	w := b.workIsolated(func(cfg *delayed.WorkerConfig) {
		cfg.Grace = time.Second // one child uses a processor for as long
		cfg.Isolation.Grace = time.Minute
	})
	ref := b.delay(isolatedProgress)
	b.Until("it has reported", func() bool {
		done, total, note, err := ref.Progress(t.Context())
		return err == nil && done == 1 && total == 2 && strings.HasPrefix(note, "half \uFFFD")
	})
	b.Must(ref.Cancel(t.Context()))
	if err := ref.Wait(t.Context()); !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("found %v", err)
	}
	// A worker that stops gives back a task whose handler heeds its context, and those that do not, even SIGTERM.
	b.delay(isolatedWait)
	b.delay(isolatedDies, "spin")
	b.delay(isolatedDies, "stop")
	b.Until("all run", func() bool { return w.Status().Busy == 3 })
	w.mustStop()
	if n, err := b.q.Len(t.Context()); err != nil || n != 3 {
		t.Errorf("%d tasks are pending, %v", n, err)
	}
}

// A task whose worker has died runs in a child process, without the limits of isolated functions.
func TestSuspectsHaveNoLimits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	message, ref, _, err := delayed.Message(b.q, delayed.Call(limited), 1)
	b.Must(err)
	msg, err := parseForTest(string(message))
	b.Must(err)
	msg.Meta.Deaths, msg.Meta.DiedAt = 1, time.Now().UnixMilli()
	b.Do("RPUSH", b.Name, msg.Append(nil))
	b.workIsolated(func(cfg *delayed.WorkerConfig) { cfg.Isolation.Memory = 256 << 20 })
	found, err := delayed.Await[[]int](t.Context(), ref)
	if err != nil || len(found) != 2 || found[0] == os.Getpid() || found[1] != math.MaxInt {
		t.Errorf("process and limit: %d, %v; expected another than %d without a limit", found, err, os.Getpid())
	}
}

func TestIsolationOfQueuesAndAll(t *testing.T) {
	t.Parallel()
	for _, isolation := range []delayed.Isolation{{All: true}, {Queues: []string{""}}} {
		b := newBench(t)
		w := b.workIsolated(func(cfg *delayed.WorkerConfig) {
			if isolation.Queues != nil {
				isolation.Queues[0] = b.Name
			}
			cfg.Isolation = isolation
		})
		// It is registered here and not in the child: the error shows that it was called there.
		b.Must(w.Register(b.fn("here", func() {})))
		ref := b.delayWith(b.q.With(delayed.MaxRetry(0), delayed.KeepResult(time.Minute)), b.fn("here", func() {}))
		err := ref.Wait(t.Context())
		if err == nil || !strings.Contains(err.Error(), "not registered in the child process") {
			t.Errorf("found %v", err)
		}
	}
}

func TestIsolationSettings(t *testing.T) {
	b := newBench(t)
	for want, isolation := range map[string]delayed.Isolation{
		"64 MiB": {Memory: 1 << 20}, "CPU is -1s": {CPU: -time.Second}, "queue": {Queues: []string{"a b"}},
		"Idle": {Idle: -time.Second},
	} {
		cfg := b.config()
		cfg.Isolation = isolation
		if _, err := delayed.NewWorker(b.rdb, cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: found %v", isolation, err)
		}
	}
}

func TestChildMainWithoutWorker(t *testing.T) {
	defer func() {
		if p := recover(); p == nil || !strings.HasPrefix(fmt.Sprint(p), "delayed: ChildMain: expected a function") {
			t.Errorf("found the panic %v", p)
		}
	}()
	delayed.ChildMain(nil)
}

// A worker with a function that shall be isolated, in a program without ChildMain, does not run.
func TestIsolationWithoutChildMain(t *testing.T) {
	defer delayed.ForgetChildMain()()
	b := newBench(t)
	w, err := delayed.NewWorker(b.rdb, b.config())
	b.Must(err)
	b.Must(w.Register(isolatedPid))
	over, cancel := context.WithCancel(t.Context())
	cancel() // a worker that does run ends at once
	if err := w.Run(over); !errors.Is(err, delayed.ErrFunction) || !strings.Contains(err.Error(), "ChildMain") {
		t.Errorf("found %v", err)
	}
	cfg := b.config()
	cfg.Isolation.All = true
	w, err = delayed.NewWorker(b.rdb, cfg)
	b.Must(err)
	if err := w.Run(over); err == nil || !strings.Contains(err.Error(), "ChildMain") {
		t.Errorf("found %v", err)
	}
	if s := b.work(b.config()); errors.Is(s.Register(isolatedPid), nil) {
		t.Error("a running worker has taken an isolated function")
	}
}

// BenchmarkIsolated drains tasks that do nothing, in the worker and in child processes, and tells the processor time of
// both together; and it runs one at a time, which tells what a call costs in time.
func BenchmarkIsolated(b *testing.B) {
	for _, bench := range []struct {
		name  string
		fn    *delayed.Function
		alone bool
	}{
		{"plain", plainNoop, false},
		{"isolated", isolatedNoop, false},
		{"plain-alone", plainNoop, true},
		{"isolated-alone", isolatedNoop, true},
	} {
		b.Run(bench.name, func(b *testing.B) {
			h := newBench(b)
			cfg := h.config()
			cfg.Concurrency = 2
			if bench.alone {
				cfg.Concurrency = 1
			}
			w, err := isolatedWorker(h.rdb, cfg)
			h.Must(err)
			h.Must(w.Register(plainNoop))
			s := h.start(w)
			h.delay(bench.fn)
			h.Until("it has run", func() bool { return h.counters()["processed"] == 1 }) // the first child has started
			h.Must(h.q.Pause(b.Context()))
			var calls []*delayed.Task
			for range b.N {
				calls = append(calls, delayed.Call(bench.fn))
			}
			if _, err := h.q.DelayMany(b.Context(), calls...); err != nil {
				b.Fatal(err)
			}
			before := processorTime(b)
			b.ResetTimer()
			h.Must(h.q.Resume(b.Context()))
			h.Until("all have run", func() bool { return h.counters()["processed"] == b.N+1 })
			b.StopTimer()
			s.mustStop() // the children have ended, and count
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

var (
	plainNoop    = delayed.Func(func() error { return nil }, delayed.Name("plain.noop"))
	isolatedNoop = delayed.Func(func() error { return nil }, delayed.Name("isolated.noop"), delayed.Isolated())
)

// processorTime returns how much processor time this process and its children that have ended have used.
func processorTime(b *testing.B) (used time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if err := syscall.Getrusage(who, &u); err != nil {
			b.Fatal(err)
		}
		used += time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return used
}
