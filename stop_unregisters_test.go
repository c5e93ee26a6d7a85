package delayed_test

import (
	"bytes"
	"context"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestStopUnregistersAgain breaks the connections of a worker while it unregisters. It tries again, so Run returns nil,
// and no sweeper has to remove the worker.
func TestStopUnregistersAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	failures := 3
	d := faultnet.NewDialer(func(request []byte) faultnet.Fault {
		if failures > 0 && bytes.Contains(request, []byte(redisstore.Scripts["unregister"].Sha)) {
			failures--
			return faultnet.DropRequest
		}
		return faultnet.None
	}, 0)
	pool := &redis.Pool{MaxIdle: 10, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", b.Server.Addr(), redis.DialContextFunc(d.DialContext),
			redis.DialReadTimeout(redisstore.CallTimeout))
	}}
	t.Cleanup(func() { pool.Close() })
	s := b.workWith(delayed.FromPool(pool), b.config(), b.fn("f", func() {}))
	b.Must(s.stop())
	if n := d.Counts().DroppedRequests; n != 3 {
		t.Errorf("%d requests were lost, expected 3", n)
	}
	if n := b.Size("_workers"); n != 0 {
		t.Errorf("Redis knows %d workers, expected none", n)
	}
	b.Check(redistest.Invariants{})
}
