//go:build unix

package itest_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
)

// TestSweepersSideBySide: the real package's sweeper and ours sweep the same queues without a pause, while programs of
// both languages enqueue, work and are killed. No task may be lost, and none may run twice unless its worker was
// killed.
func TestSweepersSideBySide(t *testing.T) {
	const interval = 20 * time.Millisecond
	passes := inChaos(100, 500) // of each sweeper
	kills := inChaos(3, 12)     // of each breed
	tasks := inChaos(1000, 6000)
	server := redistest.Start(t)
	queue, pyQueue := redistest.Name(t), redistest.Name(t)
	f := newMixedFleet(t, server, queue, pyQueue)
	for range 3 {
		f.start(goBreed)
		f.start(legacyBreed)
	}
	for range 2 {
		f.start(pythonBreed)
	}
	theirs := startPython(t, nil, "sweeper.py", "--url", server.URL(), "--queue", queue, pyQueue, "--interval",
		fmt.Sprint(interval.Seconds()))
	ours, stopOurs := startSweeper(t, server, f.setup.Life, interval, queue, pyQueue)
	started := time.Now()

	enough := make(chan struct{})
	enqueued := enqueueBoth(t, server, queue, tasks, enough)
	killed := map[breed]int{}
	waitForAtMost(t, 4*time.Minute, "enough kills and sweeps", func() bool {
		for b := range breed(3) {
			if killed[b] < kills && f.kill(b) {
				killed[b]++
			}
		}
		return killed[goBreed] >= kills && killed[legacyBreed] >= kills && killed[pythonBreed] >= kills &&
			int(ours.Load()) >= passes
	})
	close(enough)
	var names []string
	waitFor(t, "all tasks to be enqueued", func() bool {
		select {
		case names = <-enqueued:
			return true
		default:
			return false
		}
	})
	waitForAtMost(t, 2*time.Minute, "all tasks to be done", func() bool { return f.idle() })
	f.stop()
	took := time.Since(started)
	stopPython(t, theirs)
	lines := strings.Split(strings.TrimSpace(theirs.Output()), "\n")
	var theirPasses, theirFinds int
	if _, err := fmt.Sscan(lines[len(lines)-1], &theirPasses, &theirFinds); err != nil {
		t.Fatalf("sweeper.py printed %q", lines)
	}
	// Our sweeper removes the notifications that the other one has put back too often.
	waitFor(t, "surplus notifications to be removed", func() bool {
		n, _ := server.Do(t, "EXISTS", queue+"_noti", pyQueue+"_noti").(int64)
		return n == 0
	})
	stopOurs()

	if theirPasses < passes {
		t.Errorf("the real package's sweeper made %d passes, expected at least %d", theirPasses, passes)
	}
	reruns := f.check(names)
	swept := count(t, server, queue, "swept") + count(t, server, pyQueue, "swept")
	t.Logf("%d tasks in %v; passes: ours %d, theirs %d; killed: %d Go, %d legacy, %d Python workers; ours put back "+
		"%d tasks, theirs %d "+
		"tasks and notifications; %d tasks ran twice", len(names), took.Round(time.Millisecond), ours.Load(),
		theirPasses,
		killed[goBreed], killed[legacyBreed], killed[pythonBreed], swept, theirFinds, reruns)
	if swept == 0 || theirFinds == 0 || reruns == 0 {
		t.Errorf("expected both sweepers to put tasks back and some to run again, found %d, %d, %d", swept, theirFinds,
			reruns)
	}
	for _, name := range []string{queue, pyQueue} {
		redistest.CheckInvariants(t, server.Dial(t), name, redistest.Invariants{Idle: true})
		if n := len(archivedIn(t, server, name)) + len(filedIn(t, server, name, "_parked")); n > 0 {
			t.Errorf("queue %s: %d tasks are archived or parked, expected none", name, n)
		}
	}
}

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

func newMixedFleet(t *testing.T, server *redistest.Server, queue, pyQueue string) *mixedFleet {
	t.Helper()
	return &mixedFleet{
		t: t, server: server, life: 8 * time.Second, held: map[string]map[string]bool{}, deaths: map[string]int{},
		setup: mixedSetup{
			URL: server.URL(), Queue: queue, PyQueue: pyQueue, Ledger: t.TempDir(),
			Life: 6 * time.Second,
		},
	}
}

// idle reports whether nothing is pending or claimed.
func (f *mixedFleet) idle() bool {
	f.t.Helper()
	for _, queue := range []string{f.setup.Queue, f.setup.PyQueue} {
		ids, err := redis.Strings(f.server.Do(f.t, "SMEMBERS", queue+"_workers"), nil)
		if err != nil {
			f.t.Fatal(err)
		}
		keys := []any{queue, queue + "_processing"}
		for _, id := range ids {
			keys = append(keys, queue+"_processing:"+id)
		}
		if n, _ := f.server.Do(f.t, "EXISTS", keys...).(int64); n > 0 {
			return false
		}
	}
	return true
}

// enqueueBoth makes Python and Go enqueue n tasks of both languages within some seconds. Go continues until enough is
// closed, because workers that are to be killed must have tasks in hand, however long it takes to start them. The
// channel receives the names of all tasks at the end.
func enqueueBoth(t *testing.T, server *redistest.Server, queue string, n int, enough <-chan struct{}) <-chan []string {
	t.Helper()
	const first = 100_000
	python, err := childproc.Start(pythonCommand(t, nil, "producer.py", "--url", server.URL(), "--queue", queue, "load",
		"--kind", "mix",
		"--prefix", "p", "--first", strconv.Itoa(first), "--count", strconv.Itoa(n/2), "--millis", "5", "--pause",
		"0.003"))
	if err != nil {
		t.Fatal(err)
	}
	q := legacyQueue(t, server, queue)
	enqueued := make(chan []string, 1)
	ended := make(chan struct{})
	t.Cleanup(func() {
		python.Kill()
		<-ended
	})
	go func() {
		defer close(ended)
		pace := time.NewTicker(4 * time.Millisecond)
		defer pace.Stop()
		var names []string
		for i := 0; i < n/2 || !closed(enough); i++ {
			<-pace.C
			name, millis := fmt.Sprint("g", first+i), 1+i%12
			task := delayed.NewGoTask(touchPath, name, millis)
			switch i % 4 {
			case 1, 3:
				task = delayed.NewPyTask(touchPyPath, []any{name, millis}, nil)
			case 2:
				task = delayed.Call(touchTask, name, millis)
			}
			if _, err := q.Enqueue(t.Context(), task); err != nil {
				t.Errorf("enqueueing: %v", err)
				return
			}
			names = append(names, name)
			if i < n/2 {
				names = append(names, fmt.Sprint("p", first+i))
			}
		}
		if err := python.Err(); err != nil {
			t.Errorf("producer.py: %v\n%s", err, python.Output())
			return
		}
		enqueued <- names
	}()
	return enqueued
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
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
