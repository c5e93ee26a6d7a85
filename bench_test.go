package delayed_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

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

// BenchmarkDrain drains a full queue: of messages without id, so small that Redis would store a short processing hash
// as one block of memory, and of ordinary tasks. server-us is the time that the server's thread spends in scripts for
// each task.
func BenchmarkDrain(b *testing.B) {
	for _, legacy := range []bool{true, false} {
		for _, concurrency := range []int{1, 10, 50} {
			b.Run(fmt.Sprintf("legacy=%v/concurrency=%d", legacy, concurrency), func(b *testing.B) {
				env := newBench(b)
				q, err := delayed.OpenQueue(env.rdb, delayed.QueueConfig{Name: env.Name, Legacy: legacy})
				if err != nil {
					b.Fatal(err)
				}
				var ran atomic.Int64
				f := env.fn("f", func(int64, string) { ran.Add(1) })
				tasks := make([]*delayed.Task, b.N)
				for i := range tasks {
					tasks[i] = delayed.Call(f, 1_700_000_000_000+int64(i), "hello-task")
				}
				if _, err := q.DelayMany(b.Context(), tasks...); err != nil {
					b.Fatal(err)
				}
				cfg := env.config()
				cfg.Concurrency, cfg.HeartbeatLife = concurrency, time.Hour
				before := scriptTime(b, env)
				b.ResetTimer()
				w := env.work(cfg, f)
				env.Until("all have run", func() bool { return ran.Load() == int64(b.N) })
				env.Idle()
				b.StopTimer()
				b.ReportMetric(float64(scriptTime(b, env)-before)/float64(b.N), "server-us/task")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
				w.mustStop()
			})
		}
	}
}

// scriptTime returns the microseconds that the server has spent in scripts.
func scriptTime(b *testing.B, env *bench) int {
	b.Helper()
	info, err := redis.String(env.Conn.Do("INFO", "commandstats"))
	if err != nil {
		b.Fatal(err)
	}
	sum := 0
	for line := range strings.Lines(info) {
		if strings.HasPrefix(line, "cmdstat_eval") {
			_, rest, _ := strings.Cut(line, "usec=")
			text, _, _ := strings.Cut(rest, ",")
			n, err := strconv.Atoi(text)
			if err != nil {
				b.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// BenchmarkAwait measures the time from the end of a function to the return of Await in another goroutine that has been
// waiting: p50-us and p99-us.
func BenchmarkAwait(b *testing.B) {
	for _, waiters := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("waiters=%d", waiters), func(b *testing.B) {
			env := newBench(b)
			open := make(chan struct{})
			f := env.fn("f", func() int64 {
				<-open
				return time.Now().UnixNano()
			}, delayed.KeepResult(time.Minute))
			cfg := env.config()
			cfg.Concurrency = waiters
			w := env.work(cfg, f)
			var all []time.Duration
			var mu sync.Mutex
			b.ResetTimer()
			for done := 0; done < b.N; done += waiters {
				var waiting sync.WaitGroup
				refs := make([]*delayed.Ref, min(waiters, b.N-done))
				for i := range refs {
					refs[i] = env.delay(f)
				}
				for _, ref := range refs {
					waiting.Go(func() {
						end, err := delayed.Await[int64](b.Context(), ref)
						took := time.Duration(time.Now().UnixNano() - end)
						if err != nil {
							b.Error(err)
						}
						mu.Lock()
						all = append(all, took)
						mu.Unlock()
					})
				}
				env.Until("all have subscribed", func() bool {
					return !slices.ContainsFunc(refs, func(r *delayed.Ref) bool { return env.subscribed(r.ID()) == 0 })
				})
				for range refs {
					open <- struct{}{}
				}
				waiting.Wait()
			}
			b.StopTimer()
			w.mustStop()
			slices.Sort(all)
			b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(0, "ns/op")
			env.Do("UNLINK", env.Name+"_results", env.Name+"_completed")
		})
	}
}
