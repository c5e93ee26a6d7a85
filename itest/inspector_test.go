//go:build unix

package itest_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/embedded"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/rediscluster"
	"github.com/godelayed/delayed/state"
)

// TestInspectorBesideWorkers has inspectors do random actions to the tasks of two queues while producers enqueue and
// workers run them. In the end each task has ended exactly once, and nothing of it is left.
func TestInspectorBesideWorkers(t *testing.T) {
	t.Parallel()
	t.Run("single", func(t *testing.T) {
		t.Parallel()
		server := redistest.Shared(t)
		rdb, err := delayed.Dial(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		name := redistest.Name(t) + ":"
		newFloor(t, rdb.WithPrefix(name), func(string) redis.Conn { return server.Dial(t) }, name, "mail", "post").run()
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		cluster := redistest.StartCluster(t)
		rdb, err := rediscluster.Dial(cluster.URL())
		if err != nil {
			t.Fatal(err)
		}
		newFloor(t, rdb, func(key string) redis.Conn { return cluster.Dial(t, key) }, "", "{a}mail", "{b}mail").run()
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		server, err := embedded.Start(embedded.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { server.Close() })
		rdb, err := delayed.Dial(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		newFloor(t, rdb, func(string) redis.Conn {
			conn, err := redis.Dial("tcp", server.Addr())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			return conn
		}, "", "mail", "post").run()
	})
}

// floor is two queues with their workers, and what has become of their tasks.
type floor struct {
	*testing.T
	rdb    *delayed.Store
	ins    *inspect.Inspector
	conn   func(key string) redis.Conn
	prefix string
	queues [2]*delayed.Queue
	log    redistest.Log
	chore  *delayed.Function

	mu      sync.Mutex
	tries   map[int]int
	done    map[int]int // successful runs
	deleted atomic.Int64
	made    atomic.Int64
}

// What the task with a number does: it succeeds, fails, fails at its first try, or waits for a moment.
const choreKinds = 4

func newFloor(
	t *testing.T, rdb *delayed.Store, conn func(key string) redis.Conn, prefix, a, b string,
) *floor {
	t.Helper()
	f := &floor{T: t, rdb: rdb, conn: conn, prefix: prefix, tries: map[int]int{}, done: map[int]int{}}
	t.Cleanup(func() { rdb.Close() })
	f.queues = [2]*delayed.Queue{delayed.NewQueue(a, rdb), delayed.NewQueue(b, rdb)}
	f.chore = delayed.Func(f.work, delayed.Name("chore"))
	var err error
	if f.ins, err = inspect.New(rdb, inspect.Config{}); err != nil {
		t.Fatal(err)
	}
	return f
}

var errChore = errors.New("this chore fails")

func (f *floor) work(ctx context.Context, i int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries[i]++
	switch i % choreKinds {
	case 1:
		return errChore
	case 2:
		if f.tries[i] == 1 {
			return errChore
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.done[i]++
	return nil
}

func (f *floor) run() {
	f.Helper()
	ctx, cancel := context.WithCancel(f.Context())
	var workers, others sync.WaitGroup
	for range 2 {
		w, err := delayed.NewWorker(f.rdb, delayed.WorkerConfig{
			Queues:      delayed.Weighted{f.queues[0].Name(): 1, f.queues[1].Name(): 1},
			Concurrency: 4, HeartbeatLife: 5 * time.Second, MaxRetry: 2, Logger: f.log.Logger(),
			Backoff: func(int) time.Duration { return 5 * time.Millisecond },
		})
		if err == nil {
			err = w.Register(f.chore)
		}
		if err != nil {
			f.Fatal(err)
		}
		workers.Go(func() {
			if err := w.Run(ctx); err != nil {
				f.Error(err)
			}
		})
	}
	seed := rand.Uint64()
	f.Logf("seed %d", seed)
	for n := range 2 {
		others.Go(func() { f.produce(rand.New(rand.NewPCG(seed, uint64(n)))) })
	}
	for n := range 3 {
		others.Go(func() { f.inspect(rand.New(rand.NewPCG(seed, uint64(n+10)))) })
	}
	others.Wait()
	f.settle()
	cancel()
	workers.Wait()
	f.check()
}

// produce enqueues tasks, each with options of its own.
func (f *floor) produce(r *rand.Rand) {
	for range 150 {
		i := int(f.made.Add(1))
		q := f.queues[r.IntN(2)]
		var opts []delayed.Option
		if r.IntN(2) == 0 {
			opts = append(opts, delayed.TaskID(choreID(i)))
		}
		if r.IntN(3) == 0 {
			opts = append(opts, delayed.UniqueKey(choreID(i), time.Hour))
		}
		if r.IntN(3) == 0 {
			opts = append(opts, delayed.KeepResult(time.Hour))
		}
		switch r.IntN(4) {
		case 0:
			opts = append(opts, delayed.In(time.Hour))
		case 1:
			opts = append(opts, delayed.In(time.Millisecond))
		}
		if _, err := q.With(opts...).Delay(f.chore, i); err != nil {
			f.Error(err)
		}
	}
}

func choreID(i int) string { return fmt.Sprint("chore-", i) }

// inspect does random actions.
func (f *floor) inspect(r *rand.Rand) {
	ctx := context.Background()
	for range 40 {
		from, to := f.queues[r.IntN(2)].Name(), f.queues[r.IntN(2)].Name()
		states := []state.Task{state.Pending, state.Scheduled, state.Retry, state.Archived}
		in := states[r.IntN(len(states))]
		var a inspect.Action
		switch r.IntN(7) {
		case 0:
			a = inspect.RunNow()
		case 1:
			a = inspect.Archive()
		case 2:
			a = inspect.Delete()
		case 3:
			a, in = inspect.Cancel(), []state.Task{state.Pending, state.Active, state.Scheduled}[r.IntN(3)]
		case 4:
			a = inspect.Reschedule(time.Now().Add(time.Duration(r.IntN(40)-20) * time.Millisecond))
		case 5:
			a = inspect.MoveTo(to)
		case 6:
			i := 1 + r.IntN(int(f.made.Load())+1)
			report, err := f.ins.Do(ctx, from, inspect.Edit(delayed.Call(f.chore, i)), choreID(i))
			if err != nil || report.Scanned != 1 || report.Done+report.Skipped+len(report.Failed) != 1 {
				f.Errorf("edit: %+v, %v", report, err)
			}
			continue
		}
		q := inspect.Query{State: in, Filter: inspect.Filter{MinAttempt: r.IntN(2)}}
		if r.IntN(2) == 0 {
			q.Filter.Text = fmt.Sprint(r.IntN(10), ")")
		}
		report, err := f.ins.DoAll(ctx, from, a, q, nil)
		switch {
		case err != nil && report.Scanned == 0: // that action does not fit, or the queues are the same
			continue
		case err != nil:
			f.Errorf("%v of %v tasks: %+v, %v", a, in, report, err)
		case report.Skipped < 0 || report.Done+report.Skipped+len(report.Failed) > report.Scanned:
			f.Errorf("%v of %v tasks: %+v: more than there were", a, in, report)
		case in == state.Archived && a.String() == inspect.Delete().String():
			f.deleted.Add(int64(report.Done))
		}
	}
}

// settle has everything run that still waits.
func (f *floor) settle() {
	f.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for looks := 0; looks < 3; looks++ { // a task may come from where one look is to where it has been
		quiet := true
		for _, q := range f.queues {
			for _, s := range []state.Task{state.Scheduled, state.Retry} {
				r, err := f.ins.DoAll(ctx, q.Name(), inspect.RunNow(), inspect.Query{State: s}, nil)
				if err != nil {
					f.Fatal(err)
				}
				quiet = quiet && r.Scanned == 0
			}
			about, err := f.ins.Queue(ctx, q.Name())
			if err != nil {
				f.Fatal(err)
			}
			quiet = quiet && about.Pending+about.Active+about.Scheduled+about.Retry+about.Parked == 0
		}
		if !quiet {
			looks = -1
		}
	}
}

// check holds what has become of the tasks against what was enqueued.
func (f *floor) check() {
	f.Helper()
	ctx := context.Background()
	ended := f.deleted.Load()
	var archived, canceled int64
	for _, q := range f.queues {
		about, err := f.ins.Queue(ctx, q.Name())
		if err != nil {
			f.Fatal(err)
		}
		archived += int64(about.Archived)
		days, err := f.ins.History(ctx, q.Name(), 2)
		if err != nil {
			f.Fatal(err)
		}
		for _, d := range days {
			canceled += d.Canceled
		}
		key := f.prefix + q.Name()
		conn := f.conn(key)
		redistest.CheckInvariants(f, conn, key, redistest.Invariants{Idle: true})
		if held, err := redis.Int(conn.Do("EXISTS", key+"_locks")); err != nil || held != 0 {
			f.Errorf("queue %s still has locks, %v", q.Name(), err)
		}
		if gaps, err := conn.Do("HGET", key+"_control", "gaps"); err != nil || gaps != nil {
			f.Errorf("queue %s still counts %s gaps, %v", q.Name(), gaps, err)
		}
	}
	for i, n := range f.done {
		if n > 1 {
			f.Errorf("task %d has succeeded %d times", i, n)
		}
	}
	ended += archived + canceled + int64(len(f.done))
	if made := f.made.Load(); ended != made {
		f.Errorf("%d tasks were enqueued: %d have succeeded, %d are archived, %d were canceled, %d deleted: %d in all",
			made, len(f.done), archived, canceled, f.deleted.Load(), ended)
	}
	if f.Failed() {
		f.Logf("log of the workers:\n%.4000s", f.log.String())
	}
}
