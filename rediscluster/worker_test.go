//go:build unix

package rediscluster

import (
	"context"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// ran counts the runs of each task.
var ran struct {
	sync.Mutex
	tasks map[int]int
}

func countRun(n int) {
	ran.Lock()
	defer ran.Unlock()
	ran.tasks[n]++
}

// testWorker lets the slot of a queue travel while tasks are delayed and run: each must run once.
func testWorker(t *testing.T, cluster *redistest.Cluster) {
	t.Helper()
	rdb, err := Dial(cluster.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer rdb.Close()
	const queue, tasks, moves = "{travels}", 300, 4
	ran.tasks = map[int]int{}
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{queue}, Concurrency: 4, Logger: delayed.SlogLogger(slog.NewTextHandler(io.Discard, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(countRun); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	runs := func() int {
		ran.Lock()
		defer ran.Unlock()
		return len(ran.tasks)
	}

	q := delayed.NewQueue(queue, rdb)
	for n := range tasks {
		if n%(tasks/moves) == tasks/moves/2 {
			currentOwner(t, cluster, queue).all(t)
		}
		if _, err := q.Delay(countRun, n); err != nil {
			t.Fatalf("task %d: %v", n, err)
		}
	}
	eventually(t, "all tasks run", func() bool { return runs() == tasks })
	checkSignatures(t, rdb, queue)
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("the worker does not stop")
	}
	for n, times := range ran.tasks {
		if times != 1 {
			t.Errorf("task %d ran %d times", n, times)
		}
	}
	owner := currentOwner(t, cluster, queue).from
	redistest.CheckInvariants(t, owner.Dial(t), queue, redistest.Invariants{Idle: true})
}

// checkSignatures compares calls with the signatures that the worker has published, which are read from the slot of the
// queue, too.
func checkSignatures(t *testing.T, rdb *delayed.Store, queue string) {
	t.Helper()
	q, err := delayed.OpenQueue(queue, rdb, delayed.QueueConfig{Check: true})
	if err != nil {
		t.Fatal(err)
	}
	path := delayed.Call(countRun, 0).Path()
	for _, call := range []struct {
		path string
		arg  any
		want string // in the error
	}{
		{path, "one", "expected int"}, {path + "s", 1, "did you mean " + path + "?"},
	} {
		_, err := q.Enqueue(t.Context(), delayed.NewGoTask(call.path, call.arg))
		if err == nil || !strings.Contains(err.Error(), call.want) {
			t.Errorf("%s(%v): expected %q, found %v", call.path, call.arg, call.want, err)
		}
	}
}
