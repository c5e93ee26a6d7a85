//go:build unix

package itest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/itest/procs"
)

// firingSetup configures a process that fires groups.
type firingSetup struct{ URL, Queue string }

// firingRole is a worker that knows no function: it makes one call of the calls of a group, and parks it.
var firingRole = procs.Define("firing", func(ctx context.Context, s firingSetup) error {
	rdb, err := delayed.Dial(s.URL)
	if err != nil {
		return err
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	log.SetLevel(logrus.ErrorLevel)
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{s.Queue}, Concurrency: 4, HeartbeatLife: time.Second,
		SweepInterval: 200 * time.Millisecond, Logger: log,
	})
	if err != nil {
		return err
	}
	return w.Run(ctx)
})

// TestKillOfWorkersThatFire kills workers while they make calls of groups. No call may be lost, and none may be part of
// two combined calls.
func TestKillOfWorkersThatFire(t *testing.T) {
	t.Parallel()
	const (
		groups    = 50
		processes = 3
		size      = 7
	)
	least, kills := inChaos(100, 400), inChaos(12, 60) // calls of each group; kills in all
	server := redistest.Start(t)
	queue := redistest.Name(t)
	start := func() *childproc.Process { return firingRole.Start(t, firingSetup{server.URL(), queue}) }
	var workers []*childproc.Process
	for range processes {
		workers = append(workers, start())
	}
	index := delayed.Func(func(string, ...int) {}, delayed.Name("itest.index"))
	q := delayed.NewQueue(queue, handle(t, server)).With(
		delayed.Group("k"), delayed.Gather(delayed.GatherPolicy{Grace: 20 * time.Millisecond, MaxSize: size}),
	)
	// Calls come all the time, so that a worker is killed while it fires groups.
	var producers sync.WaitGroup
	var made [groups]int // calls of each group; those of one group are made by one producer
	over := make(chan struct{})
	for p := range processes {
		producers.Go(func() {
			for i := 0; ; i++ {
				for g := p; g < groups; g += processes {
					if _, err := q.Delay(index, fmt.Sprint(g), i); err != nil {
						t.Error(err)
						return
					}
					made[g]++
				}
				select {
				case <-over:
					if i >= least {
						return
					}
				default:
				}
			}
		})
	}
	for range kills {
		victim := rand.IntN(processes)
		<-time.After(time.Duration(50+rand.IntN(100)) * time.Millisecond) // at any point of its work
		workers[victim].Kill()
		workers[victim] = start()
	}
	close(over)
	producers.Wait()
	card := func(suffix string) int {
		n, err := redis.Int(server.Do(t, "ZCARD", queue+suffix), nil)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	waitForAtMost(t, 2*time.Minute, "all groups to be fired and all calls to be parked", func() bool {
		busy, err := redis.Int(server.Do(t, "EVAL",
			`return redis.call('ZCARD', KEYS[1] .. '_groups') + redis.call('LLEN', KEYS[1])
				+ #redis.call('KEYS', KEYS[1] .. '_processing:*')`, 1, queue), nil)
		return err == nil && busy == 0
	})
	for _, w := range workers {
		if err := w.Stop(40 * time.Second); err != nil {
			t.Errorf("%v\n%s", err, w.Output())
		}
	}
	redistest.CheckInvariants(t, server.Dial(t), queue, redistest.Invariants{})
	messages, err := redis.StringMap(server.Do(t, "HGETALL", queue+"_tasks"), nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for id, raw := range messages {
		msg, err := wire.Parse([]byte(raw), wire.Default)
		if err != nil {
			t.Fatal(err)
		}
		values, _, err := wire.DecodeAny(msg.Payload)
		args, _ := values.([]any)
		if err != nil || len(args) != 2 {
			t.Fatalf("task %s: %x, %v", id, msg.Payload, err)
		}
		ids, _ := args[1].([]any)
		if len(ids) > size {
			t.Errorf("task %s is made of %d calls", id, len(ids))
		}
		for _, i := range ids {
			got[fmt.Sprintf("%v/%v", args[0], i)]++
		}
	}
	calls := 0
	for g := range groups {
		for i := range made[g] {
			if n := got[fmt.Sprintf("%d/%d", g, i)]; n != 1 {
				t.Errorf("group %d: call %d is part of %d calls", g, i, n)
			}
		}
		calls += made[g]
	}
	t.Logf("%d calls became %d, %d workers were killed, %d claims swept", calls, len(messages), kills,
		count(t, server, queue, "swept"))
	if n := card("_parked") + card("_archived"); n != len(messages) {
		t.Errorf("%d tasks are filed, expected %d", n, len(messages))
	}
}
