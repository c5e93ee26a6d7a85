package typed_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/typed"
)

func TestMain(m *testing.M) {
	redistest.SideBySide()
	os.Exit(redistest.Main(m))
}

// bench has a queue of its own.
type bench struct {
	*redistest.Bench
	rdb *delayed.Store
	q   *delayed.Queue
}

func newBench(t *testing.T) *bench {
	t.Helper()
	server, log := redistest.Shared(t), new(redistest.Log)
	b := &bench{Bench: redistest.NewBench(t, server)}
	b.Log = log
	rdb, err := delayed.Dial(server.URL())
	b.Must(err)
	t.Cleanup(func() { rdb.Close() })
	b.rdb, b.q = rdb, delayed.NewQueue(b.Name, rdb)
	return b
}

// worker returns a worker of the queue that has registered functions.
func (b *bench) worker(fns ...any) (*delayed.Worker, error) {
	b.T.Helper()
	w, err := delayed.NewWorker(b.rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{b.Name}, Concurrency: 4, Grace: 5 * time.Second, CancelGrace: time.Second,
		Logger: b.Log.(*redistest.Log).Logger(), //nolint:errcheck // newBench has set it
	})
	b.Must(err)
	return w, w.Register(fns...)
}

// work runs a worker of the queue until the test ends.
func (b *bench) work(fns ...any) {
	b.T.Helper()
	w, err := b.worker(fns...)
	b.Must(err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	b.T.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.T.Errorf("worker: %v", err)
		}
	})
}

func second[T any](_ T, err error) error { return err }

func typed0(context.Context) error { return nil }

func typed1(_ context.Context, n int) error {
	if n < 0 {
		return delayed.Archive(errors.New("negative"))
	}
	return nil
}

func typed2(context.Context, int, string) error                 { return nil }
func typed3(context.Context, int, string, bool) error           { return nil }
func typed4(context.Context, int, string, bool, []string) error { return nil }

func result0(context.Context) (string, error)                    { return "0", nil }
func result1(_ context.Context, a int) (int, error)              { return a + 1, nil }
func result2(_ context.Context, a int, b string) (string, error) { return fmt.Sprint(a, b), nil }
func result3(_ context.Context, a, b, c int) ([]int, error)      { return []int{a, b, c}, nil }
func result4(_ context.Context, a, b, c, d int) (map[string]int, error) {
	return map[string]int{"sum": a + b + c + d}, nil
}

// Calls of typed functions are those of Queue.Delay, and their results have the type that the function returns.
func TestTypedFunctions(t *testing.T) {
	b := newBench(t)
	name := func(what string) delayed.FuncOption { return delayed.Name(b.Name + "." + what) }
	f0, f1 := typed.Func0(typed0, name("f0")), typed.Func1(typed1, name("f1"))
	f2 := typed.Func2(typed2, name("f2"))
	f3, f4 := typed.Func3(typed3, name("f3")), typed.Func4(typed4, name("f4"))
	r0, r1 := typed.ResultFunc0(result0, name("r0")), typed.ResultFunc1(result1, name("r1"))
	r2, r3 := typed.ResultFunc2(result2, name("r2")), typed.ResultFunc3(result3, name("r3"))
	r4 := typed.ResultFunc4(result4, name("r4"))
	b.work(f0, f1, f2, f3, f4, r0, r1, r2, r3, r4)
	q, ctx := b.q.With(delayed.KeepResult(time.Minute)), t.Context()
	ref := func(ref *delayed.Ref, err error) *delayed.Ref {
		t.Helper()
		b.Must(err)
		return ref
	}
	for i, err := range []error{
		second(f0.Await(ctx, ref(f0.Delay(q)))), second(f1.Await(ctx, ref(f1.Delay(q, 1)))),
		second(f2.Await(ctx, ref(f2.Delay(q, 1, "a")))),
		second(f3.Await(ctx, ref(f3.DelayContext(ctx, q, 1, "a", true)))),
		second(f4.Await(ctx, ref(f4.DelayContext(ctx, q, 1, "a", true, nil)))),
	} {
		if err != nil {
			t.Errorf("function %d: %v", i, err)
		}
	}
	if _, err := f1.Await(ctx, ref(f1.Delay(q, -1))); err == nil || !strings.Contains(err.Error(), "negative") {
		t.Errorf("found %v", err)
	}
	refs, err := q.DelayMany(ctx, r0.Call(), r1.Call(1), r2.Call(2, "b"), r3.Call(1, 2, 3), r4.Call(1, 2, 3, 4),
		f0.Call(), f1.Call(1), f2.Call(1, "a"), f3.Call(1, "a", true), f4.Call(1, "a", true, nil))
	b.Must(err)
	a0, err0 := r0.Await(ctx, refs[0])
	a1, err1 := r1.Await(ctx, refs[1])
	a2, err2 := r2.Await(ctx, refs[2])
	a3, err3 := r3.Await(ctx, refs[3])
	a4, err4 := r4.Await(ctx, refs[4])
	if err := errors.Join(err0, err1, err2, err3, err4); err != nil || a0 != "0" || a1 != 2 || a2 != "2b" ||
		len(a3) != 3 || a4["sum"] != 10 {
		t.Errorf("found %v, %v, %v, %v, %v, %v", a0, a1, a2, a3, a4, err)
	}
	for _, delay := range []func() (*delayed.Ref, error){
		func() (*delayed.Ref, error) { return r0.Delay(q) },
		func() (*delayed.Ref, error) { return r1.DelayContext(ctx, q, 1) },
		func() (*delayed.Ref, error) { return r2.DelayContext(ctx, q, 1, "a") },
		func() (*delayed.Ref, error) { return r3.Delay(q, 1, 2, 3) },
		func() (*delayed.Ref, error) { return r4.Delay(q, 1, 2, 3, 4) },
		func() (*delayed.Ref, error) { return f0.DelayContext(ctx, q) },
	} {
		b.Must(ref(delay()).Wait(ctx))
	}
	b.Idle()
	b.Check(redistest.Invariants{})
}

// literal returns a function without a name in a way that delayedvet does not see.
func literal() func(context.Context) error { return func(context.Context) error { return nil } }

// What is wrong with a typed function is an error of Delay and Register.
func TestTypedFunctionThatIsWrong(t *testing.T) {
	b := newBench(t)
	register := func(fn any) error { return second(b.worker(fn)) }
	closure := typed.Func0(literal())
	var zero typed.Function1[int, string]
	for what, err := range map[string]error{
		"closure without a name": second(closure.Delay(b.q)), "zero value": second(zero.Delay(b.q, 1)),
		"registered closure": register(closure), "registered zero value": register(zero),
		"Func of a typed function": register(delayed.Func(any(closure))),
	} {
		if !errors.Is(err, delayed.ErrFunction) {
			t.Errorf("%s: found %v", what, err)
		}
	}
}
