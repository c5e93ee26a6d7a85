package delayed_test

import (
	"sync"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

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
