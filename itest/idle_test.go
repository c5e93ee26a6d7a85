//go:build unix

package itest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/faultnet"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/procs"
)

// idleSetup configures a worker process with default settings.
type idleSetup struct {
	URL    string
	Queues []string
}

var idleRole = procs.Define("idle", func(ctx context.Context, s idleSetup) error {
	rdb, err := delayed.Dial(s.URL)
	if err != nil {
		return err
	}
	defer rdb.Close()
	w, err := delayed.NewWorker(rdb, delayed.WorkerConfig{Queues: delayed.Strict(s.Queues)})
	if err != nil {
		return err
	}
	if err := w.Register(workTask); err != nil {
		return err
	}
	return w.Run(ctx)
})

// TestIdleCost counts what a worker with nothing to do asks of Redis.
func TestIdleCost(t *testing.T) {
	t.Parallel()
	const (
		maxRequests = 2.0 // per second; the call of a script is one
		maxCommands = 5.5 // per second on average; the commands inside scripts count as well
		// Sweeps come every 7 to 8 seconds, so a period may hold one more than on average.
		oneSweep = 14 // commands: INFO, the call of a script, and four for each of the three queues
	)
	period := inChaos(30*time.Second, time.Minute)
	server := redistest.Start(t)
	proxy := faultnet.NewProxy(t, server.Addr()) // breaks nothing, counts requests
	name := redistest.Name(t)
	setup := idleSetup{URL: proxy.URL(), Queues: []string{name + "a", name + "b", name + "c"}}
	p := idleRole.Start(t, setup)
	conn := server.Dial(t)
	// What starting costs does not belong to what idling costs. It is over after three heartbeats of each queue.
	waitFor(t, "the worker to have started", func() bool {
		return server.CommandStats(t)["pexpire"] >= int64(3*len(setup.Queues))
	})
	requests, commands := proxy.Counts().Requests, server.CommandStats(t)
	<-time.After(period)
	diff := server.CommandStats(t).Since(commands)
	perSecond := func(n int64) float64 { return float64(n) / period.Seconds() }
	reqs, cmds := perSecond(proxy.Counts().Requests-requests), perSecond(diff.Total())
	report := fmt.Sprintf("%.2f requests and %.2f commands per second: %v", reqs, cmds, diff)
	t.Log(report)
	if reqs >= maxRequests {
		t.Errorf("expected fewer than %v requests per second, found %s", maxRequests, report)
	}
	if diff.Total() >= int64(maxCommands*period.Seconds())+oneSweep {
		t.Errorf("expected fewer than %v commands per second, found %s", maxCommands, report)
	}
	if err := p.Stop(40 * time.Second); err != nil || p.ExitCode() != 0 {
		t.Errorf("%v, %s", err, p.Describe())
	}
	for _, queue := range setup.Queues {
		redistest.CheckInvariants(t, conn, queue, redistest.Invariants{Idle: true})
	}
}
