package delayed_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// flakySource is a source that refuses some connections to end claims.
type flakySource struct {
	delayed.Source
	next *atomic.Int64 // how many connections it refuses next
}

func (s flakySource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	if strings.Contains(key, "_processing:") && s.next.Add(-1) >= 0 {
		return nil, errors.New("connection refused")
	}
	return s.Source.Conn(ctx, key)
}

// TestUnansweredThenRefused: Redis has ended a claim, but its answer was lost, and then connections fail. When Redis
// finally answers that the claim does not exist, the worker does not count it as lost.
func TestUnansweredThenRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var lose atomic.Bool
	var refuse atomic.Int64
	src := redistest.Intercept(b.src, func(cmd string, args []any, send func() (any, error)) (any, error) {
		losing := cmd == "EVALSHA" && args[0] == redisstore.ScriptShelve.Sha && lose.Load()
		reply, err := send()
		if losing {
			refuse.Store(3)
			lose.Store(false)
			return nil, errors.New("connection reset by peer")
		}
		return reply, err
	})
	rdb := delayed.FromSource(flakySource{src, &refuse})
	defer rdb.Close()
	cfg := b.config()
	cfg.HeartbeatLife, cfg.NoSweeper = time.Hour, true // only the finisher ends claims meanwhile
	cfg.Backoff = func(int) time.Duration { return time.Hour }
	f := b.fn("f", func() error { return errors.New("no") })
	w := b.workWith(rdb, cfg, f)
	b.delay(f) // this loads the script in Redis
	b.Until("the first is filed", func() bool { return b.Size("_retry") == 1 })
	lose.Store(true)
	b.delay(f)
	b.Until("connections were refused", func() bool { return !lose.Load() && refuse.Load() < 0 })
	w.mustStop()
	if c := b.counters(); c["lost"] != 0 || c["retried"] != 2 {
		t.Errorf("counters %v, expected two retries and no lost claim", c)
	}
}
