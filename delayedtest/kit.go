package delayedtest

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/embedded"
	"github.com/godelayed/delayed/internal/seam"
)

// kit is a server, and the source of connections that its queues use.
type kit struct {
	srv  *embedded.Server
	pool *redis.Pool

	mu       sync.Mutex // protects the following
	fault    Fault
	inline   map[string]*inliner // by key of the pending list
	steppers map[seam.Stepper]bool
}

var (
	_ delayed.Source = (*kit)(nil)
	_ seam.Listener  = (*kit)(nil)
)

// NewRedis starts a server of its own for the test and returns a handle on it, for several queues on one server. Both
// are closed when the test and its subtests are over. Workers that run on it must have stopped by then.
func NewRedis(t testing.TB) *delayed.Store {
	t.Helper()
	srv, err := embedded.Start(embedded.Config{Virtual: true})
	if err != nil {
		t.Fatalf("delayedtest: %v", err)
	}
	k := &kit{srv: srv, inline: map[string]*inliner{}, steppers: map[seam.Stepper]bool{}}
	k.pool = &redis.Pool{MaxIdle: 16, DialContext: func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", srv.Addr())
	}}
	rdb := delayed.FromSource(k)
	t.Cleanup(func() {
		if err := errors.Join(rdb.Close(), srv.Close()); err != nil {
			t.Errorf("delayedtest: closing the server: %v", err)
		}
	})
	return rdb
}

// NewQueue returns a queue on a server of its own, both of which end with the test. Its name is "test".
func NewQueue(t testing.TB) *delayed.Queue {
	t.Helper()
	return delayed.NewQueue("test", NewRedis(t))
}

// Now returns the time by which the tasks of q become due. It stands still between calls of Drain, Run and Advance.
func Now(t testing.TB, q *delayed.Queue) time.Time {
	t.Helper()
	return kitOf(t, q).srv.Now()
}

// Advance lets time pass for q and all queues on its server. Nothing runs: give Drain or Run what became due. Workers
// that the test runs itself see it when they look next, which they do at least every five real seconds.
func Advance(t testing.TB, q *delayed.Queue, d time.Duration) {
	t.Helper()
	if d < 0 {
		t.Fatalf("delayedtest: Advance(%v): expected a duration from 0, time does not go back", d)
	}
	if err := kitOf(t, q).advance(t.Context(), d); err != nil {
		t.Fatalf("delayedtest: Advance: %v", err)
	}
}

// advance moves the server's time.
func (k *kit) advance(ctx context.Context, d time.Duration) error {
	k.srv.Advance(d)
	k.mu.Lock()
	defer k.mu.Unlock()
	for s := range k.steppers {
		if err := s.Beat(ctx); err != nil {
			return err
		}
	}
	return nil
}

// kitOf returns the server of a queue.
func kitOf(t testing.TB, q *delayed.Queue) *kit {
	t.Helper()
	if q == nil {
		t.Fatal("delayedtest: the queue is nil: expected one of NewQueue, or one on the handle of NewRedis")
	}
	src, _, name := seam.Locate(q)
	k, ok := src.(*kit)
	if !ok {
		t.Fatalf("delayedtest: queue %q is not on a server of this package: expected one of NewQueue, or one on the "+
			"handle of NewRedis", name)
	}
	return k
}

// direct returns the queue on a handle that bypasses faults and Inline.
func direct(q *delayed.Queue) *delayed.Queue {
	src, prefix, name := seam.Locate(q)
	if k, ok := src.(*kit); ok {
		return delayed.NewQueue(name, k.srv.Redis().WithPrefix(prefix))
	}
	return q
}

// Conn implements delayed.Source.
func (k *kit) Conn(ctx context.Context, _ string) (redis.Conn, error) {
	if k.broken() == Down {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused by delayedtest.Break")}
	}
	c, err := k.pool.GetContext(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{c, k}, nil
}

// Slot implements delayed.Source.
func (k *kit) Slot(string) int { return 0 }

// Close implements delayed.Source.
func (k *kit) Close() error { return k.pool.Close() }

// Now implements seam.Listener.
func (k *kit) Now() time.Time { return k.srv.Now() }

// Fault is a way in which Redis fails producers, and workers that the test runs itself. Drain, Run and the functions
// that look at queues are not affected.
type Fault int

const (
	// Down is a Redis that nobody can connect to. Delay returns an error of dialling.
	Down Fault = iota + 1
	// Full is a Redis whose memory is full: Delay returns ErrFull, and nothing is enqueued. All else goes on.
	Full
	// Lost is a connection that breaks before the answer: Delay returns ErrUnknown, although the task is enqueued.
	Lost
)

// Break lets Redis fail in a way, for q and all queues on its server, until the returned function is called or the test
// ends.
func Break(t testing.TB, q *delayed.Queue, f Fault) (mend func()) {
	t.Helper()
	k := kitOf(t, q)
	k.mu.Lock()
	k.fault = f
	k.mu.Unlock()
	mend = func() {
		k.mu.Lock()
		k.fault = 0
		k.mu.Unlock()
	}
	t.Cleanup(mend)
	return mend
}

func (k *kit) broken() Fault {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.fault
}

// conn is a connection that fails as Break wants.
type conn struct {
	redis.Conn
	kit *kit
}

var (
	_ redis.ConnWithTimeout = (*conn)(nil)
	_ redis.ConnWithContext = (*conn)(nil)
)

// do sends a command, or fails.
func (c *conn) do(cmd string, args []any, send func() (any, error)) (any, error) {
	fault := c.kit.broken()
	if fault == Down {
		c.Close()
		return nil, io.EOF
	}
	if fault == 0 || (cmd != "EVALSHA" && cmd != "EVAL") || len(args) == 0 {
		return send()
	}
	script, _ := args[0].(string)
	if !seam.Refusable(script) {
		return send()
	}
	if fault == Full {
		return nil, redis.Error("OOM command not allowed when used memory > 'maxmemory'.")
	}
	reply, err := send()
	if fault == Lost && err == nil {
		return nil, io.ErrUnexpectedEOF
	}
	return reply, err
}

// Do implements redis.Conn.
func (c *conn) Do(cmd string, args ...any) (any, error) {
	return c.do(cmd, args, func() (any, error) { return c.Conn.Do(cmd, args...) })
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (c *conn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	return c.do(cmd, args, func() (any, error) { return redis.DoWithTimeout(c.Conn, timeout, cmd, args...) })
}

// DoContext implements redis.ConnWithContext.
func (c *conn) DoContext(ctx context.Context, cmd string, args ...any) (any, error) {
	return c.do(cmd, args, func() (any, error) { return redis.DoContext(c.Conn, ctx, cmd, args...) })
}

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (c *conn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, timeout)
}

// ReceiveContext implements redis.ConnWithContext.
func (c *conn) ReceiveContext(ctx context.Context) (any, error) {
	return redis.ReceiveContext(c.Conn, ctx)
}
