package delayed_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/sweep"
	"github.com/godelayed/delayed/internal/wire"
)

// shortestLife is the shortest HeartbeatLife that is accepted.
const shortestLife = 500 * time.Millisecond

// deadWorker creates what a killed worker leaves: claims, and no heartbeat. It returns the worker's id.
func (b *bench) deadWorker(messages ...string) string {
	b.T.Helper()
	id := wire.NewWorkerID()
	b.Do("SADD", b.Name+"_workers", id)
	for i, m := range messages {
		b.Do("HSET", b.Name+"_processing:"+id, fmt.Sprintf("1-%d", i+1), m)
	}
	b.Do("HSET", b.Name+"_claims:"+id, "1", "1")
	return id
}

// sweep gives back the claims of dead workers of the queue, at the first look.
func (b *bench) sweep() {
	b.T.Helper()
	g := sweep.NewGroup(sweep.Config{
		Stores: []*redisstore.Store{b.store}, Log: loop.NewJournal(b.log.Logger()),
		ArchiveMax: lifecycle.MaxArchived, ArchiveFor: lifecycle.ArchivedLife,
	})
	b.Must(g.SweepAll(context.Background()))
}

func TestSweeperRunsAlone(t *testing.T) {
	t.Parallel()
	for _, interval := range []time.Duration{20 * time.Millisecond, time.Hour} {
		t.Run(interval.String(), func(t *testing.T) {
			t.Parallel()
			sweepAlone(t, interval)
		})
	}
}

// sweepAlone lets a worker die between two passes of a sweeper, which looks at least once in the life of a heartbeat.
func sweepAlone(t *testing.T, interval time.Duration) {
	t.Helper()
	b := newBench(t)
	s, err := delayed.NewSweeper(b.rdb, delayed.SweeperConfig{
		Queues: []string{b.Name}, Interval: interval, HeartbeatLife: shortestLife, Logger: b.log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	b.Until("it has made a pass", func() bool { return b.Int("EXISTS", b.Name+"_sweeper") == 1 })
	b.deadWorker("m1", "m2")
	b.Until("it is swept", func() bool { return b.Size("") == 2 })
	cancel()
	if err := await(b, "Run", result); err != nil {
		t.Error(err)
	}
	if err := s.Run(t.Context()); !errors.Is(err, delayed.ErrClosed) {
		t.Errorf("second Run: %v", err)
	}
}

func TestNewSweeperSaysAllThatIsWrong(t *testing.T) {
	b := newBench(t)
	_, err := delayed.NewSweeper(b.rdb, delayed.SweeperConfig{Queues: []string{"a b"}, Interval: 1, HeartbeatLife: 1})
	for _, want := range []string{"a b", "Interval", "HeartbeatLife"} {
		if !strings.Contains(errorText(err), want) {
			t.Errorf("%v\ndoes not mention %s", err, want)
		}
	}
	if _, err := delayed.NewSweeper(nil, delayed.SweeperConfig{Queues: []string{"a"}}); err == nil {
		t.Error("a nil handle was accepted")
	}
	if _, err := delayed.NewSweeper(b.rdb, delayed.SweeperConfig{}); err == nil {
		t.Error("no queues were accepted")
	}
}

func TestSweeperCarriesOnAfterRedisWasAway(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, redistest.Start(t, "--appendonly", "yes"))
	s, err := delayed.NewSweeper(b.rdb, delayed.SweeperConfig{
		Queues: []string{b.Name}, Interval: 20 * time.Millisecond, HeartbeatLife: shortestLife, Logger: b.log.Logger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	result := make(chan error, 1)
	go func() { result <- s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-result })
	b.Until("it has taken the lock",
		func() bool { n, _ := redis.Int(b.Conn.Do("EXISTS", b.Name+"_sweeper")); return n == 1 })
	b.Server.Kill(t)
	b.Until("it has noticed", func() bool { return strings.Contains(b.log.String(), "cannot sweep") })
	b.Server.Restart(t)
	b.Conn = b.Server.Dial(t)
	b.deadWorker("m")
	b.Until("it is swept", func() bool { return b.Size("") == 1 })
}
