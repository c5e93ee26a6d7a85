//go:build unix

package itest_test

import (
	"bytes"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
)

// TestOurSweeperGivesBackLegacyClaims kills a worker of the real package during a task, with only our sweeper running.
func TestOurSweeperGivesBackLegacyClaims(t *testing.T) {
	together(t)
	server := redistest.Start(t)
	queue, pyQueue := redistest.Name(t), redistest.Name(t)
	f := newMixedFleet(t, server, queue, pyQueue)
	f.life = time.Second
	f.start(legacyBreed)
	victim := f.alive[0]
	q := legacyQueue(t, server, queue)
	if _, err := q.Enqueue(t.Context(), delayed.NewPyTask(touchPyPath, []any{"p000001", 600_000}, nil)); err != nil {
		t.Fatal(err)
	}
	started := func(worker string) bool {
		log, err := ledger.Read(f.setup.Ledger)
		if err != nil {
			t.Fatal(err)
		}
		return len(log.Of(ledger.Start).ByWorker()[worker]) > 0
	}
	waitFor(t, "the task to start", func() bool { return started(victim.name) })
	before := onlyClaim(t, server, queue)
	_, stop := startSweeper(t, server, 500*time.Millisecond, 20*time.Millisecond, queue)
	defer stop()
	// As long as the worker lives it keeps its claim, however long the task takes.
	for range 4 {
		<-time.After(f.life / 2)
		if now := onlyClaim(t, server, queue); now != before {
			t.Fatalf("the claim of a living worker changed from %q to %q", before, now)
		}
	}
	victim.Kill()
	f.start(legacyBreed)
	waitFor(t, "the task to start again", func() bool { return started(f.alive[1].name) })
	if after := onlyClaim(t, server, queue); after != before {
		t.Errorf("expected the Python message unchanged, %q, found %q", before, after)
	}
}

// onlyClaim returns the message that the legacy workers of a queue hold.
func onlyClaim(t *testing.T, server *redistest.Server, queue string) string {
	t.Helper()
	messages, err := redis.Strings(server.Do(t, "HVALS", queue+"_processing"), nil)
	if err != nil || len(messages) != 1 {
		t.Fatalf("expected one claim of a legacy worker, found %q, %v", messages, err)
	}
	return messages[0]
}

// startSweeper runs one of our sweepers and counts its passes.
func startSweeper(
	t *testing.T, server *redistest.Server, life, interval time.Duration, queues ...string,
) (passes *atomic.Int64, stop func()) {
	t.Helper()
	passes = new(atomic.Int64)
	// Each pass renews the advisory lock of each queue once, so count that.
	lock := []byte(queues[0] + "_sweeper\r\n")
	pool := server.Pool(t, redis.DialNetDial(func(network, addr string) (net.Conn, error) {
		c, err := net.Dial(network, addr)
		return &scannedConn{c, lock, passes}, err
	}))
	log := logrus.New()
	out := new(redistest.Log)
	log.SetOutput(out)
	s, err := delayed.NewSweeper(delayed.FromPool(pool), delayed.SweeperConfig{
		Queues: queues, Interval: interval, HeartbeatLife: life, Logger: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Sweeper.Run: %v", err)
		}
		if t.Failed() {
			t.Logf("log of the sweeper:\n%s", out)
		}
	}
	t.Cleanup(stop)
	return passes, stop
}

// scannedConn counts how often the program sends a text.
type scannedConn struct {
	net.Conn
	text []byte
	n    *atomic.Int64
}

func (c *scannedConn) Write(b []byte) (int, error) {
	c.n.Add(int64(bytes.Count(b, c.text)))
	return c.Conn.Write(b)
}
