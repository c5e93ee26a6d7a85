//go:build unix

package itest_test

import (
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
)

// runs records how often each task was started and ended, by its number.
type runs struct {
	mu             sync.Mutex
	starts, ends   map[int]int
	firstEnd, last time.Time
}

func newRuns() *runs { return &runs{starts: map[int]int{}, ends: map[int]int{}} }

func (r *runs) start(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.starts[i]++
}

func (r *runs) end(i int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = time.Now()
	if r.firstEnd.IsZero() {
		r.firstEnd = r.last
	}
	r.ends[i]++
}

// ended returns the number of tasks that ended at least once.
func (r *runs) ended() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.ends)
}

// again returns how often tasks were started again.
func (r *runs) again() (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, starts := range r.starts {
		n += starts - 1
	}
	return n
}

// TestLostReplies breaks connections before and after Redis executes commands, and delays answers. No claim may remain,
// and no task may run twice without a reason.
func TestLostReplies(t *testing.T) {
	t.Parallel()
	const (
		workers = 8
		life    = 2 * time.Second
	)
	tasks := inChaos(20_000, 100_000)
	unknown := tasks / 20 // further tasks that no worker can run, among the others
	server := redistest.Start(t)
	queue := redistest.Name(t)
	seed := uint64(time.Now().UnixNano())
	dialer := faultnet.NewDialer(nil, 600*time.Millisecond)
	pool := server.Pool(t, redis.DialContextFunc(dialer.DialContext), redis.DialReadTimeout(5*time.Second),
		redis.DialWriteTimeout(5*time.Second))
	rdb := delayed.FromPool(pool)
	r := newRuns()
	task := delayed.Func(func(i int) {
		r.start(i)
		if i%7 == 0 { // so that the tasks of one claim do not end in their order
			<-time.After(time.Duration(i%5) * time.Millisecond)
		}
		r.end(i)
	}, delayed.Name("itest.count"))
	var all []*localWorker
	for range workers {
		all = append(all, runWorker(t, rdb, delayed.WorkerConfig{
			Queues: delayed.Strict{queue}, Concurrency: 4, Prefetch: 4, HeartbeatLife: life,
			SweepInterval: 500 * time.Millisecond,
		}, task))
	}
	dialer.SetPlan(faultnet.Random(seed, faultnet.Rates{DropReply: 0.01, DropRequest: 0.005, Delay: 0.005}))
	q := delayed.NewQueue(queue, handle(t, server))
	every := (tasks + unknown) / unknown
	enqueueAll(t, q, tasks+unknown, func(i int) *delayed.Task {
		if i%every == every-1 {
			return delayed.NewGoTask("itest.unknown")
		}
		return delayed.Call(task, i)
	})
	waitForAtMost(t, 4*time.Minute, "all tasks to end", func() bool { return r.ended() == tasks })
	dialer.SetPlan(nil)
	<-time.After(3 * life / 4)
	for _, w := range all {
		if n, err := redis.Int(server.Do(t, "HLEN", queue+"_processing:"+w.ID()), nil); err != nil || n > 0 {
			t.Errorf("worker %s still holds %d claims, %v", w.ID(), n, err)
		}
	}
	redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{})
	for _, w := range all {
		w.stop()
	}
	redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{Idle: true})
	faults, swept, again := dialer.Counts(), count(t, server, queue, "swept"), r.again()
	t.Logf("seed %d: %v; %d tasks in %v, %d started again, %d swept", seed, faults, tasks, r.last.Sub(r.firstEnd),
		again, swept)
	if again > swept {
		t.Errorf("%d starts have no cause: tasks were started again %d times, but only %d were taken from workers "+
			"that seemed dead",
			again-swept, again, swept)
	}
	for counter, want := range map[string]int{"processed": tasks, "parked": unknown, "archived": 0, "failed": 0} {
		if n := count(t, server, queue, counter); n != want {
			t.Errorf("Redis counted %d tasks as %s, expected %d", n, counter, want)
		}
	}
	if faults.DroppedReplies < 50 || faults.DroppedRequests < 25 || faults.DelayedReplies < 10 ||
		faults.DelayedRequests < 10 {
		t.Errorf("too few faults to prove anything: %v", faults)
	}
}

// enqueueAll enqueues n tasks, numbered from 0.
func enqueueAll(t *testing.T, q *delayed.Queue, n int, task func(i int) *delayed.Task) {
	t.Helper()
	for i := 0; i < n; {
		batch := make([]*delayed.Task, min(1000, n-i))
		for j := range batch {
			batch[j] = task(i)
			i++
		}
		if _, err := q.DelayMany(t.Context(), batch...); err != nil {
			t.Fatal(err)
		}
	}
}
