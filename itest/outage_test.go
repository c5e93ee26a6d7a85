//go:build unix

package itest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestOutages takes Redis away for longer than heartbeats live, with handlers at work. When it is back every heartbeat has expired, and
// yet no worker is dead: nothing may run twice.
func TestOutages(t *testing.T) {
	for _, test := range []struct {
		name     string
		args     []string
		leave    func(*outage)
		comeBack func(*outage)
	}{
		// The workers' requests wait for the answer, all of which come at once.
		{"stopped", nil, func(o *outage) { o.server.Pause(o.t) }, func(o *outage) { o.server.Resume(o.t) }},
		// The workers are refused, and come back one after the other.
		{
			"killed and started again",
			[]string{"--appendonly", "yes"},
			func(o *outage) { o.server.Kill(o.t) }, func(o *outage) { o.server.Restart(o.t) },
		},
		// The workers get no answer, and what they have sent is lost.
		{"cut off", nil, func(o *outage) { o.line.BlackHole() }, func(o *outage) { o.line.Heal() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // beside TestIdleCost, which leaves the machine alone
			server := redistest.Start(t, test.args...)
			testOutages(&outage{t, server, faultnet.NewProxy(t, server.Addr())}, test.leave, test.comeBack)
		})
	}
}

// outage is a server and the line to it, through which the workers reach it.
type outage struct {
	t      *testing.T
	server *redistest.Server
	line   *faultnet.Proxy
}

func testOutages(o *outage, leave, comeBack func(*outage)) {
	t, server := o.t, o.server
	t.Helper()
	const (
		workers     = 16
		concurrency = 5
		life        = time.Second
		work        = 1500 * time.Millisecond
		between     = 3 * time.Second
	)
	outages := inChaos(4, 20)
	queue := redistest.Name(t)
	rdb, err := delayed.Dial(o.line.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
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
	tasks := int(time.Duration(outages)*(between+2*life)/work) * workers * concurrency
	enqueueAll(t, delayed.NewQueue(queue, handle(t, server)), tasks, func(i int) *delayed.Task { return delayed.Call(task, i) })
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
		leave(o)
		<-time.After(2 * life)
		comeBack(o)
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
