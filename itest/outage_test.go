//go:build unix

package itest_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
)

// outages are the ways in which workers lose Redis.
var outages = []struct {
	name     string
	args     []string
	leave    func(*outage)
	comeBack func(*outage)
}{
	// Workers' requests wait, and all answers come at once.
	{"stopped", nil, func(o *outage) { o.server.Pause(o.t) }, func(o *outage) { o.server.Resume(o.t) }},
	// Redis refuses the workers' connections, and they come back one after the other.
	{
		"killed and started again",
		[]string{"--appendonly", "yes"},
		func(o *outage) { o.server.Kill(o.t) }, func(o *outage) { o.server.Restart(o.t) },
	},
	// The workers get no answer, and what they have sent is lost.
	{"cut off", nil, func(o *outage) { o.line.BlackHole() }, func(o *outage) { o.line.Heal() }},
}

// TestOutages makes Redis unreachable for longer than heartbeats live, while handlers run. When Redis is back, every
// heartbeat has expired although no worker is dead: no task may run twice.
func TestOutages(t *testing.T) { forOutages(t, testOutages) }

// TestPythonOutages does the same to workers of our Python package, in processes and in threads.
func TestPythonOutages(t *testing.T) { forOutages(t, testPythonOutages) }

func forOutages(t *testing.T, run func(o *outage, leave, comeBack func(*outage))) {
	t.Helper()
	together(t)
	for _, test := range outages {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel() // they mostly wait
			server := redistest.Start(t, test.args...)
			run(&outage{t, server, faultnet.NewProxy(t, server.Addr())}, test.leave, test.comeBack)
		})
	}
}

// outage is a server and the line through which the workers reach it.
type outage struct {
	t      *testing.T
	server *redistest.Server
	line   *faultnet.Proxy
}

// supply is what workers have to do, in portions. Each is enough from one outage to the next, unless the test is slow.
type supply struct {
	t     *testing.T
	q     *delayed.Queue
	size  int // of a portion
	task  func(i int) *delayed.Task
	tasks int // so far
}

func (m *supply) enqueue(portions int) {
	m.t.Helper()
	first := m.tasks
	enqueueAll(m.t, m.q, portions*m.size, func(i int) *delayed.Task { return m.task(first + i) })
	m.tasks += portions * m.size
}

// refill enqueues another portion if nothing is left. After an outage the first answer may be an error.
func (m *supply) refill() {
	m.t.Helper()
	if n, err := m.q.Len(m.t.Context()); err == nil && n == 0 {
		m.enqueue(1)
	}
}

func testOutages(o *outage, leave, comeBack func(*outage)) {
	t, server := o.t, o.server
	t.Helper()
	const (
		concurrency = 5
		work        = 1500 * time.Millisecond
		between     = 3 * time.Second
	)
	times := inChaos(2, 20)
	// In the usual run, other tests have the processors too: many workers with short lives would get no connection
	// within the time that they give one.
	workers := inChaos(6, 16)
	life := inChaos(2*time.Second, time.Second)
	sweeps := inChaos(200*time.Millisecond, 50*time.Millisecond)
	queue := redistest.Name(t)
	rdb, err := delayed.Dial(o.line.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rdb.Close() })
	r := newRuns()
	var canceled sync.Map
	task := delayed.Func(func(ctx context.Context, i int) error {
		r.start(i)
		defer r.end(i)
		select {
		case <-time.After(work):
			return nil
		case <-ctx.Done():
			canceled.Store(i, context.Cause(ctx))
			return context.Cause(ctx)
		}
	}, delayed.Name("itest.slow"))
	m := &supply{
		t: t, q: delayed.NewQueue(queue, handle(t, server)), size: int((between+2*life)/work) * workers * concurrency,
		task: func(i int) *delayed.Task { return delayed.Call(task, i) },
	}
	m.enqueue(times)
	var all []*localWorker
	for range workers {
		all = append(all, runWorker(t, rdb, delayed.WorkerConfig{
			Queues: delayed.Strict{queue}, Concurrency: concurrency, HeartbeatLife: life,
			SweepInterval: sweeps,
		}, task))
	}
	for range times {
		<-time.After(between)
		waitFor(t, "the workers to be at work", func() bool {
			m.refill()
			busy := 0
			for _, w := range all {
				busy += w.Status().Busy
			}
			return busy >= workers*concurrency/2
		})
		leave(o)
		<-time.After(2 * life)
		comeBack(o)
	}
	waitForAtMost(t, time.Minute, "all tasks to end", func() bool { return r.ended() == m.tasks })
	for _, w := range all {
		w.stop()
	}
	redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{Idle: true})
	if again := r.again(); again > 0 {
		t.Errorf("tasks of live workers were started again %d times", again)
	}
	canceled.Range(func(i, cause any) bool {
		t.Errorf("task %d was canceled: %v", i, cause)
		return true
	})
	expectOneRun(o, queue, m.tasks)
	t.Logf("%d tasks of %v through %d outages of %v", m.tasks, work, times, 2*life)
}

func testPythonOutages(o *outage, leave, comeBack func(*outage)) {
	t, server := o.t, o.server
	t.Helper()
	const (
		workers     = 4
		concurrency = 4
		life        = 2 * time.Second
		work        = 1500 * time.Millisecond
		between     = 3 * time.Second
	)
	times, sweeps := inChaos(2, 20), inChaos("0.2", "0.05")
	queue := redistest.Name(t)
	py := newPyLedger(t)
	m := &supply{
		t: t, q: delayed.NewQueue(queue, handle(t, server)), size: int((between+2*life)/work) * workers * concurrency,
		task: func(i int) *delayed.Task {
			return delayed.NewPyTask("interop_tasks:touch", []any{strconv.Itoa(i), work.Milliseconds()}, nil)
		},
	}
	m.enqueue(times)
	var all []*childproc.Process
	for i := range workers {
		all = append(all, startGodelayed(t, py.env(), server, "--redis-url", o.line.URL(), "--queue", queue,
			"--concurrency", strconv.Itoa(concurrency), "--processes", strconv.Itoa(i%2),
			"--heartbeat-life", strconv.Itoa(int(life/time.Second)), "--sweep-interval", sweeps))
	}
	seen := func(kind ledger.Kind) int { return len(py.read(t).Of(kind)) }
	for range times {
		<-time.After(between)
		waitFor(t, "the workers to be at work", func() bool {
			m.refill()
			return seen(ledger.Start)-seen(ledger.End) >= workers*concurrency/2
		})
		leave(o)
		<-time.After(2 * life)
		comeBack(o)
	}
	waitForAtMost(t, 2*time.Minute, "all tasks to end", func() bool { return seen(ledger.End) >= m.tasks })
	for _, w := range all {
		stopPython(t, w)
	}
	redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{Idle: true})
	if again := seen(ledger.Start) - m.tasks; again != 0 {
		t.Errorf("tasks of live workers were started again %d times", again)
	}
	expectOneRun(o, queue, m.tasks)
	t.Logf("%d Python tasks of %v through %d outages of %v", m.tasks, work, times, 2*life)
}

// expectOneRun checks that Redis has counted one run of each task, and no death.
func expectOneRun(o *outage, queue string, tasks int) {
	o.t.Helper()
	for counter, want := range map[string]int{"processed": tasks, "swept": 0, "lost": 0, "archived": 0} {
		if n := count(o.t, o.server, queue, counter); n != want {
			o.t.Errorf("Redis counted %d tasks as %s, expected %d", n, counter, want)
		}
	}
}
