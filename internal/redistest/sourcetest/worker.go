//go:build unix

package sourcetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
)

// marks counts the runs of tasks by queue and number.
var marks struct {
	sync.Mutex
	runs map[string]map[int]int
	hold map[string]chan struct{} // tasks of a queue wait until it is closed
}

// Mark is the task of these tests.
func Mark(ctx context.Context, queue string, n int) error {
	marks.Lock()
	if marks.runs == nil {
		marks.runs = map[string]map[int]int{}
	}
	if marks.runs[queue] == nil {
		marks.runs[queue] = map[int]int{}
	}
	marks.runs[queue][n]++
	hold := marks.hold[queue]
	marks.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ran returns how many of the queue's tasks have run at least once, and the most runs of one.
func ran(queue string) (tasks, most int) {
	marks.Lock()
	defer marks.Unlock()
	for _, runs := range marks.runs[queue] {
		most = max(most, runs)
	}
	return len(marks.runs[queue]), most
}

// worker runs a worker until stop is called, which expects that it ends cleanly and soon.
func worker(b *redistest.Bench, rdb *delayed.Store, concurrency int) (stop func()) {
	b.T.Helper()
	log := new(redistest.Log)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{b.Name}, Concurrency: concurrency, HeartbeatLife: time.Minute,
		SweepInterval: 100 * time.Millisecond, Grace: 5 * time.Second, CancelGrace: time.Second, Logger: log.Logger(),
	})
	b.Must(err)
	b.Must(w.Register(Mark))
	ctx, cancel := context.WithCancel(b.T.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := redistest.Await(b, "the worker stops", result); err != nil {
			b.T.Errorf("Run: %v\n%s", err, log)
		}
	})
	b.T.Cleanup(stop)
	b.Until("the worker is connected", func() bool { return w.Status().Connected })
	return stop
}

// handle returns a handle on the source, which is closed at the end of the test.
func handle(b *redistest.Bench, src delayed.Source) *delayed.Store {
	rdb := delayed.FromSource(src)
	b.T.Cleanup(func() { rdb.Close() })
	return rdb
}

// testWorker enqueues 10,000 tasks from 20 goroutines and has a worker run each once, all over one pool of ten
// connections. Then the worker waits, is paused and resumed by a message, and is stopped while it waits.
func testWorker(t *testing.T, open Maker) {
	const producers, each = 20, 500
	b := redistest.NewBench(t, redistest.Shared(t))
	rdb := handle(b, open(t, redistest.Shared(t).Addr(), poolSize))
	q := delayed.NewQueue(b.Name, rdb)
	stop := worker(b, rdb, 16)
	var wg sync.WaitGroup
	for p := range producers {
		wg.Go(func() {
			for i := range each {
				if _, err := q.DelayContext(t.Context(), Mark, b.Name, p*each+i); err != nil {
					t.Errorf("enqueueing: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.Until("all tasks have run", func() bool { tasks, _ := ran(b.Name); return tasks == producers*each })
	if _, most := ran(b.Name); most != 1 {
		t.Errorf("a task has run %d times, expected once", most)
	}
	for range 3 { // an idle worker is woken
		tasks, _ := ran(b.Name)
		_, err := q.DelayContext(t.Context(), Mark, b.Name, tasks)
		b.Must(err)
		b.Until("the next task has run", func() bool { now, _ := ran(b.Name); return now == tasks+1 })
	}
	b.Until("the worker is idle", func() bool { return b.Size("_processing") == 0 })
	stop()
	b.Check(redistest.Invariants{})
}

// testKilledWorker cuts a worker off for good while it runs tasks: the sweeper of another gives them back.
func testKilledWorker(t *testing.T, open Maker) {
	const tasks = 50
	server := redistest.Shared(t)
	b := redistest.NewBench(t, server)
	proxy := faultnet.NewProxy(t, server.Addr())
	hold := make(chan struct{})
	marks.Lock()
	if marks.hold == nil {
		marks.hold = map[string]chan struct{}{}
	}
	marks.hold[b.Name] = hold
	marks.Unlock()
	rdb := handle(b, open(t, server.Addr(), poolSize))
	doomed := delayed.FromSource(open(t, proxy.Addr(), poolSize))
	w, err := delayed.NewWorker(doomed, delayed.WorkerConfig{
		Queues: delayed.Strict{b.Name}, Concurrency: 8, HeartbeatLife: time.Second, Grace: time.Millisecond,
		CancelGrace: time.Millisecond, Logger: new(redistest.Log).Logger(),
	})
	b.Must(err)
	b.Must(w.Register(Mark))
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- w.Run(ctx) }()
	q := delayed.NewQueue(b.Name, rdb)
	for i := range tasks {
		_, err := q.DelayContext(t.Context(), Mark, b.Name, i)
		b.Must(err)
	}
	b.Until("the worker runs tasks", func() bool { n, _ := ran(b.Name); return n >= 8 })
	proxy.Refuse()
	proxy.CutAll()
	marks.Lock()
	delete(marks.hold, b.Name)
	marks.Unlock()
	stop := worker(b, rdb, 8)
	b.Until("all tasks have run elsewhere", func() bool { n, _ := ran(b.Name); return n == tasks })
	b.Until("nothing is left", func() bool { return b.Size("") == 0 && b.Size("_processing") == 0 })
	cancel()
	close(hold)
	_ = redistest.Await(b, "the cut-off worker ends", result) // with an error, as it is cut off
	doomed.Close()
	stop()
}
