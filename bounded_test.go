package delayed_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
)

// TestStopIsBoundedWhileRedisIsFrozen waits longer than all other tests of the package, so they run while it does.
func TestStopIsBoundedWhileRedisIsFrozen(t *testing.T) {
	b := newBenchOn(t, redistest.Start(t))
	entered, cancelled := make(chan struct{}), make(chan time.Time, 1)
	f := b.fn("f", func(ctx context.Context) { close(entered); <-ctx.Done(); cancelled <- time.Now() })
	cfg := b.config()
	cfg.Grace, cfg.CancelGrace = 500*time.Millisecond, 500*time.Millisecond
	names := delayed.Strict{b.Name}
	for i := range 10 {
		names = append(names, fmt.Sprintf("%s%d", b.Name, i))
	}
	cfg.Queues = names
	w, err := delayed.NewWorker(b.rdb, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Register(f); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	type end struct {
		err error
		at  time.Time
	}
	result := make(chan end, 1)
	go func() {
		err := w.Run(ctx)
		result <- end{err, time.Now()}
	}()
	b.Until("connected", func() bool { return w.Status().Connected })
	b.delay(f)
	await(b, "the task", entered)
	b.Server.Pause(t)
	start := time.Now()
	cancel()
	t.Parallel() // which returns when the other tests that are not parallel have run
	at := <-cancelled
	t.Logf("handler told to stop after %v", at.Sub(start))
	if d := at.Sub(start); d > 7*time.Second {
		limits.Errorf(t, "the handler was told to stop after %v; Grace is %v", d, cfg.Grace)
	}
	ended := <-result
	d := ended.at.Sub(start)
	t.Logf("Run returned after %v: %v", d, ended.err)
	if d > 30*time.Second {
		limits.Errorf(t, "Run returned after %v", d)
	}
	b.Server.Resume(t)
}

func TestDelayContextIsBoundedWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t))
	f := b.fn("f", func() {})
	src, _, _, err := redisstore.DialSources(b.Server.URL())
	b.Must(err)
	rdb := delayed.FromSource(src)
	defer rdb.Close()
	var conns []redis.Conn
	for range 4 {
		c, err := src.Conn(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Do("PING"); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for _, c := range conns {
		c.Close()
	}
	// As if they had idled for so long that a PING tests them.
	pool := src.(redisstore.PoolSource).Pool //nolint:errcheck // fails the test
	check := pool.TestOnBorrowContext
	pool.TestOnBorrowContext = func(ctx context.Context, c redis.Conn, used time.Time) error {
		return check(ctx, c, used.Add(-redisstore.PingAfter))
	}
	b.Server.Pause(t)
	defer b.Server.Resume(t)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err = delayed.NewQueue(b.Name, rdb).DelayContext(ctx, f)
	if took := time.Since(start); took > 3*time.Second {
		limits.Errorf(t, "a call bounded by 500 ms took %v: %v", took, err)
	}
}
