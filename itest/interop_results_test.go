//go:build unix

package itest_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/state"
)

// point is sent as a map of its fields.
type point struct{ X, Y int }

// TestResultsOfGoInPython keeps a result with Go and reads it with Python.
func TestResultsOfGoInPython(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	f := delayed.Func(func(ctx context.Context, name string) (map[string][]point, error) {
		return map[string][]point{name: {{1, 2}, {3, -4}}}, delayed.Progress(ctx, 2, 2, "both")
	}, delayed.Name("results.points"), delayed.KeepResult(time.Hour))
	log := logrus.New()
	log.SetOutput(t.Output())
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict{queue}, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	running, stop := context.WithCancel(ctx)
	stopped := make(chan error, 1)
	go func() { stopped <- w.Run(running) }()
	ref, err := delayed.NewQueue(queue, rdb).DelayContext(ctx, f, "ü")
	if err != nil {
		t.Fatal(err)
	}
	if err := ref.Wait(ctx); err != nil {
		t.Error(err)
	}
	stop()
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	var info map[string]any
	if err := json.Unmarshal([]byte(runPython(t, "results.py", "--url", server.URL(), "--queue", queue, "read",
		ref.ID())[0]), &info); err != nil {
		t.Fatal(err)
	}
	now := float64(time.Now().UnixMilli())
	for key, most := range map[string]float64{"at": now, "began": now, "enqueued": now, "due": now + 3.6e6} {
		if at, ok := info[key].(float64); !ok || at > most || at < most-60_000 {
			t.Errorf("%s is %v, expected about %v", key, info[key], most)
		}
		delete(info, key)
	}
	delete(info, "worker")
	want := map[string]any{
		"reason": "completed", "function": "results.points", "attempts": 1.0, "done": 2.0, "total": 2.0, "note": "both",
		"result": map[string]any{"ü": []any{map[string]any{"X": 1.0, "Y": 2.0}, map[string]any{"X": 3.0, "Y": -4.0}}},
	}
	if !reflect.DeepEqual(info, want) {
		t.Errorf("Python reads %v, expected %v", info, want)
	}
}

// TestResultsOfPythonInGo keeps a result with Python while Go waits for it.
func TestResultsOfPythonInGo(t *testing.T) {
	t.Parallel()
	server := redistest.Shared(t)
	queue := redistest.Name(t)
	conn := server.Dial(t)
	for _, cmd := range [][]any{
		{"HSET", queue + "_processing:py", "1-1", "m"},
		{"HSET", queue + "_claims:py", "1", "1"},
	} {
		if _, err := conn.Do(cmd[0].(string), cmd[1:]...); err != nil { //nolint:errcheck // a literal above
			t.Fatal(err)
		}
	}
	rdb, err := delayed.Dial(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	ctx, cancel := context.WithTimeout(t.Context(), pythonLimit)
	defer cancel()
	ref := delayed.NewQueue(queue, rdb).Ref("t1")
	type outcome struct {
		value map[string]point
		err   error
	}
	awaited := make(chan outcome, 1)
	go func() {
		value, err := delayed.Await[map[string]point](ctx, ref)
		awaited <- outcome{value, err}
	}()
	if got := runPython(t, "results.py", "--url", server.URL(), "--queue", queue, "keep", "t1",
		`{"a": {"X": 1, "Y": 2}, "b": [3, 4]}`); got[0] != "[1]" {
		t.Errorf("the script answers %q", got)
	}
	got := <-awaited
	if want := (map[string]point{"a": {1, 2}, "b": {3, 4}}); got.err != nil || !reflect.DeepEqual(got.value, want) {
		t.Errorf("Go reads %v, %v", got.value, got.err)
	}
	info, err := ref.Info(ctx)
	if err != nil || info.State != state.Completed || info.Function != "py:task" {
		t.Errorf("Go reads %+v, %v", info, err)
	}
}
