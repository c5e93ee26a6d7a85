//go:build unix

package itest_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestGoEnqueuesPythonTasks: Go enqueues Python tasks of every shape, and the worker of the real package runs them, one
// after the other.
func TestGoEnqueuesPythonTasks(t *testing.T) {
	t.Parallel()
	type kw = map[string]any
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	py := newPyLedger(t)
	q := legacyQueue(t, server, queue)

	tests := []struct {
		name string
		task *delayed.Task
		opts []delayed.Option
		want []pyCall // numbers are float64, as JSON has them
	}{
		{
			name: "nothing", task: delayed.NewPyTask("interop_tasks:record", nil, nil),
			want: []pyCall{{"record", []any{}, kw{}}},
		},
		{
			name: "args", task: delayed.NewPyTask("interop_tasks:record", []any{1, "zwei", 3.5, true, nil}, nil),
			want: []pyCall{{"record", []any{1.0, "zwei", 3.5, true, nil}, kw{}}},
		},
		{
			name: "kwargs", task: delayed.NewPyTask("interop_tasks:record", nil, kw{"a": 1, "ü": []int{2}}),
			want: []pyCall{{"record", []any{}, kw{"a": 1.0, "ü": []any{2.0}}}},
		},
		{
			name: "args and kwargs", task: delayed.NewPyTask("interop_tasks:add", []any{1}, kw{"b": 2}),
			want: []pyCall{{"add", []any{1.0, 2.0}, kw{}}},
		},
		{
			name: "bytes", task: delayed.NewPyTask("interop_tasks:record", []any{[]byte{0, 0xff}}, nil),
			want: []pyCall{{"record", []any{kw{"bytes": "00ff"}}, kw{}}},
		},
		{
			name: "nested", task: delayed.NewPyTask("interop_tasks:record",
				[]any{kw{"a": []any{1, kw{"b": nil}}}, [][]string{{"x"}, {}}}, nil),
			want: []pyCall{{"record", []any{kw{"a": []any{1.0, kw{"b": nil}}}, []any{[]any{"x"}, []any{}}}, kw{}}},
		},
		{
			name: "struct, by position on a legacy queue",
			task: delayed.NewPyTask("interop_tasks:record", []any{point{1, 2}}, kw{"k": []point{{3, 4}}}),
			want: []pyCall{{"record", []any{[]any{1.0, 2.0}}, kw{"k": []any{[]any{3.0, 4.0}}}}},
		},
		{
			name: "no retry", task: delayed.NewPyTask("interop_tasks:fail_times", []any{"none", 9}, nil),
			want: []pyCall{{"fail_times", []any{"none", 1.0}, kw{}}},
		},
		{
			name: "two retries", task: delayed.NewPyTask("interop_tasks:fail_times", []any{"two", 9}, nil),
			opts: []delayed.Option{delayed.MaxRetry(2)},
			want: []pyCall{
				{"fail_times", []any{"two", 1.0}, kw{}},
				{"fail_times", []any{"two", 2.0}, kw{}},
				{"fail_times", []any{"two", 3.0}, kw{}},
			},
		},
	}
	var want []pyCall
	worker := startPython(t, py.env(), "worker.py", "--url", server.URL(), "--queue", queue)
	for _, test := range tests {
		if _, err := q.With(test.opts...).Enqueue(t.Context(), test.task); err != nil {
			t.Fatalf("%s: %v", test.name, err)
		}
		// One at a time: a retried task goes to the end of the queue.
		want = append(want, test.want...)
		waitFor(t, "the calls of "+test.name,
			func() bool { return len(py.calls(t)) >= len(want) && claimsOfLegacy(t, server, queue) == 0 })
		if calls := py.calls(t); !reflect.DeepEqual(calls, want) {
			t.Fatalf("%s: expected the calls\n%v\nfound\n%v\nlog of the worker:\n%s", test.name, want, calls,
				worker.Output())
		}
	}
	stopPython(t, worker)
	redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{Idle: true})
}

// TestScheduledPythonTask delays a Python task: a Go worker of the queue makes it pending when it is due, and hands on
// the tasks that it claims itself to the queue of the Python worker.
func TestScheduledPythonTask(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	queue, pyQueue := redistest.Name(t), redistest.Name(t)
	py := newPyLedger(t)
	startWorkerHere(t, handle(t, server).WithLegacy(),
		delayed.WorkerConfig{Queues: delayed.Strict{queue}, PythonQueue: pyQueue})
	startPython(t, py.env(), "worker.py", "--url", server.URL(), "--queue", pyQueue)
	q := legacyQueue(t, server, queue)
	const delay = 300 * time.Millisecond
	start := time.Now()
	task := delayed.NewPyTask("interop_tasks:record", []any{"later"}, nil)
	if _, err := q.With(delayed.In(delay)).Enqueue(t.Context(), task); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the call", func() bool { return len(py.calls(t)) > 0 })
	if took := time.Since(start); took < delay {
		t.Errorf("a task delayed by %v was run after %v", delay, took)
	}
}

// TestRefusedPythonTasks: Go refuses calls that would make the worker of the real package fail.
func TestRefusedPythonTasks(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	q := legacyQueue(t, server, redistest.Name(t))
	if _, err := q.With(delayed.TaskID("x")).Enqueue(t.Context(), delayed.NewPyTask("m:f", nil, nil)); err == nil {
		t.Error("a Python task with an id was accepted, although its message has no place for one")
	}
	//delayed:allow the test expects the refusal
	if _, err := q.Enqueue(t.Context(), delayed.NewPyTask("m.f", nil, nil)); err == nil {
		t.Error("a Python path without colon was accepted")
	}
	//delayed:allow the test expects the refusal
	if _, err := q.Enqueue(t.Context(), delayed.NewGoTask("m:f")); err == nil {
		t.Error("a Go path with a colon was accepted")
	}
	if n, err := q.Len(t.Context()); err != nil || n != 0 {
		t.Errorf("expected an empty queue, found %d tasks, %v", n, err)
	}
}

func claimsOfLegacy(t *testing.T, server *redistest.Server, queue string) int64 {
	t.Helper()
	n, _ := server.Do(t, "HLEN", queue+"_processing").(int64)
	return n
}
