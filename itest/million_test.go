//go:build unix

package itest_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestMillion gives workers a very long queue whose notify list does not fit: without any notification, and with far
// too many. The queue has a million tasks for make limits, otherwise 20,000.
func TestMillion(t *testing.T) {
	const limit = 5 * time.Millisecond // of one script
	tasks := 20_000
	if limits.On() {
		tasks = 1_000_000
	}
	surplus := tasks / 10
	for _, test := range []struct {
		name  string
		spoil func(t *testing.T, conn redis.Conn, noti string)
	}{
		{"without notifications", func(t *testing.T, conn redis.Conn, noti string) {
			t.Helper()
			if _, err := conn.Do("DEL", noti); err != nil {
				t.Fatal(err)
			}
		}},
		{"surplus notifications", func(t *testing.T, conn redis.Conn, noti string) {
			t.Helper()
			ones := redis.Args{noti}
			for range 1000 {
				ones = ones.Add("1")
			}
			for range surplus / 1000 {
				if _, err := conn.Do("RPUSH", ones...); err != nil {
					t.Fatal(err)
				}
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := redistest.Start(t)
			queue := redistest.Name(t)
			rdb := handle(t, server)
			var started atomic.Int64
			first := make(chan time.Time, 1)
			task := delayed.Func(func() {
				if started.Add(1) == 1 {
					first <- time.Now()
				}
			}, delayed.Name("itest.nothing"))
			call := delayed.Call(task)
			enqueueAll(t, delayed.NewQueue(queue, rdb), tasks, func(int) *delayed.Task { return call })
			conn := server.Dial(t)
			test.spoil(t, conn, queue+"_noti")
			server.WatchSlow(t, limit)
			waited := server.Waited()

			start := time.Now()
			w := runWorker(t, rdb, delayed.WorkerConfig{Queues: delayed.Strict{queue}, Concurrency: 100, Prefetch: 400},
				task)
			select {
			case at := <-first:
				if took := at.Sub(start); took > time.Second {
					limits.Errorf(t, "the first task started %v after the worker, expected at most 1 s", took)
				}
			case <-time.After(time.Minute):
				t.Fatal("no task started within a minute")
			}
			waitForAtMost(t, 10*time.Minute, "all tasks to be done", func() bool {
				return int(started.Load()) >= tasks && count(t, server, queue, "processed") >= tasks
			})
			took := time.Since(start)
			redistest.CheckInvariants(t, conn, queue, redistest.Invariants{})
			w.stop()
			redistest.CheckInvariants(t, conn, queue, redistest.Invariants{Idle: true})
			if n := int(started.Load()); n != tasks {
				t.Errorf("%d tasks were started, expected %d", n, tasks)
			}
			checkSlow(t, server.SlowLog(t), server.Waited()-waited)
			t.Logf("%d tasks in %v", tasks, took.Round(time.Millisecond))
		})
	}
}

// checkSlow expects no script in the slow log. The slow log measures wall-clock time, so on a busy machine it also
// contains scripts that had to wait for a processor: it accepts them as long as all of them together took no longer
// than the server waited.
func checkSlow(t *testing.T, log []redistest.Slow, waited time.Duration) {
	t.Helper()
	var sum time.Duration
	for _, slow := range log {
		if slow.Args[0] == "EVALSHA" || slow.Args[0] == "EVAL" {
			sum += slow.Took
		}
	}
	if sum > waited {
		limits.Errorf(t, "%d commands in the slow log, the scripts among them took %v, while the server waited %v for "+
			"processors; the slowest took %v: %.200q",
			len(log), sum, waited, log[0].Took, log[0].Args)
	}
}
