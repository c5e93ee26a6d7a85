package delayed_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/seam"
)

const testPath = "github.com/godelayed/delayed_test."

func fnCtxTwo(context.Context, int64, string) error { return nil }

func fnTwo(int64, string) {}

func fnNone() {}

func TestFuncOptions(t *testing.T) {
	for _, tt := range []struct {
		opts    []delayed.FuncOption
		path    string
		aliases string
		retries int // negative: the worker decides
	}{
		{
			[]delayed.FuncOption{delayed.Alias("old.A"), delayed.MaxRetry(5), delayed.Alias("old.B", "old.C")},
			testPath + "fnTwo", "old.A old.B old.C", 5,
		},
		{[]delayed.FuncOption{delayed.Name("a"), delayed.Name("b")}, "b", "", -1},
	} {
		f := delayed.Func(fnTwo, tt.opts...)
		info := described(t, f)
		if info.Path != tt.path || strings.Join(info.Aliases, " ") != tt.aliases {
			t.Errorf("%s, aliases %q, expected %s, aliases %q", info.Path, info.Aliases, tt.path, tt.aliases)
		}
		task := delayed.Call(f, 1, "x")
		m := parsed(t, messageOf(t, offline(t), task))
		if task.Path() != tt.path || m.Meta.HasMaxRetry != (tt.retries >= 0) || m.Meta.MaxRetry != max(tt.retries, 0) {
			t.Errorf("producers call %s with %+v, expected %s with %d retries", task.Path(), m.Meta, tt.path,
				tt.retries)
		}
	}
}

// idleWorker returns a worker that is not run.
func idleWorker(t testing.TB) *delayed.Worker {
	t.Helper()
	rdb, err := delayed.Dial("redis://localhost:1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{"idle"}})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// functionsOf returns how a worker describes its functions.
func functionsOf(w *delayed.Worker) []function.Info {
	return seam.Functions(w).([]function.Info) //nolint:errcheck // by contract
}

// described returns how a worker describes a registered function.
func described(t testing.TB, fn any) function.Info {
	t.Helper()
	w := idleWorker(t)
	if err := w.Register(fn); err != nil {
		t.Fatal(err)
	}
	return functionsOf(w)[0]
}

func TestFuncRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		fn   any
		want []string // parts of the error
	}{
		{"nil option", delayed.Func(fnNone, nil), []string{"options", "nil"}},
		{"Func of nil", delayed.Func(nil), []string{"found nil"}},
		{"Func of Func", delayed.Func(delayed.Func(fnNone)), []string{"found a *Function", "one call of Func"}},
		{
			"name with colon", delayed.Func(fnNone, delayed.Name("mod:fn")),
			[]string{"without a colon", `"mod:fn"`, "choose another Name"},
		},
		{"alias twice", delayed.Func(fnNone, delayed.Alias("a", "b", "a")), []string{"a twice"}},
		{"nil Function", (*delayed.Function)(nil), []string{"found nil", "call Func"}},
		{"zero Function", new(delayed.Function), []string{"a zero Function", "call Func"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, delay := offline(t).Delay(tt.fn)
			for side, err := range map[string]error{"worker": idleWorker(t).Register(tt.fn), "producer": delay} {
				if !errors.Is(err, delayed.ErrFunction) {
					t.Fatalf("%s: %v; want an error that wraps ErrFunction", side, err)
				}
				for _, part := range tt.want {
					if !strings.Contains(err.Error(), part) {
						t.Errorf("%s: %q lacks %q", side, err, part)
					}
				}
			}
		})
	}
}

// BenchmarkTask compares a task of a func value with one of a path: they cost about the same.
func BenchmarkTask(b *testing.B) {
	b.Run("func", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if t := delayed.Call(fnCtxTwo, int64(42), "en"); t.Path() == "" {
				b.Fatal(t)
			}
		}
	})
	b.Run("path", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if t := delayed.NewGoTask(testPath+"fnCtxTwo", int64(42), "en"); t.Path() == "" {
				b.Fatal(t)
			}
		}
	})
}

// TestOptionalIsNotForProducers: producers must give all arguments; for a Go function the compiler would refuse fewer
// as well.
func TestOptionalIsNotForProducers(t *testing.T) {
	f := delayed.Func(func(int, string) {}, delayed.Name("test.fn"), delayed.Optional(1))
	if _, err := offline(t).Enqueue(t.Context(), delayed.Call(f, 1)); !errors.Is(err, delayed.ErrArguments) ||
		strings.Contains(err.Error(), "missing") {
		t.Errorf("expected ErrArguments, found %v", err)
	}
}

// TestHandlesAreNoArguments: values that only this process can use are refused; plain data of this package can be sent.
func TestHandlesAreNoArguments(t *testing.T) {
	for _, handle := range []any{
		&delayed.Queue{}, &delayed.Redis{}, &delayed.Worker{}, &delayed.Scheduler{},
		&delayed.WorkerControl{}, &delayed.PeriodicControl{},
	} {
		_, err := offline(t).Enqueue(t.Context(), delayed.NewGoTask("a.b", handle))
		if !errors.Is(err, delayed.ErrArguments) || !strings.Contains(err.Error(), "which cannot travel") {
			t.Errorf("%T: expected that it cannot travel, found %v", handle, err)
		}
	}
	data := delayed.NewGoTask("a.b", &delayed.TaskInfo{ID: "x"})
	if _, _, _, err := delayed.Message(offline(t), data, 1); err != nil {
		t.Errorf("a *TaskInfo: %v", err)
	}
}

// uncomparable is an error of a type that Go cannot compare.
type uncomparable struct{ parts []string }

func (u uncomparable) Error() string { return strings.Join(u.parts, " ") }

// TestPublicEnd: PublicEnd translates a worker's errors also inside joined errors, and leaves all others unchanged.
func TestPublicEnd(t *testing.T) {
	other := errors.Join(delayed.ErrUnknown, uncomparable{[]string{"no", "answer"}})
	if got := delayed.PublicEnd(other); got.Error() != other.Error() || !errors.Is(got, delayed.ErrUnknown) {
		t.Errorf("found %v", got)
	}
	got := delayed.PublicEnd(errors.Join(&engine.StuckError{Funcs: []string{"f"}}, other, &engine.RunningError{}))
	var stuck *delayed.StuckError
	var running *delayed.StillRunningError
	if !errors.As(got, &stuck) || stuck.Funcs[0] != "f" || !errors.As(got, &running) ||
		!errors.Is(got, delayed.ErrUnknown) {
		t.Errorf("found %v", got)
	}
}
