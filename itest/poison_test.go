//go:build unix

package itest_test

import (
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
)

// TestPoison puts a task that ends its process among harmless ones. Only that task may be archived: after a few deaths
// together with others, and three alone.
func TestPoison(t *testing.T) {
	together(t)
	const (
		tasks     = 1000
		poison    = 300
		processes = 3
		// Of 50 executors, a worker holds 50, 50, 12, 3 and 1 tasks that have died together with others.
		mostDeaths = 4 + 3
	)
	server := redistest.Start(t)
	f := newFleet(t, server, workerSetup{
		Queue: redistest.Name(t), Concurrency: 50, Prefetch: 100, Life: time.Second, Sweep: 300 * time.Millisecond,
	})
	q := delayed.NewQueue(f.setup.Queue, handle(t, server))
	var batch []*delayed.Task
	var harmless []string
	for i := range tasks {
		if i == poison {
			batch = append(batch, delayed.Call(poisonTask, key(i)))
			continue
		}
		batch = append(batch, delayed.Call(workTask, key(i), 5+i%46))
		harmless = append(harmless, key(i))
	}
	refs, err := q.DelayMany(t.Context(), batch...)
	if err != nil {
		t.Fatal(err)
	}
	var members []*member
	for range processes {
		members = append(members, f.start())
	}
	deaths := 0
	waitForAtMost(t, 2*time.Minute, "the poison to be archived and all others to be done", func() bool {
		for i, m := range members {
			if m.Running() {
				continue
			}
			if m.ExitCode() != exitOfPoison {
				t.Fatalf("a worker ended: %s\n%s", m.Describe(), m.Output())
			}
			deaths++
			members[i] = f.start()
		}
		return f.ask("ZCARD", "_archived") > 0 && count(t, server, f.setup.Queue, "processed") == len(harmless)
	})
	f.awaitDrained(time.Minute, members)
	f.stop(members...)
	redistest.CheckInvariants(t, server.Dial(t), f.setup.Queue, redistest.Invariants{Idle: true})
	if deaths < 3 || deaths > mostDeaths {
		t.Errorf("%d processes died, expected 3 to %d", deaths, mostDeaths)
	}
	archived, _ := redistest.Dump(t, server.Dial(t), f.setup.Queue)["_archived"].(redistest.Zset)
	if _, ok := archived[refs[poison].ID()]; !ok || len(archived) != 1 {
		t.Errorf("archived: %v, expected %s alone", archived, refs[poison].ID())
	}
	log := f.log()
	if lost := log.Of(ledger.End).Missing(harmless); len(lost) > 0 {
		t.Errorf("%d harmless tasks did not end: %q …", len(lost), lost[:min(5, len(lost))])
	}
	if starts := log.Of(ledger.Start).ByTask()[key(poison)]; len(starts) != deaths {
		t.Errorf("the poison was started %d times, expected %d: %v", len(starts), deaths, starts)
	}
	t.Logf("the poison took %d processes down; %d harmless tasks were started again", deaths,
		len(log.Of(ledger.Start).Repeated())-1)
}
