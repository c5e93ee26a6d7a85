package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/redistest"
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

// release is one version of a program in a deploy: what its workers run, and what its producers delay.
type release struct {
	version string
	fns     []any
	delay   *delayed.Function
	args    []any
}

// deploy is a queue that programs of several versions share.
type deploy struct {
	*bench
	mu   sync.Mutex
	runs map[string]map[int64]int // version to task to runs
	next int64
}

// ran records a run. All versions of the function call it.
func (d *deploy) ran(version string, n int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.runs[version] == nil {
		d.runs[version] = map[int64]int{}
	}
	d.runs[version][n]++
}

// total returns how many tasks have run, and how many runs there were.
func (d *deploy) total() (tasks, runs int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	seen := map[int64]bool{}
	for _, byTask := range d.runs {
		for n, count := range byTask {
			seen[n] = true
			runs += count
		}
	}
	return len(seen), runs
}

// produce delays n tasks as the producers of a version do.
func (d *deploy) produce(r *release, n int) {
	d.T.Helper()
	for range n {
		d.next++
		d.delay(r.delay, append([]any{d.next}, r.args...)...)
	}
}

// settled waits until every task has run or is parked.
func (d *deploy) settled(parked int) {
	d.T.Helper()
	d.Idle()
	d.Until("every task has run or is parked", func() bool {
		tasks, _ := d.total()
		return d.Size("_parked") == parked && tasks+parked == int(d.next) && d.Size("") == 0
	})
}

// over checks that each task has run once, and that none has failed.
func (d *deploy) over() {
	d.T.Helper()
	d.settled(0)
	if tasks, runs := d.total(); tasks != int(d.next) || runs != tasks {
		d.T.Errorf("expected %d tasks and as many runs, found %d and %d", d.next, tasks, runs)
	}
	c := d.counters()
	if c["failed"] != 0 || c["retried"] != 0 || c["archived"] != 0 || c["lost"] != 0 {
		d.T.Errorf("expected no failures and no retries, found %v", c)
	}
	d.Check(redistest.Invariants{})
}

// TestRollingDeployOfARenamedFunction has three versions: the first knows the old name, the second the new one and the
// old one as its alias, the third the new name alone.
func TestRollingDeployOfARenamedFunction(t *testing.T) {
	t.Parallel()
	d := &deploy{bench: newBench(t), runs: map[string]map[int64]int{}}
	oldName, newName := d.Name+".mail.Send", d.Name+".post.Send"
	version := func(name string, opts ...delayed.FuncOption) *release {
		f := delayed.Func(func(n int64) { d.ran(name, n) }, opts...)
		return &release{version: name, fns: []any{f}, delay: f}
	}
	v1, v2, v3 := version("v1", delayed.Name(oldName)), version("v2", delayed.Name(newName), delayed.Alias(oldName)),
		version("v3", delayed.Name(newName))

	one := d.work(d.config(), v1.fns...)
	d.produce(v1, 20)
	d.settled(0)
	// New producers come before new workers: their tasks wait.
	d.produce(v2, 20)
	d.settled(20)
	page, total, err := d.q.Parked(t.Context(), 0, 1)
	if err != nil || total != 20 || page[0].Function != newName || page[0].Reason != "unknown function" {
		t.Errorf("what waits is not visible: %+v of %d, %v", page, total, err)
	}
	two := d.work(d.config(), v2.fns...) // it releases them, but the old worker may park them again
	d.produce(v1, 20)
	d.produce(v2, 20)
	d.settled(0)
	one.mustStop()
	d.produce(v1, 20) // an old producer is left
	d.settled(0)
	// Back to the old version, as after a faulty deploy, and forward again.
	two.mustStop()
	one = d.work(d.config(), v1.fns...)
	d.produce(v2, 20)
	d.settled(20)
	one.mustStop()
	two = d.work(d.config(), v2.fns...)
	d.settled(0)
	// The third version comes too early: tasks with the old name wait for a worker of the second.
	three := d.work(d.config(), v3.fns...)
	two.mustStop()
	d.produce(v1, 20)
	d.produce(v3, 20)
	d.settled(20)
	two = d.work(d.config(), v2.fns...)
	d.settled(0)
	two.mustStop()
	d.produce(v3, 20)
	d.over()
	three.mustStop()
	for _, name := range []string{"v1", "v2", "v3"} {
		if len(d.runs[name]) == 0 {
			t.Errorf("no worker of %s has run a task", name)
		}
	}
}

// TestRollingDeployOfAnAddedArgument: the second version has one argument more. Tasks of the first run in both. Tasks
// of the second wait for its workers, because they have another name: for a worker of the first they would have one
// argument too many, which is an error.
func TestRollingDeployOfAnAddedArgument(t *testing.T) {
	d := &deploy{bench: newBench(t), runs: map[string]map[int64]int{}}
	path, second := d.Name+".Send", d.Name+".Send2"
	languages := map[string]int{}
	f1 := delayed.Func(func(n int64) { d.ran("v1", n) }, delayed.Name(path))
	f2 := delayed.Func(func(n int64, lang string) {
		d.mu.Lock()
		languages[lang]++
		d.mu.Unlock()
		d.ran("v2", n)
	}, delayed.Name(second), delayed.Alias(path), delayed.Optional(1))
	v1, v2 := &release{version: "v1", fns: []any{f1}, delay: f1},
		&release{version: "v2", fns: []any{f2}, delay: f2, args: []any{"en"}}

	one := d.work(d.config(), v1.fns...)
	d.produce(v1, 10)
	d.produce(v2, 10)
	d.settled(10)
	two := d.work(d.config(), v2.fns...)
	d.produce(v1, 10)
	d.produce(v2, 10)
	d.settled(0)
	one.mustStop()
	d.produce(v1, 10)
	d.next++
	// by path, so with the number of arguments
	if _, err := d.q.Enqueue(t.Context(), delayed.NewGoTask(path, d.next)); err != nil {
		t.Fatal(err)
	}
	d.over()
	two.mustStop()
	if languages["en"] != 20 || languages[""] < 11 {
		t.Errorf("expected 20 tasks with a language and at least 11 without, found %v", languages)
	}
}

// TestRollingDeployOfAStruct: a struct has three versions. The second adds a field and changes the order; the third
// renames one with a tag, makes one optional and adds another. Each task runs once, on a worker that has its fields,
// whichever worker claims it first.
func TestRollingDeployOfAStruct(t *testing.T) {
	d := &deploy{bench: newBench(t), runs: map[string]map[int64]int{}}
	name := delayed.Name(d.Name + ".Place")
	var mu sync.Mutex
	wrong := []string{}
	ran := func(version string, id, count int64) {
		if count != 2*id {
			mu.Lock()
			wrong = append(wrong, fmt.Sprintf("%s: task %d with %d", version, id, count))
			mu.Unlock()
		}
		d.ran(version, id)
	}
	f1 := delayed.Func(func(o order1) { ran("v1", o.ID, o.Count) }, name)
	f2 := delayed.Func(func(o order2) { ran("v2", o.ID, o.Count) }, name)
	f3 := delayed.Func(func(o order3) { ran("v3", o.ID, o.Items) }, name)
	produce := func(version, n int) {
		t.Helper()
		for range n {
			d.next++
			switch id, note := d.next, "n"; version {
			case 1:
				d.delay(f1, order1{id, 2 * id})
			case 2:
				d.delay(f2, order2{note, 2 * id, id})
			case 3:
				d.delay(f3, order3{ID: id, Items: 2 * id, Note: &note, Lines: []struct{ SKU string }{{"x"}}})
			}
		}
	}

	one := d.work(d.config(), f1)
	produce(1, 10)
	d.settled(0)
	produce(2, 10) // new producers come first: their tasks wait
	produce(3, 10)
	d.settled(20)
	page, total, err := d.q.Parked(t.Context(), 0, 30)
	if err != nil || total != 20 {
		t.Fatalf("parked: %d, %v", total, err)
	}
	said := map[string]int{}
	for _, task := range page {
		if task.Reason != "unknown fields" || task.Function != d.Name+".Place" {
			t.Errorf("parked: %+v", task)
		}
		_, fields, _ := strings.Cut(task.Error, "(argument.field): ")
		said[strings.SplitN(fields, ";", 2)[0]]++
	}
	if said["1.Note"] != 10 || said["1.Note, 1.Lines"] != 10 {
		t.Errorf("the fields that are told: %v", said)
	}
	two := d.work(d.config(), f2)
	d.settled(10) // those of the second version ran; the first worker may have parked some of them again
	produce(1, 10)
	produce(2, 10)
	produce(3, 10)
	d.settled(20)
	one.mustStop()
	produce(1, 10) // an old producer is left
	d.settled(20)
	three := d.work(d.config(), f3)
	d.settled(0)
	produce(1, 5)
	produce(2, 5)
	two.mustStop()
	produce(1, 5)
	produce(2, 5)
	produce(3, 5)
	d.over()
	three.mustStop()
	if len(wrong) > 0 {
		t.Errorf("wrong values: %v", wrong)
	}
	for _, version := range []string{"v1", "v2", "v3"} {
		if len(d.runs[version]) == 0 {
			t.Errorf("no worker of %s has run a task", version)
		}
	}
}

// The structs that the versions of a program send in TestRollingDeployOfAStruct.
type (
	order1 struct{ ID, Count int64 }
	order2 struct {
		Note  string
		Count int64 // has another position
		ID    int64
	}
	order3 struct {
		ID    int64
		Items int64 `msgpack:"Count"` // has another name in Go
		Note  *string
		Lines []struct{ SKU string }
	}
)
