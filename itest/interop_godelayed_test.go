//go:build unix

package itest_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/state"
)

var startedLine = regexp.MustCompile(`worker ([0-9a-f]{32}) started`)

// startGodelayed starts the command delayed-worker of our Python package and waits until it works.
func startGodelayed(t *testing.T, env []string, server *redistest.Server, args ...string) *childproc.Process {
	t.Helper()
	p, err := childproc.Start(pythonCommand(t, env, "-m",
		append([]string{"godelayed.cli", "godelayed_tasks", "--redis-url", server.URL()}, args...)...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	waitFor(t, "delayed-worker to start", func() bool {
		if !p.Running() {
			t.Fatalf("delayed-worker ended early: %s\n%s", p.Describe(), p.Output())
		}
		return startedLine.MatchString(p.Output())
	})
	return p
}

// TestPythonWorkerRunsTasksOfGo: Go enqueues Python tasks with everything that extended messages can contain, and our
// Python worker runs them.
func TestPythonWorkerRunsTasksOfGo(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	q, err := delayed.OpenQueue(queue, handle(t, server), delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	py := newPyLedger(t)
	worker := startGodelayed(t, py.env(), server, "--queue", queue, "--concurrency", "2")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	kept := q.With(delayed.KeepResult(time.Hour))
	total := func(failures int) *delayed.Task {
		return delayed.NewPyTask("interop:total", []any{[]int{1, 2, 3}}, map[string]any{"failures": failures})
	}
	for _, test := range []struct {
		name     string
		failures int
		opts     []delayed.Option
	}{
		{"plain", 0, nil},
		{"retry", 2, []delayed.Option{delayed.MaxRetry(2)}},
		{"scheduled", 0, []delayed.Option{delayed.In(50 * time.Millisecond)}},
		{"unique", 0, []delayed.Option{delayed.Unique(time.Hour)}},
		{"unique again", 0, []delayed.Option{delayed.Unique(time.Hour)}},
		{"id", 0, []delayed.Option{delayed.TaskID("mine")}},
		{"timeout", 0, []delayed.Option{delayed.Timeout(time.Minute)}},
	} {
		ref, err := kept.With(test.opts...).Enqueue(ctx, total(test.failures))
		if err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		if sum, err := delayed.Await[int](ctx, ref); sum != 6 || err != nil {
			t.Errorf("%s: expected 6, found %d, %v\n%s", test.name, sum, err, worker.Output())
		}
		if done, _, note, err := ref.Progress(ctx); done != 3 || note != "added" || err != nil {
			t.Errorf("%s: reported %d %q, %v", test.name, done, note, err)
		}
	}

	ref, err := kept.With(delayed.MaxRetry(0)).Enqueue(ctx, total(9))
	if err != nil {
		t.Fatal(err)
	}
	var failed *delayed.TaskError
	if err := ref.Wait(ctx); !errors.As(err, &failed) || !strings.Contains(err.Error(), "ValueError: attempt 1") {
		t.Errorf("expected the error of the task, found %v", err)
	}

	ref, err = kept.With(delayed.MaxRetry(0), delayed.Timeout(100*time.Millisecond)).Enqueue(ctx,
		delayed.NewPyTask("interop:sleep", nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.Wait(ctx); err == nil || !strings.Contains(err.Error(), "TaskTimeout") {
		t.Errorf("expected that the task took too long, found %v", err)
	}

	slept := len(py.calls(t))
	if ref, err = kept.Enqueue(ctx, delayed.NewPyTask("interop:sleep", nil, nil)); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the task to run", func() bool { return len(py.calls(t)) > slept })
	if err := ref.Cancel(ctx); err != nil {
		t.Fatal(err)
	}
	if err := ref.Wait(ctx); !errors.Is(err, delayed.ErrCanceled) {
		t.Errorf("expected that the task was canceled, found %v", err)
	}
	stopPython(t, worker)
}

// TestWorkersOfBothLanguagesShareAQueue: our Go and our Python workers claim from one queue with tasks of both
// languages. Each hands on the tasks of the other language.
func TestWorkersOfBothLanguagesShareAQueue(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	queue := redistest.Name(t)
	goQueue, pyQueue := queue+"go", queue+"py"
	q, err := delayed.OpenQueue(queue, handle(t, server), delayed.QueueConfig{})
	if err != nil {
		t.Fatal(err)
	}
	py := newPyLedger(t)
	writer, err := ledger.Create(string(py))
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	startWorkerHere(t, handle(t, server),
		delayed.WorkerConfig{Queues: delayed.Strict{queue, goQueue}, PythonQueue: pyQueue, Concurrency: 4},
		delayed.Func(func(task string, _ int) {
			writer.Write(ledger.Event{Kind: ledger.Start, Task: task, Worker: "go"})
			writer.Write(ledger.Event{Kind: ledger.End, Task: task, Worker: "go"})
		}, delayed.Name(touchPath)))
	worker := startGodelayed(t, append(py.env(), "DELAYED_WORKER=py"), server, "--queue", queue, "--queue", pyQueue,
		"--go-queue", goQueue, "--concurrency", "2")
	const tasks = 400
	var names []string
	for i := range tasks {
		name := fmt.Sprintf("g%06d", i)
		task := delayed.NewGoTask(touchPath, name, 0)
		if i%2 == 0 {
			task = delayed.NewPyTask(touchPyPath, []any{name, 0}, nil)
		}
		if _, err := q.Enqueue(t.Context(), task); err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
	}
	var log ledger.Log
	waitFor(t, "all tasks to run", func() bool {
		if log, err = ledger.Read(string(py)); err != nil {
			t.Fatal(err)
		}
		return len(log.Of(ledger.End).Missing(names)) == 0
	})
	stopPython(t, worker)
	if again := log.Of(ledger.Start).Repeated(); len(again) > 0 {
		t.Errorf("%d tasks ran more than once", len(again))
	}
	for _, q := range []string{queue, goQueue, pyQueue} {
		if parked := filedIn(t, server, q, "_parked"); len(parked) > 0 {
			t.Errorf("%d tasks of %s are parked", len(parked), q)
		}
	}
}

// TestInspectorSeesPython finds a queue that only Python has used, the worker there, its functions, and what it runs.
func TestInspectorSeesPython(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	queue := redistest.Name(t)
	py := newPyLedger(t)
	worker := startGodelayed(t, py.env(), server, "--queue", queue, "--concurrency", "3", "--heartbeat-life", "2")
	ins, err := inspect.New(handle(t, server), inspect.Config{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	waitFor(t, "the queue to be known", func() bool {
		names, err := ins.Names(ctx)
		return err == nil && slices.Equal(names, []string{queue})
	})
	ref, err := ins.Enqueue(ctx, queue, delayed.NewPyTask("interop:sleep", nil, nil))
	if err != nil {
		t.Fatal(err)
	}
	var w inspect.Worker
	waitFor(t, "the worker to tell what it runs", func() bool {
		workers, err := ins.Workers(ctx)
		if err != nil || len(workers) != 1 || len(workers[0].Running) != 1 {
			return false
		}
		w = workers[0]
		return true
	})
	if r := w.Running[0]; r.ID != ref.ID() || r.Function != "interop:sleep" || r.Queue != queue ||
		time.Since(r.Started) > time.Minute || w.Concurrency != 3 || w.State != state.Running ||
		!strings.HasPrefix(w.Version, "godelayed") || w.Order != queue+" (strict)" || w.PID == 0 {
		t.Errorf("found %+v", w)
	}
	task, err := ins.Task(ctx, queue, ref.ID())
	if err != nil || task.State != state.Active || task.Started.IsZero() {
		t.Errorf("found %+v, %v", task, err)
	}
	functions, err := ins.Functions(ctx)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(functions, func(f inspect.Function) bool { return f.Path == "interop:total" })
	if i < 0 || functions[i].Queue != queue || functions[i].Optional != 1 || len(functions[i].Parameters) != 2 ||
		functions[i].Parameters[0].Name != "numbers" || !slices.Equal(functions[i].Workers, []string{w.ID}) {
		t.Errorf("found %+v", functions)
	}
	if err := ref.Cancel(ctx); err != nil {
		t.Error(err)
	}
	waitFor(t, "the task to end", func() bool {
		workers, err := ins.Workers(ctx)
		return err == nil && len(workers) == 1 && len(workers[0].Running) == 0
	})
	watching, stopWatching := context.WithCancel(ctx)
	defer stopWatching()
	events := make(chan inspect.Event, 1000)
	go func() {
		for e, err := range ins.Watch(watching, queue) {
			if err == nil {
				events <- e
			}
		}
	}()
	// Until the worker has heard that somebody watches, it tells of nothing.
	waitFor(t, "the first event", func() bool {
		_, err := ins.Enqueue(ctx, queue, delayed.NewPyTask("interop_tasks:add", []any{1, 2}, nil))
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-events:
			return true
		case <-time.After(100 * time.Millisecond):
			return false
		}
	})
	for _, failures := range []int{0, 1} {
		_, err := ins.Enqueue(ctx, queue, delayed.NewPyTask("interop:total", []any{[]int{1, 2}, failures}, nil),
			delayed.MaxRetry(1))
		if err != nil {
			t.Fatal(err)
		}
	}
	total := func(g inspect.Grain) (sum inspect.Sample) {
		samples, err := ins.Metrics(ctx, queue, g, time.Time{}, time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range samples {
			if samples[i].Function == "interop:total" {
				sum.Merge(&samples[i])
			}
		}
		return sum
	}
	var kinds []string
	for len(kinds) < 7 {
		select {
		case e := <-events:
			if e.Function != "interop:total" {
				continue
			}
			kinds = append(kinds, e.Kind.String())
			if e.Kind == event.TaskRetried && (e.Worker != w.ID || e.Attempt != 1 ||
				!strings.Contains(e.Error, "ValueError") || e.Took <= 0 || e.ID == "") {
				t.Errorf("found %+v", e)
			}
		case <-time.After(time.Minute):
			t.Fatalf("found the events %q only", kinds)
		}
	}
	slices.Sort(kinds)
	want := "task done,task done,task failed,task retried,task started,task started,task started"
	if got := strings.Join(kinds, ","); got != want {
		t.Errorf("found the events %s, expected %s", got, want)
	}
	// Tasks that never start are published too.
	for _, c := range []struct {
		call *delayed.Task
		opts []delayed.Option
		want event.Kind
	}{
		{delayed.NewPyTask("interop:nothing", nil, nil), nil, event.TaskParked},
		{delayed.NewGoTask("a.b"), nil, event.TaskParked},
		{
			delayed.NewPyTask("interop:total", []any{[]int{1}}, nil),
			[]delayed.Option{delayed.Deadline(time.Now().Add(-time.Hour))},
			event.TaskExpired,
		},
	} {
		ref, err := ins.Enqueue(ctx, queue, c.call, c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		for e := (inspect.Event{}); e.ID != ref.ID(); {
			select {
			case e = <-events:
			case <-time.After(time.Minute):
				t.Fatalf("found no event of %s", c.call)
			}
			if e.ID == ref.ID() && e.Kind != c.want {
				t.Errorf("%s: found %s, expected %s", c.call, e.Kind, c.want)
			}
		}
	}
	waitFor(t, "the runs to be published", func() bool { s := total(inspect.Total); return s.Runs == 3 })
	for _, g := range []inspect.Grain{inspect.Seconds, inspect.Minutes, inspect.Days, inspect.Total} {
		s := total(g)
		if s.Runs != 3 || s.Failed != 1 || s.Archived != 0 || s.Run.Count() != 3 || s.Wait.Count() != 3 ||
			s.Wait.Sum() > time.Minute {
			t.Errorf("grain %d: found %+v", g, s)
		}
	}
	stopPython(t, worker)
	if workers, err := ins.Workers(ctx); err != nil || len(workers) != 0 {
		t.Errorf("found %+v, %v", workers, err)
	}
}
