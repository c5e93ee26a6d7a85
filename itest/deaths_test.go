//go:build unix

package itest_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/itest/procs"
)

// chaos makes tests as large as they are published.
var chaos = flag.Bool("chaos", false, "run tests of deaths and outages with their full counts")

// inChaos returns few, and full with -chaos.
func inChaos[T any](few, full T) T {
	if *chaos {
		return full
	}
	return few
}

// together lets a test run in parallel with others, unless it measures times.
func together(t *testing.T) {
	t.Helper()
	if !*chaos && !limits.On() {
		t.Parallel()
	}
}

// ward is a fleet whose members are started again when they die.
type ward struct {
	*fleet
	members []*member
	deaths  int
}

// newWard starts workers with a short heartbeat.
func newWard(t *testing.T, workers, concurrency int) (*ward, *delayed.Queue) {
	t.Helper()
	server := redistest.Start(t)
	f := newFleet(t, server, workerSetup{
		Queue: redistest.Name(t), Concurrency: concurrency, Life: inChaos(time.Second, 2*time.Second),
		Sweep: time.Second,
	})
	w := &ward{fleet: f}
	for range workers {
		w.members = append(w.members, f.start())
	}
	return w, delayed.NewQueue(f.setup.Queue, handle(t, server))
}

// revive starts another worker for each that has died of a poisonous task or of the test.
func (w *ward) revive() {
	w.t.Helper()
	for i, m := range w.members {
		if m.Running() {
			continue
		}
		if code := m.ExitCode(); code != exitOfPoison && code != -1 {
			w.t.Fatalf("a worker ended: %s\n%s", m.Describe(), m.Output())
		}
		w.deaths++
		w.members[i] = w.start()
	}
}

// await revives until cond holds.
func (w *ward) await(limit time.Duration, what string, cond func() bool) {
	w.t.Helper()
	waitForAtMost(w.t, limit, what, func() bool {
		w.revive()
		return cond()
	})
}

// archived returns the ids of archived tasks.
func (w *ward) archived() []string {
	w.t.Helper()
	set, _ := redistest.Dump(w.t, w.server.Dial(w.t), w.setup.Queue)["_archived"].(redistest.Zset)
	var ids []string
	for id := range set {
		ids = append(ids, id)
	}
	return ids
}

// poisonAndInnocents returns tasks that end their process, then slow and quick harmless ones, and the names of the
// harmless ones.
func poisonAndInnocents(poisons, slow, quick int) (tasks []*delayed.Task, innocent []string) {
	for i := range poisons + slow + quick {
		switch {
		case i < poisons:
			tasks = append(tasks, delayed.Call(poisonTask, key(i)))
			continue
		case i < poisons+slow:
			tasks = append(tasks, delayed.Call(workTask, key(i), inChaos(1000, 3000)))
		default:
			tasks = append(tasks, delayed.Call(workTask, key(i), 10))
		}
		innocent = append(innocent, key(i))
	}
	return tasks, innocent
}

// TestPoisonAmongInnocents: every harmless task runs and none of them is archived; all tasks that end their process are
// archived.
func TestPoisonAmongInnocents(t *testing.T) {
	together(t)
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			together(t)
			poisons, slow, quick := inChaos(3, 15), inChaos(2, 6), inChaos(40, 400)
			w, q := newWard(t, workers, 10)
			tasks, innocent := poisonAndInnocents(poisons, slow, quick)
			start := time.Now()
			refs, err := q.DelayMany(t.Context(), tasks...)
			if err != nil {
				t.Fatal(err)
			}
			w.await(inChaos(4*time.Minute, 15*time.Minute), "all poison to be archived and all others to be done",
				func() bool {
					return w.ask("ZCARD", "_archived") == poisons &&
						count(t, w.server, w.setup.Queue, "processed") == len(innocent)
				})
			took := time.Since(start).Round(time.Second)
			w.awaitDrained(time.Minute, w.members)
			w.stop(w.members...)
			redistest.CheckInvariants(t, w.server.Dial(t), w.setup.Queue, redistest.Invariants{Idle: true})
			archived := w.archived()
			for i, ref := range refs[:poisons] {
				if !slices.Contains(archived, ref.ID()) {
					t.Errorf("poison %d is not archived", i)
				} else if info, err := ref.Info(t.Context()); err != nil || info.Reason != "deaths" {
					t.Errorf("poison %d: %+v, %v", i, info, err)
				}
			}
			if lost := w.log().Of(ledger.End).Missing(innocent); len(lost) > 0 {
				t.Errorf("%d innocents did not end: %q …", len(lost), lost[:min(5, len(lost))])
			}
			mean := float64(w.deaths) / float64(poisons)
			t.Logf("%d poisons, %d of seconds, %d quick ones, %d workers: all over after %v and %d deaths, %.1f a "+
				"poison",
				poisons, slow, quick, workers, took, w.deaths, mean)
			if mean > 8 {
				t.Errorf("%.1f deaths a poison", mean)
			}
		})
	}
}

// TestOneKill: if no task caused the death, all run again at once.
func TestOneKill(t *testing.T) {
	together(t)
	const workers = 1
	n, millis := inChaos(20, 50), inChaos(500, 2000)
	w, q := newWard(t, workers, n)
	var tasks []*delayed.Task
	var all []string
	for i := range n {
		tasks, all = append(tasks, delayed.Call(workTask, key(i), millis)), append(all, key(i))
	}
	if _, err := q.DelayMany(t.Context(), tasks...); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "all to be started", func() bool { return len(w.log().Of(ledger.Start).ByTask()) == n })
	w.members[0].Kill()
	killed := time.Now()
	w.await(time.Minute, "all to be done", func() bool { return count(t, w.server, w.setup.Queue, "processed") == n })
	took := time.Since(killed)
	run := time.Duration(millis) * time.Millisecond
	limit := w.setup.Life + w.setup.Life/4 + 500*time.Millisecond + 2*run + 2*time.Second
	t.Logf("%d tasks of %v are done %v after the kill", n, run, took.Round(10*time.Millisecond))
	if took > limit {
		limits.Errorf(t, "%d tasks of %v were done %v after the kill, expected %v at most", n, run, took, limit)
	}
	w.awaitDrained(time.Minute, w.members)
	w.stop(w.members...)
	if lost := w.log().Of(ledger.End).Missing(all); len(lost) > 0 || w.ask("ZCARD", "_archived") > 0 {
		t.Errorf("%d tasks did not end, %d are archived", len(lost), w.ask("ZCARD", "_archived"))
	}
	for task, starts := range w.log().Of(ledger.Start).ByTask() {
		if len(starts) != 2 {
			t.Errorf("task %s started %d times", task, len(starts))
		}
	}
	redistest.CheckInvariants(t, w.server.Dial(t), w.setup.Queue, redistest.Invariants{Idle: true})
}

// TestKillsInARow: no task is archived for deaths that it did not cause.
func TestKillsInARow(t *testing.T) {
	together(t)
	const workers = 1
	kills, n, pause := inChaos(4, 30), inChaos(150, 3000), inChaos(1200*time.Millisecond, 2500*time.Millisecond)
	w, q := newWard(t, workers, 10)
	enqueueAll(t, q, n, func(i int) *delayed.Task { return delayed.Call(workTask, key(i), 200) })
	for range kills {
		<-time.After(pause)
		w.members[0].Kill()
		w.revive()
	}
	w.await(10*time.Minute, "all to be done",
		func() bool { return count(t, w.server, w.setup.Queue, "processed") == n })
	w.awaitDrained(time.Minute, w.members)
	w.stop(w.members...)
	if archived := w.archived(); len(archived) > 0 {
		t.Errorf("%d tasks are archived", len(archived))
	}
	redistest.CheckInvariants(t, w.server.Dial(t), w.setup.Queue, redistest.Invariants{Idle: true})
	t.Logf("%d tasks, %d kills: none archived, %d started more than once",
		n, w.deaths, len(w.log().Of(ledger.Start).Repeated()))
}

// TestRollingDeploys: a clean stop does not count as a death, not even if handlers outlast the grace and end with the
// process, whether a program calls Worker.Run or is one of package workermain.
func TestRollingDeploys(t *testing.T) {
	together(t)
	t.Run("Run", func(t *testing.T) {
		t.Parallel()
		rollingDeploys(t, workerRole, 0, "worker: delayed: 3 handlers still run after shutdown")
	})
	t.Run("workermain", func(t *testing.T) {
		t.Parallel()
		rollingDeploys(t, mainRole, exitStillRunning, "handlers still run")
	})
}

// exitStillRunning is the code of package workermain for handlers that outlast a stop.
const exitStillRunning = 3

// rollingDeploys stops workers whose handlers outlast the grace; then they exit with a code and say something.
func rollingDeploys(t *testing.T, role procs.Role[workerSetup], code int, says string) {
	t.Helper()
	const n = 3
	w, q := newWard(t, 0, n)
	w.role = role
	w.setup.Grace = 100 * time.Millisecond
	for i := range n {
		if _, err := q.Delay(deafTask, key(i), 60_000); err != nil {
			t.Fatal(err)
		}
	}
	for round := range inChaos(2, 5) {
		m := w.start()
		waitFor(t, "the tasks to be started again", func() bool {
			return len(w.log().Of(ledger.Start).ByWorker()[m.id]) == n
		})
		err := m.Stop(20 * time.Second)
		if err != nil || code != 0 && m.ExitCode() != code || !strings.Contains(m.Output(), says) {
			t.Fatalf("round %d: %v, %s\n%s", round, err, m.Describe(), m.Output())
		}
	}
	heir := w.start()
	waitFor(t, "the tasks to be claimed", func() bool { return len(w.claims(heir.id)) == n })
	messages, _ := redistest.Dump(t, w.server.Dial(t), w.setup.Queue)["_processing:"+heir.id].(redistest.Hash)
	for token, message := range messages {
		if m, err := wire.Parse([]byte(message), wire.Default); err != nil || m.Meta.Deaths != 0 {
			t.Errorf("claim %s: %d deaths were counted, %v", token, m.Meta.Deaths, err)
		}
	}
	if w.ask("ZCARD", "_archived") != 0 || w.ask("HLEN", "_deaths") != 0 {
		t.Error("deaths were counted")
	}
}

// TestRecovery: tasks that a dead worker had in hand run again within the life of its heartbeat and five seconds,
// whether there are other workers or a new one replaces it.
func TestRecovery(t *testing.T) {
	together(t)
	for _, others := range []int{0, 2} {
		t.Run(fmt.Sprint(others, " others"), func(t *testing.T) {
			t.Parallel()
			w, q := newWard(t, 0, 10)
			w.setup.Life, w.setup.Sweep = inChaos(time.Second, 15*time.Second), 8*time.Second
			victim := w.start()
			if _, err := q.Delay(deafTask, key(0), 300_000); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "the task to be started", func() bool { return len(w.log().Of(ledger.Start)) == 1 })
			for range others {
				w.start()
			}
			victim.Kill()
			killed := time.Now()
			if others == 0 {
				w.start()
			}
			waitForAtMost(t, time.Minute, "the task to be started again", func() bool {
				return len(w.log().Of(ledger.Start)) == 2
			})
			took := time.Since(killed)
			t.Logf("a heartbeat of %v, %d other workers: started again after %v",
				w.setup.Life, others, took.Round(10*time.Millisecond))
			if limit := w.setup.Life + 5*time.Second; took > limit {
				limits.Errorf(t, "started again after %v, expected %v at most", took, limit)
			}
		})
	}
}
