//go:build unix

package itest_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/itest/procs"
)

// TestMixedChaos: producers and workers of Go, of our Python package and of keakon's share queues, with keakon's
// sweeper and ours, which sweep without a pause. Producers and workers are killed again and again. No task that Redis
// has accepted may be lost, and none may run twice unless its worker was killed.
func TestMixedChaos(t *testing.T) {
	together(t)
	const interval = 20 * time.Millisecond
	rounds := inChaos(1, 20)   // each kills a worker of each breed, and a producer
	passes := inChaos(50, 500) // of each sweeper
	server := redistest.Start(t)
	queue, pyQueue := redistest.Name(t), redistest.Name(t)
	f := newMixedFleet(t, server, queue, pyQueue)
	for _, b := range breeds {
		f.start(b)
		f.start(b)
	}
	theirs := startPython(t, nil, "sweeper.py", "--url", server.URL(), "--queue", queue, pyQueue, "--interval",
		fmt.Sprint(interval.Seconds()))
	ours, stopOurs := startSweeper(t, server, f.setup.Life, interval, queue, pyQueue)
	started := time.Now()
	crew := newChaosCrew(t, &f.setup)

	for round := range rounds {
		for _, b := range breeds {
			waitFor(t, fmt.Sprintf("a %s worker to hold a task, and to be killed", b), func() bool { return f.kill(b) })
		}
		crew.replace(chaosParties[round%len(chaosParties)])
	}
	waitFor(t, "enough sweeps", func() bool { return int(ours.Load()) >= passes })
	crew.stop()
	waitForAtMost(t, 2*time.Minute, "all tasks to be done", f.idle)
	f.stop()
	took := time.Since(started)
	theirPasses, theirFinds := stopSweeper(t, theirs)
	// Our sweeper removes the notifications that the other one has put back too often.
	waitFor(t, "surplus notifications to be removed", func() bool {
		n, _ := server.Do(t, "EXISTS", queue+"_noti", pyQueue+"_noti").(int64)
		return n == 0
	})
	stopOurs()

	names := crew.sent()
	reruns := f.check(names)
	swept := count(t, server, queue, "swept") + count(t, server, pyQueue, "swept")
	t.Logf("%d tasks in %v; killed: %d workers of each of %v, %d producers; passes: ours %d, theirs %d; ours put back "+
		"%d tasks, theirs %d tasks and notifications; %d ran twice", len(names),
		took.Round(time.Millisecond), rounds, breeds, rounds, ours.Load(), theirPasses, swept, theirFinds, reruns)
	if swept == 0 || theirFinds == 0 || reruns == 0 || theirPasses < passes {
		t.Errorf("expected both sweepers to make %d passes and to put tasks back, and some tasks to run again", passes)
	}
	for _, name := range []string{queue, pyQueue} {
		redistest.CheckInvariants(t, server.Dial(t), name, redistest.Invariants{Idle: true})
		if n := len(archivedIn(t, server, name)) + len(filedIn(t, server, name, "_parked")); n > 0 {
			t.Errorf("queue %s: %d tasks are archived or parked, expected none", name, n)
		}
	}
}

// stopSweeper stops keakon's sweeper. It returns how many passes it made, and how many tasks and notifications it put
// back.
func stopSweeper(t *testing.T, sweeper *childproc.Process) (passes, finds int) {
	t.Helper()
	stopPython(t, sweeper)
	lines := strings.Split(strings.TrimSpace(sweeper.Output()), "\n")
	if _, err := fmt.Sscan(lines[len(lines)-1], &passes, &finds); err != nil {
		t.Fatalf("sweeper.py printed %q", lines)
	}
	return passes, finds
}

// sent is the kind of the event that a producer notes once Redis has accepted a task.
const sent ledger.Kind = "sent"

// chaosSetup configures a producer. The names of its tasks are the prefix and six digits, from First on.
type chaosSetup struct {
	URL, Queue, Ledger, Prefix string
	First                      int
	Pace                       time.Duration // between two tasks
}

// chaosRole enqueues tasks of both languages, plain ones and typed calls, until SIGTERM.
var chaosRole = procs.Define("producer beside Python", func(ctx context.Context, s chaosSetup) error {
	w, rdb, _, err := equip(s.URL, s.Ledger)
	if err != nil {
		return err
	}
	q, err := delayed.OpenQueue(s.Queue, rdb.WithLegacy(), delayed.QueueConfig{})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "ready")
	pace := time.NewTicker(s.Pace)
	defer pace.Stop()
	for i := s.First; ctx.Err() == nil; i++ {
		name, millis := fmt.Sprintf("%s%06d", s.Prefix, i), 1+i%12
		task := delayed.NewGoTask(touchPath, name, millis)
		switch i % 4 {
		case 1, 3:
			task = delayed.NewPyTask(touchPyPath, []any{name, millis}, nil)
		case 2:
			task = delayed.Call(touchTask, name, millis)
		}
		if _, err := q.Enqueue(context.WithoutCancel(ctx), task); err != nil {
			return err
		}
		w.Write(ledger.Event{Kind: sent, Task: name})
		<-pace.C
	}
	return nil
})

// chaosParties are the packages that enqueue, by the letter with which the names of their tasks begin.
var (
	chaosParties = []party{goParty, pythonParty, keakonParty}
	chaosLetters = map[party]string{goParty: "g", pythonParty: "d", keakonParty: "k"}
)

// tasksOfOne is more than one producer enqueues before it is killed or stopped.
const tasksOfOne = 50_000

// chaosCrew is one producer of each party.
type chaosCrew struct {
	t       *testing.T
	fleet   *mixedSetup
	alive   map[party]*childproc.Process
	started map[party]int
}

func newChaosCrew(t *testing.T, fleet *mixedSetup) *chaosCrew {
	t.Helper()
	c := &chaosCrew{t, fleet, map[party]*childproc.Process{}, map[party]int{}}
	for _, p := range chaosParties {
		c.start(p)
	}
	return c
}

// start starts the next producer of a party.
func (c *chaosCrew) start(p party) {
	c.t.Helper()
	s := chaosSetup{
		c.fleet.URL, c.fleet.Queue, c.fleet.Ledger, chaosLetters[p], tasksOfOne * c.started[p],
		12 * time.Millisecond,
	}
	c.started[p]++
	if p == goParty {
		c.alive[p] = chaosRole.Start(c.t, s)
		return
	}
	c.alive[p] = startPython(c.t, []string{"DELAYED_LEDGER=" + s.Ledger}, "chaos_producer.py", "--url", s.URL,
		"--queue", s.Queue, "--package", string(p), "--prefix", s.Prefix, "--first", strconv.Itoa(s.First),
		"--pace", fmt.Sprint(s.Pace.Seconds()))
}

// replace kills the producer of a party with SIGKILL, once it has enqueued something, and starts another.
func (c *chaosCrew) replace(p party) {
	c.t.Helper()
	c.running(p)
	c.alive[p].Kill()
	c.start(p)
}

// running waits until the producer of a party has enqueued something.
func (c *chaosCrew) running(p party) {
	c.t.Helper()
	first := fmt.Sprintf("%s%06d", chaosLetters[p], tasksOfOne*(c.started[p]-1))
	waitFor(c.t, "the producer "+string(p)+" to enqueue", func() bool {
		if !c.alive[p].Running() {
			c.t.Fatalf("the producer %s ended early: %s\n%s", p, c.alive[p].Describe(), c.alive[p].Output())
		}
		return len(c.log().Missing([]string{first})) == 0
	})
}

// stop stops all producers as an operator would.
func (c *chaosCrew) stop() {
	c.t.Helper()
	for _, p := range chaosParties {
		c.running(p)
		stopPython(c.t, c.alive[p])
	}
}

func (c *chaosCrew) log() ledger.Log {
	c.t.Helper()
	log, err := ledger.Read(c.fleet.Ledger)
	if err != nil {
		c.t.Fatal(err)
	}
	return log.Of(sent)
}

// sent returns the tasks that Redis has accepted.
func (c *chaosCrew) sent() []string {
	c.t.Helper()
	var names []string
	for _, e := range c.log() {
		names = append(names, e.Task)
	}
	return names
}
