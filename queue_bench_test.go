package delayed_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
)

func benchTask(int64, string) {}

var benchFunction = delayed.Func(benchTask, delayed.Name("bench.task"))

// produce calls f for 0 to b.N−1 from a number of goroutines.
func produce(b *testing.B, producers int, f func(i int) error) {
	b.Helper()
	var group sync.WaitGroup
	var next atomic.Int64
	b.ReportAllocs()
	b.ResetTimer()
	for range producers {
		group.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := f(int(i - 1)); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	group.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkDelayDurable enqueues tasks on a server with one replica, with each setting that makes it less likely that a
// task is lost. docs/SERVERS.md quotes it.
func BenchmarkDelayDurable(b *testing.B) {
	for _, fsync := range []string{"none", "everysec", "always"} {
		for _, replicas := range []int{0, 1} {
			for _, producers := range []int{1, 64} {
				name := fmt.Sprintf("appendfsync=%s/replicas=%d/producers=%d", fsync, replicas, producers)
				b.Run(name, func(b *testing.B) {
					var args []string
					if fsync != "none" {
						args = []string{"--appendonly", "yes", "--appendfsync", fsync}
					}
					master, _ := replicated(b, args...)
					rdb, err := delayed.Dial(master.URL())
					if err != nil {
						b.Fatal(err)
					}
					defer rdb.Close()
					q, err := delayed.OpenQueue(rdb, delayed.QueueConfig{Name: "mail", WaitReplicas: replicas})
					if err != nil {
						b.Fatal(err)
					}
					call := func(i int) error {
						_, err := q.Delay(benchFunction, 1_700_000_000_000+int64(i), "hello-task")
						return err
					}
					// The master sends the replica nothing until that has confirmed its copy, once a second.
					if err := call(0); err != nil {
						b.Fatal(err)
					}
					produce(b, producers, call)
				})
			}
		}
	}
}

// BenchmarkDelay enqueues one task a call, from several goroutines at once.
func BenchmarkDelay(b *testing.B) {
	for _, producers := range []int{1, 2, 4, 16, 64, 256} {
		for _, cancellable := range []bool{false, true} {
			b.Run(fmt.Sprintf("producers=%d/cancellable=%v", producers, cancellable), func(b *testing.B) {
				env := newBench(b)
				defer env.Do("UNLINK", env.Name, env.Name+"_noti")
				ctx := context.WithoutCancel(b.Context())
				if cancellable {
					ctx = b.Context()
				}
				produce(b, producers, func(i int) error {
					_, err := env.q.DelayContext(ctx, benchFunction, 1_700_000_000_000+int64(i), "hello-task")
					return err
				})
			})
		}
	}
}

// BenchmarkPair measures the least work of enqueueing: two RPUSH in one round trip, neither atomic nor with an id.
func BenchmarkPair(b *testing.B) {
	server := redistest.Shared(b)
	conn, name, message := server.Dial(b), redistest.Name(b), make([]byte, 36)
	defer server.Do(b, "UNLINK", name, name+"_noti")
	produce(b, 1, func(int) error {
		if err := conn.Send("RPUSH", name, message); err != nil {
			return err
		}
		_, err := conn.Do("RPUSH", name+"_noti", 1)
		return err
	})
}

// BenchmarkDelayMany enqueues a thousand tasks a call; a task is one operation.
func BenchmarkDelayMany(b *testing.B) {
	const many = 1000
	env := newBench(b)
	defer env.Do("UNLINK", env.Name, env.Name+"_noti")
	tasks := make([]*delayed.Task, 0, many)
	b.ReportAllocs()
	for i := range b.N {
		if tasks = append(tasks,
			delayed.Call(benchFunction, 1_700_000_000_000+int64(i), "hello-task")); len(tasks) < many &&
			i+1 < b.N {
			continue
		}
		if _, err := env.q.DelayMany(b.Context(), tasks...); err != nil {
			b.Fatal(err)
		}
		tasks = tasks[:0]
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkNewTask encodes a task without enqueueing it.
func BenchmarkNewTask(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		if t := delayed.Call(benchFunction, 1_700_000_000_000+int64(i), "hello-task"); t.Path() == "" {
			b.Fatal(t)
		}
	}
}

func BenchmarkTaskID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		runtime.KeepAlive(wire.NewTaskID())
	}
}
