//go:build unix

package itest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestOutages takes Redis away for longer than heartbeats live, with handlers at work. When it is back every heartbeat has expired, and
// yet no worker is dead: nothing may run twice.
func TestOutages(t *testing.T) {
	for _, test := range []struct {
		name     string
		args     []string
		leave    func(*redistest.Server, testing.TB)
		comeBack func(*redistest.Server, testing.TB)
	}{
		// The workers' requests wait for the answer, all of which come at once.
		{"stopped", nil, (*redistest.Server).Pause, (*redistest.Server).Resume},
		// The workers are refused, and come back one after the other.
		{"killed and started again", []string{"--appendonly", "yes"}, (*redistest.Server).Kill, (*redistest.Server).Restart},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // beside TestIdleCost, which leaves the machine alone
			testOutages(t, redistest.Start(t, test.args...), test.leave, test.comeBack)
		})
	}
}

func testOutages(t *testing.T, server *redistest.Server, leave, comeBack func(*redistest.Server, testing.TB)) {
	t.Helper()
	const (
		outages     = 5
		workers     = 16
		concurrency = 5
		life        = time.Second
		work        = 1500 * time.Millisecond
		between     = 3 * time.Second
	)
	queue := redistest.Name(t)
	rdb := handle(t, server)
	r := newRuns()
	var cancelled sync.Map
	task := delayed.Func(func(ctx context.Context, i int) error {
		r.start(i)
		defer r.end(i)
		select {
		case <-time.After(work):
			return nil
		case <-ctx.Done():
			cancelled.Store(i, context.Cause(ctx))
			return context.Cause(ctx)
		}
	}, delayed.Name("itest.slow"))
	const tasks = int(outages*(between+2*life)/work) * workers * concurrency
	enqueueAll(t, delayed.NewQueue(queue, rdb), tasks, func(i int) *delayed.Task { return delayed.Call(task, i) })
	var all []*localWorker
	for range workers {
		all = append(all, runWorker(t, rdb, delayed.WorkerConfig{
			Queues: delayed.Strict{queue}, Concurrency: concurrency, HeartbeatLife: life, SweepInterval: 50 * time.Millisecond,
		}, task))
	}
	for range outages {
		<-time.After(between)
		busy := 0
		for _, w := range all {
			busy += w.Status().Busy
		}
		if busy < workers*concurrency/2 {
			t.Errorf("only %d handlers are at work when Redis is stopped", busy)
		}
		leave(server, t)
		<-time.After(2 * life)
		comeBack(server, t)
	}
	waitForAtMost(t, time.Minute, "all tasks to end", func() bool { return r.ended() == tasks })
	for _, w := range all {
		w.stop()
	}
	redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{Idle: true})
	if again := r.again(); again > 0 {
		t.Errorf("tasks of live workers were started again %d times", again)
	}
	cancelled.Range(func(i, cause any) bool {
		t.Errorf("task %d was cancelled: %v", i, cause)
		return true
	})
	for counter, want := range map[string]int{"processed": tasks, "swept": 0, "lost": 0, "archived": 0} {
		if n := count(t, server, queue, counter); n != want {
			t.Errorf("Redis counted %d tasks as %s, expected %d", n, counter, want)
		}
	}
	t.Logf("%d tasks of %v through %d outages of %v", tasks, work, outages, 2*life)
}
