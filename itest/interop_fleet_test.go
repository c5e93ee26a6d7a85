//go:build unix

package itest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/childproc"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/itest/procs"
)

// The tasks of a mixed fleet. A name is a letter and six digits, so that the tests find it in the bytes of any message.
const (
	touchPath   = "interop.Touch"
	touchPyPath = "interop_tasks:touch"
)

// touchTask is the task that producers delay: only its name counts.
var touchTask = delayed.Func(func(string, int) {}, delayed.Name(touchPath))

var touchName = regexp.MustCompile(`[dgk][0-9]{6}`)

// mixedSetup configures the workers of a queue that both languages serve. Go workers hand on Python tasks to PyQueue.
type mixedSetup struct {
	URL, Queue, PyQueue, Ledger, Name string
	Life                              time.Duration
}

var mixedRole = procs.Define("worker beside Python", func(ctx context.Context, s mixedSetup) error {
	w, rdb, log, err := equip(s.URL, s.Ledger)
	if err != nil {
		return err
	}
	worker, err := delayed.NewWorker(rdb.WithLegacy(), delayed.WorkerConfig{
		Queues: delayed.Strict{s.Queue}, PythonQueue: s.PyQueue, Concurrency: 4, Prefetch: 4,
		HeartbeatLife: s.Life,
		NoSweeper:     true, Logger: log,
	})
	if err != nil {
		return err
	}
	err = worker.Register(delayed.Func(func(task string, millis int) {
		w.Write(ledger.Event{Kind: ledger.Start, Task: task, Worker: s.Name})
		<-time.After(time.Duration(millis) * time.Millisecond)
		w.Write(ledger.Event{Kind: ledger.End, Task: task, Worker: s.Name})
	}, delayed.Name(touchPath)))
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "ready "+worker.ID())
	return worker.Run(ctx)
})

// breed is a kind of worker.
type breed uint8

const (
	goBreed        breed = iota // our Go worker
	legacyBreed                 // the real package's worker, which also runs Go tasks, as go-delayed's would
	pythonBreed                 // the unchanged worker of the real package, on the queue for Python tasks
	ourPythonBreed              // our Python package's worker, on the same queue
)

var breeds = []breed{goBreed, legacyBreed, pythonBreed, ourPythonBreed}

func (b breed) String() string { return []string{"go", "legacy", "python", "godelayed"}[b] }

// creature is one worker process.
type creature struct {
	*childproc.Process
	breed breed
	name  string // in the ledger
	id    string // in Redis
}

// mixedFleet is a number of worker processes of all breeds.
type mixedFleet struct {
	t      *testing.T
	server *redistest.Server
	setup  mixedSetup
	life   time.Duration
	alive  []*creature
	born   int
	held   map[string]map[string]bool // by the name of a killed worker: the tasks that it held
	deaths map[string]int             // by task
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

var readyLine = regexp.MustCompile(`(?m)^ready (\S+)$`)

// start adds a worker and waits until it is ready.
func (f *mixedFleet) start(b breed) {
	f.t.Helper()
	f.born++
	c := &creature{breed: b, name: fmt.Sprintf("%s-%d", b, f.born)}
	switch b {
	case goBreed:
		s := f.setup
		s.Name = c.name
		c.Process = mixedRole.Start(f.t, s)
		waitFor(f.t, "a worker to be ready", func() bool {
			if !c.Running() {
				f.t.Fatalf("a worker ended at its start: %s\n%s", c.Describe(), c.Output())
			}
			return readyLine.MatchString(c.Output())
		})
	case ourPythonBreed:
		processes := strconv.Itoa(f.born % 2) // its tasks run in a process, or in threads
		c.Process = startGodelayed(f.t, []string{"DELAYED_LEDGER=" + f.setup.Ledger, "DELAYED_WORKER=" + c.name},
			f.server, "--queue", f.setup.PyQueue,
			"--legacy", "--concurrency", "2", "--processes", processes, "--sweep-interval", "0.1", "--heartbeat-life",
			fmt.Sprint(f.setup.Life.Seconds()))
		c.id = startedLine.FindStringSubmatch(c.Output())[1]
		f.alive = append(f.alive, c)
		return
	default:
		queue := f.setup.Queue
		args := []string{}
		if b == legacyBreed {
			args = append(args, "--run-go")
		} else {
			queue = f.setup.PyQueue
		}
		args = append(args, "--url", f.setup.URL, "--queue", queue, "--name", c.name, "--max-sleep", "0.05",
			"--keep-alive-timeout", strconv.Itoa(int(f.life.Seconds())), "--keep-alive-interval",
			fmt.Sprint(f.life.Seconds()/10))
		c.Process = startPython(f.t, []string{"DELAYED_LEDGER=" + f.setup.Ledger}, "worker.py", args...)
	}
	c.id = readyLine.FindStringSubmatch(c.Output())[1]
	f.alive = append(f.alive, c)
}

// claims returns the tasks that Redis holds for a worker.
func (f *mixedFleet) claims(c *creature) map[string]bool {
	f.t.Helper()
	var messages []string
	var err error
	switch c.breed {
	case goBreed:
		messages, err = redis.Strings(f.server.Do(f.t, "HVALS", f.setup.Queue+"_processing:"+c.id), nil)
	case ourPythonBreed:
		messages, err = redis.Strings(f.server.Do(f.t, "HVALS", f.setup.PyQueue+"_processing:"+c.id), nil)
	case legacyBreed:
		messages, err = redis.Strings(f.server.Do(f.t, "HMGET", f.setup.Queue+"_processing", c.id), nil)
	case pythonBreed:
		messages, err = redis.Strings(f.server.Do(f.t, "HMGET", f.setup.PyQueue+"_processing", c.id), nil)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	tasks := map[string]bool{}
	for _, m := range messages {
		if name := touchName.FindString(m); name != "" {
			tasks[name] = true
		}
	}
	return tasks
}

// kill kills a worker of a breed that holds claims, with SIGKILL, and starts another in its place. It returns false
// when no worker of the breed holds claims.
func (f *mixedFleet) kill(b breed) bool {
	f.t.Helper()
	for _, i := range rand.Perm(len(f.alive)) {
		c := f.alive[i]
		if c.breed != b || len(f.claims(c)) == 0 {
			continue
		}
		// A task takes milliseconds. A worker that has ended its tasks since then goes on, because to start another
		// one takes a second.
		f.must(c.Pause())
		if len(f.claims(c)) == 0 || f.condemned(c) {
			f.must(c.Resume())
			continue
		}
		c.Kill()
		// The process is dead: it keeps its claims until a sweeper takes them, after its heartbeat has expired. A busy
		// machine may not have started another process by then.
		claims := f.claims(c)
		f.alive = append(f.alive[:i], f.alive[i+1:]...)
		f.start(b)
		f.held[c.name] = claims
		for task := range claims {
			f.deaths[task]++
		}
		return len(claims) > 0
	}
	return false
}

func (f *mixedFleet) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

// condemned reports whether one more death would archive a task that the worker holds.
func (f *mixedFleet) condemned(c *creature) bool {
	for task := range f.claims(c) {
		if f.deaths[task] >= 2 {
			return true
		}
	}
	return false
}

// stop stops all workers as an operator would.
func (f *mixedFleet) stop() {
	f.t.Helper()
	for _, c := range f.alive {
		stopPython(f.t, c.Process)
	}
}

// check compares the ledger with what was enqueued and returns the number of tasks that ran more than once.
func (f *mixedFleet) check(tasks []string) (reruns int) {
	f.t.Helper()
	log, err := ledger.Read(f.setup.Ledger)
	if err != nil {
		f.t.Fatal(err)
	}
	if lost := log.Of(ledger.End).Missing(tasks); len(lost) > 0 {
		f.t.Errorf("%d of %d tasks were lost: %q …", len(lost), len(tasks), lost[:min(len(lost), 5)])
	}
	for task, starts := range log.Of(ledger.Start).Repeated() {
		reruns++
		for _, e := range starts[:len(starts)-1] {
			if !f.held[e.Worker][task] {
				f.t.Errorf("task %s ran again although worker %s was not killed with it in hand: %s", task, e.Worker,
					joinEvents(starts))
			}
		}
	}
	return reruns
}

func joinEvents(log ledger.Log) string {
	var lines []string
	for _, e := range log {
		lines = append(lines, e.String())
	}
	return strings.Join(lines, "; ")
}
