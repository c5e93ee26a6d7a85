package delayed

import (
	"errors"
	"strings"
	"testing"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/function"
)

func TestFuncOptions(t *testing.T) {
	retries := 5
	f := mustFunction(t, Func(fnTwo, Alias("old.A"),
		MaxRetry(retries),
		Alias("old.B", "old.C")))
	if f.Path() != testPath+"fnTwo" || strings.Join(f.Aliases(), " ") != "old.A old.B old.C" ||
		f.Policy.MaxRetry == nil ||
		*f.Policy.MaxRetry != 5 {
		t.Errorf("%s, aliases %q, retries %v", f.Path(), f.Aliases(), f.Policy.MaxRetry)
	}
	if f := mustFunction(t, Func(fnTwo, Name("a"), Name("b"))); f.Path() != "b" || f.Aliases() != nil ||
		f.Policy.MaxRetry != nil {
		t.Errorf("%s, aliases %q, retries %v", f.Path(), f.Aliases(), f.Policy.MaxRetry)
	}
	both := Func(fnTwo, Name("both"))
	producers, err := functionOf(both)
	if err != nil || producers != mustFunction(t, both) {
		t.Error("one Function is two functions:", err)
	}
}

func TestFuncRefuses(t *testing.T) {
	for _, tt := range []struct {
		name string
		fn   any
		want []string // parts of the error
	}{
		{"nil option", Func(fnNone, nil), []string{"options", "nil"}},
		{"Func of nil", Func(nil), []string{"found nil"}},
		{"Func of Func", Func(Func(fnNone)), []string{"found a *Function", "one call of Func"}},
		{
			"name with colon", Func(fnNone, Name("mod:fn")),
			[]string{"without a colon", `"mod:fn"`, "choose another Name"},
		},
		{"alias twice", Func(fnNone, Alias("a", "b", "a")), []string{"a twice"}},
		{"nil Function", (*Function)(nil), []string{"found nil", "call Func"}},
		{"zero Function", new(Function), []string{"a zero Function", "call Func"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for side, make := range map[string]func(any) (*function.Function, error){
				"worker":   newFunction,
				"producer": functionOf,
			} {
				f, err := make(tt.fn)
				if f != nil || !errors.Is(err, ErrFunction) {
					t.Fatalf("%s: %v, %v; want an error that wraps ErrFunction", side, f, err)
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
			if t := Call(fnCtxTwo, int64(42), "en"); t.err != nil {
				b.Fatal(t.err)
			}
		}
	})
	b.Run("path", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if t := NewGoTask(testPath+"fnCtxTwo", int64(42), "en"); t.err != nil {
				b.Fatal(t.err)
			}
		}
	})
}

// TestOptionalIsNotForProducers: they know the function, and Go would not compile a call with fewer arguments either.
func TestOptionalIsNotForProducers(t *testing.T) {
	f := Func(func(int, string) {}, Name("test.fn"), Optional(1))
	if task := Call(f, 1); !errors.Is(task.err, ErrArguments) || strings.Contains(task.err.Error(), "missing") {
		t.Errorf("expected ErrArguments, found %v", task.err)
	}
}

// TestHandlesAreNoArguments: what only this process can use is refused, and data of this package travels.
func TestHandlesAreNoArguments(t *testing.T) {
	for _, handle := range []any{&Queue{}, &Redis{}, &Worker{}, &Scheduler{}, &WorkerControl{}, &PeriodicControl{}} {
		err := NewGoTask("a.b", handle).err
		if !errors.Is(err, ErrArguments) || !strings.Contains(err.Error(), "which cannot travel") {
			t.Errorf("%T: expected that it cannot travel, found %v", handle, err)
		}
	}
	if err := NewGoTask("a.b", &TaskInfo{ID: "x"}).err; err != nil {
		t.Errorf("a *TaskInfo: %v", err)
	}
}

// uncomparable is an error of a type that Go cannot compare.
type uncomparable struct{ parts []string }

func (u uncomparable) Error() string { return strings.Join(u.parts, " ") }

// TestPublicEnd: what a worker says of its end is translated also where it is joined, and all else stays as it is.
func TestPublicEnd(t *testing.T) {
	other := errors.Join(ErrUnknown, uncomparable{[]string{"no", "answer"}})
	if got := publicEnd(other); got.Error() != other.Error() || !errors.Is(got, ErrUnknown) {
		t.Errorf("found %v", got)
	}
	got := publicEnd(errors.Join(&engine.StuckError{Funcs: []string{"f"}}, other, &engine.RunningError{}))
	var stuck *StuckError
	var running *StillRunningError
	if !errors.As(got, &stuck) || stuck.Funcs[0] != "f" || !errors.As(got, &running) || !errors.Is(got, ErrUnknown) {
		t.Errorf("found %v", got)
	}
}
