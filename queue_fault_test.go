package delayed_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redisstore"
)

// faulty returns a handle whose connections break as plan says.
func (b *bench) faulty(plan faultnet.Plan) (*delayed.Redis, *faultnet.Dialer) {
	d := faultnet.NewDialer(plan, 0)
	pool := &redis.Pool{
		MaxIdle: 10,
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			return redis.DialContext(ctx, "tcp", b.Server.Addr(), redis.DialContextFunc(d.DialContext),
				redis.DialReadTimeout(redisstore.CallTimeout))
		},
	}
	b.T.Cleanup(func() { pool.Close() })
	return delayed.FromPool(pool), d
}

// calls returns a function that reports whether a request runs the given script.
func calls(sc *redisstore.Script) func([]byte) bool {
	return func(request []byte) bool { return bytes.Contains(request, []byte(sc.Sha)) }
}

func TestDelayWithoutReplyIsUnknown(t *testing.T) {
	b := newBench(t)
	f := b.fn("f", func(int) {})
	b.delay(f, 0)
	rdb, _ := b.faulty(faultnet.Once(faultnet.DropReply, calls(redisstore.ScriptEnqueue)))
	if _, err := delayed.NewQueue(b.Name, rdb).Delay(f, 1); !errors.Is(err, delayed.ErrUnknown) {
		t.Errorf("error %v, expected ErrUnknown", err)
	}
	if n := b.Size(""); n != 2 {
		t.Errorf("%d pending, expected 2", n)
	}
	tasks := make([]*delayed.Task, redisstore.MaxBatchTasks+1)
	for i := range tasks {
		tasks[i] = delayed.Call(f, i)
	}
	sent, enqueues := 0, calls(redisstore.ScriptEnqueue)
	rdb, _ = b.faulty(faultnet.Once(faultnet.DropRequest, func(r []byte) bool {
		if enqueues(r) {
			sent++
		}
		return sent == 2
	}))
	refs, err := delayed.NewQueue(b.Name, rdb).DelayMany(t.Context(), tasks...)
	var batch *delayed.BatchError
	if !errors.As(err, &batch) || batch.Sent != redisstore.MaxBatchTasks || len(refs) != redisstore.MaxBatchTasks ||
		!errors.Is(err, delayed.ErrUnknown) {
		t.Errorf("%d refs, %v", len(refs), err)
	}
}
