package delayed_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
)

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
