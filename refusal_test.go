package delayed_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// refusing returns a source on which calls of a script fail until times is negative: either Redis refuses them, as it
// does while it loads its data, or Redis executes them and the answers are lost.
func refusing(src delayed.Source, script *redisstore.Script, lost bool, times *atomic.Int32) delayed.Source {
	return redistest.Intercept(src, func(cmd string, args []any, send func() (any, error)) (any, error) {
		if cmd != "EVALSHA" || args[0] != script.Sha || times.Add(-1) < 0 {
			return send()
		}
		if !lost {
			return nil, redis.Error("LOADING Redis is loading the dataset in memory")
		}
		if reply, err := send(); err != nil { // Redis does not know the script yet
			times.Add(1)
			return reply, err
		}
		return nil, errors.New("connection reset by peer")
	})
}

// TestEndingsAreToldAfterRefusals: Redis refuses the same call once, or several times in a row. In the end each task
// has ended once, the tasks after it have run, the worker holds no claims, and the log has two lines: one that the call
// fails, and one that it works again.
func TestEndingsAreToldAfterRefusals(t *testing.T) {
	t.Parallel()
	const tasks = 3
	for name, c := range map[string]struct {
		script *redisstore.Script
		opts   []delayed.Option
		err    error
		want   map[string]int // counters
	}{
		"ack": {redisstore.ScriptAck, nil, nil, map[string]int{"processed": 2 * tasks}},
		"complete": {
			redisstore.ScriptComplete,
			[]delayed.Option{delayed.KeepResult(time.Hour)},
			nil,
			map[string]int{"processed": 2 * tasks},
		},
		"retry": {
			redisstore.ScriptShelve, nil, errors.New("no"),
			map[string]int{"processed": 2 * tasks, "failed": 2 * tasks, "retried": 2 * tasks},
		},
		"archive": {
			redisstore.ScriptShelve,
			[]delayed.Option{delayed.MaxRetry(0)},
			errors.New("no"),
			map[string]int{"processed": 2 * tasks, "failed": 2 * tasks, "archived": 2 * tasks},
		},
		"snooze": {redisstore.ScriptShelve, nil, delayed.Snooze(time.Hour), map[string]int{"snoozed": 2 * tasks}},
	} {
		for how, lost := range map[string]bool{"refused": false, "unanswered": true} {
			for _, times := range []int{1, 2, 4} {
				t.Run(name+" "+how+" "+strings.Repeat("I", times), func(t *testing.T) {
					t.Parallel()
					b := newBench(t)
					var left atomic.Int32
					left.Store(int32(times))
					rdb := delayed.FromSource(refusing(b.src, c.script, lost, &left))
					defer rdb.Close()
					var mu sync.Mutex
					ran := map[int]int{}
					f := b.fn("f", func(n int) error {
						mu.Lock()
						defer mu.Unlock()
						ran[n]++
						return c.err
					})
					cfg := b.config()
					cfg.Concurrency, cfg.Prefetch, cfg.HeartbeatLife = 2, 1, time.Minute
					cfg.Backoff = func(int) time.Duration { return time.Hour }
					w := b.workWith(rdb, cfg, f)
					q := b.q.With(c.opts...)
					for n := range tasks {
						b.delayWith(q, f, n)
					}
					b.Until("the first have ended",
						func() bool { return left.Load() < 0 || name == "ack" && b.Size("") == 0 })
					for n := range tasks {
						b.delayWith(q, f, tasks+n)
					}
					b.Idle()
					w.mustStop()
					for n := range 2 * tasks {
						if ran[n] != 1 {
							t.Errorf("task %d ran %d times", n, ran[n])
						}
					}
					got := b.counters()
					for counter, n := range c.want {
						if got[counter] != n {
							t.Errorf("%d %s, expected %d, in %v", got[counter], counter, n, got)
						}
					}
					if got["lost"] != 0 {
						t.Errorf("%d claims are counted as lost", got["lost"])
					}
					filed := b.Size("_retry") + b.Size("_archived") + b.Size("_scheduled") + b.Size("_completed")
					if want := 2 * tasks; name != "ack" && filed != want {
						t.Errorf("%d tasks are filed, expected %d", filed, want)
					}
					failed := strings.Count(b.log.String(), "cannot tell Redis how tasks ended")
					over := strings.Count(b.log.String(), "Redis has been told how tasks ended")
					if name != "ack" && (failed != 1 || over != 1) {
						t.Errorf("the log tells %d times that it fails and %d times that it is over:\n%s", failed, over,
							b.log)
					}
				})
			}
		}
	}
}
