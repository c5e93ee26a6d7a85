//go:build unix

package itest_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
)

// maxEmptyWakes is the largest accepted share of wake-ups of legacy workers that find no task. Together with a worker
// in legacy mode hardly one in a thousand finds none, and one in five together with any other.
const maxEmptyWakes = 0.01

// TestLegacyWorkersWakeToTasks serves a queue with a Go worker in legacy mode and with workers of the real package. The
// latter must find a task when they wake, because they sleep for a second or more after they have found none.
func TestLegacyWorkersWakeToTasks(t *testing.T) {
	t.Parallel()
	wakes, empty := legacyWakes(t, true, 3000)
	t.Logf("workers of the real package woke %d times, %d times in vain", wakes, empty)
	if wakes < 300 {
		t.Errorf("expected the legacy workers to have a fair share of 3000 tasks, found %d wake-ups", wakes)
	}
	if float64(empty) > maxEmptyWakes*float64(wakes) {
		t.Errorf("expected at most %.0f %% of %d wake-ups in vain, found %d", 100*maxEmptyWakes, wakes, empty)
	}
}

// legacyWakes runs tasks through a Go worker and three workers of the real package, which also stand in for those of
// go-delayed. It returns how often the latter woke, and how often without finding a task.
func legacyWakes(t *testing.T, legacy bool, tasks int) (wakes, empty int) {
	t.Helper()
	server := redistest.Start(t)
	queue := redistest.Name(t)
	py := newPyLedger(t)
	var events []string
	for i := range 3 {
		file := filepath.Join(t.TempDir(), "events")
		events = append(events, file)
		startPython(t, py.env(), "worker.py", "--url", server.URL(), "--queue", queue, "--run-go", "--events", file,
			"--name", fmt.Sprint("legacy-", i), "--max-sleep", "0.01")
	}
	var ran atomic.Int64
	touch := func(context.Context, string, int) { ran.Add(1) }
	startWorkerHere(t, sharing(handle(t, server), legacy),
		delayed.WorkerConfig{Queues: delayed.Strict{queue}, Concurrency: 4},
		delayed.Func(touch, delayed.Name("interop.Touch")))

	q := legacyQueue(t, server, queue)
	pace := time.NewTicker(5 * time.Millisecond)
	defer pace.Stop()
	for i := 0; i < tasks; {
		<-pace.C
		// Bursts of one to eight, mostly while workers are idle: then one worker is woken for each task, and the Go
		// worker is the fastest.
		burst := make([]*delayed.Task, 0, 8)
		for range min(1+i%8, tasks-i) {
			burst = append(burst, delayed.Call(delayed.Func(touch, delayed.Name("interop.Touch")), fmt.Sprint("w", i),
				0))
			i++
		}
		if _, err := q.DelayMany(t.Context(), burst...); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, "all tasks to be run", func() bool { return int(ran.Load())+len(py.read(t).Of(ledger.End)) >= tasks })
	for _, file := range events {
		text, err := os.ReadFile(file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			switch line = strings.TrimSpace(line); line {
			case "wake":
				wakes++
			case "empty":
				empty++
			default:
				t.Errorf("a worker of the real package failed: %s", line)
			}
		}
	}
	return wakes, empty
}
