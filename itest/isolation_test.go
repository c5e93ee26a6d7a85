//go:build linux

package itest_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/limits"
	"github.com/godelayed/delayed/internal/redistest"
	"github.com/godelayed/delayed/itest/crash"
	"github.com/godelayed/delayed/itest/ledger"
	"github.com/godelayed/delayed/itest/procs"
)

// What hostile handlers do. Each would end its worker or keep an executor for ever.
var hostilities = map[string]func(){
	"spins": func() {
		for n := 0; ; n++ {
			spun = n
		}
	},
	"sleeps":            func() { select {} },
	"ignores SIGTERM":   func() { signal.Ignore(syscall.SIGTERM); select {} },
	"exits":             func() { os.Exit(1) },
	"overflows":         func() { debug.SetMaxStack(1 << 20); spun = overflow(0) },
	"allocates":         allocate,
	"segfaults":         func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSEGV); select {} },
	"segfaults in C":    crash.InC,
	"stops itself":      func() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP); select {} },
	"kills itself":      func() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL); select {} },
	"panics beside":     func() { go func() { panic("beside") }(); select {} },
	"forks":             func() { _ = exec.Command("sleep", "1000").Start(); select {} },
	"babbles":           func() { _, _ = os.Stderr.WriteString(strings.Repeat("x\n", 1<<20)); select {} },
	"closes everything": closeEverything,
}

var spun int

func overflow(n int) int { return overflow(n+1) + 1 } //nolint:staticcheck // the stack is meant to overflow

func allocate() {
	var kept [][]byte
	for {
		b := make([]byte, 16<<20)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 1
		}
		kept = append(kept, b)
		_ = kept
	}
}

func closeEverything() {
	for fd := range 10 {
		_ = syscall.Close(fd)
	}
	select {}
}

// The tasks of isolating workers.
var (
	hostileTask = delayed.Func(func(what string) { hostilities[what]() }, delayed.Name("itest.hostile"),
		delayed.Isolated(), delayed.MaxRetry(0))
	politeTask = delayed.Func(func() error { return nil }, delayed.Name("itest.polite"), delayed.Isolated())
	plainTask  = delayed.Func(func() error { return nil }, delayed.Name("itest.plain"))
)

var isolatingRole = procs.Define("isolating", func(ctx context.Context, s workerSetup) error {
	newWorker := func() (*delayed.Worker, error) {
		rdb, err := delayed.Dial(s.URL)
		if err != nil {
			return nil, err
		}
		cfg := s.config()
		cfg.Timeout = 100 * time.Millisecond
		cfg.Isolation = delayed.Isolation{Grace: 50 * time.Millisecond, Memory: 512 << 20}
		w, err := delayed.NewWorker(rdb, cfg)
		if err != nil {
			return nil, err
		}
		return w, w.Register(hostileTask, politeTask, plainTask)
	}
	delayed.ChildMain(newWorker)
	w, err := newWorker()
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, helloPrefix+w.ID())
	return w.Run(ctx)
})

// familyOf returns the processes that a process has started, and what these have started, with their states.
func familyOf(t *testing.T, pid int) map[int]string {
	t.Helper()
	type process struct {
		parent int
		state  string
	}
	all := map[int]process{}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		number, _ := strconv.Atoi(strings.Split(file, "/")[2])
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		parent, _ := strconv.Atoi(fields[1])
		all[number] = process{parent, fields[0]}
	}
	family := map[int]string{}
	for one := range all {
		for p := one; p > 1; p = all[p].parent {
			if all[p].parent == pid {
				family[one] = all[one].state
				break
			}
		}
	}
	return family
}

func descriptorsOf(t *testing.T, pid int) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(open)
}

// TestHostileHandlers: whatever an isolated handler does, its task ends within its time and the grace, and nothing is
// left behind: no process, no descriptor, no executor.
func TestHostileHandlers(t *testing.T) {
	together(t)
	server := redistest.Start(t)
	setup := workerSetup{
		URL: server.URL(), Queue: redistest.Name(t), Concurrency: 8, Life: 5 * time.Second, Sweep: time.Second,
		Grace: 5 * time.Second,
	}
	rdb := handle(t, server)
	q := delayed.NewQueue(setup.Queue, rdb)
	rounds := inChaos(100, 10_000)
	w := isolatingRole.Start(t, setup)
	processed := func() int { return count(t, server, setup.Queue, "processed") }
	delayAll := func(tasks ...*delayed.Task) {
		t.Helper()
		if _, err := q.DelayMany(t.Context(), tasks...); err != nil {
			t.Fatal(err)
		}
	}
	settled := func(n int) {
		t.Helper()
		waitForAtMost(t, inChaos(2*time.Minute, time.Hour), fmt.Sprint(n, " tasks to end"), func() bool {
			if !w.Running() {
				t.Fatalf("the worker ended: %s\n%s", w.Describe(), w.Output())
			}
			return processed() == n
		})
	}
	done := setup.Concurrency
	for range setup.Concurrency {
		delayAll(delayed.Call(politeTask)) // so that every executor has had a child
	}
	settled(done)
	before := descriptorsOf(t, w.PID())
	kinds := slices.Sorted(maps.Keys(hostilities))
	var tasks []*delayed.Task
	for i := range rounds {
		tasks = append(tasks, delayed.Call(hostileTask, kinds[i%len(kinds)]), delayed.Call(plainTask),
			delayed.Call(politeTask))
	}
	start := time.Now()
	delayAll(tasks...)
	done += 3 * rounds
	settled(done)
	t.Logf("%d hostile handlers, %d kinds, in %v", rounds, len(kinds), time.Since(start).Round(time.Millisecond))
	if n := count(t, server, setup.Queue, "archived"); n != rounds {
		t.Errorf("%d tasks are archived, expected the %d hostile ones", n, rounds)
	}
	if n := count(t, server, setup.Queue, "failed"); n != rounds {
		t.Errorf("%d tasks have failed, expected the %d hostile ones", n, rounds)
	}
	waitFor(t, "no more children than executors, each waiting, and no more descriptors than these need", func() bool {
		family := familyOf(t, w.PID())
		for _, state := range family {
			if state == "Z" {
				return false
			}
		}
		return len(family) <= setup.Concurrency && descriptorsOf(t, w.PID()) <= before+4*setup.Concurrency
	})
	for range setup.Concurrency { // all executors still work
		delayAll(delayed.Call(politeTask))
	}
	done += setup.Concurrency
	settled(done)
	if err := w.Stop(time.Minute); err != nil {
		t.Error(err)
	}
	redistest.CheckInvariants(t, server.Dial(t), setup.Queue, redistest.Invariants{Idle: true})
}

// TestChildrenEndWithTheirWorker kills workers with kill -9. Their children end within a second.
func TestChildrenEndWithTheirWorker(t *testing.T) {
	together(t)
	server := redistest.Start(t)
	setup := workerSetup{
		URL: server.URL(), Queue: redistest.Name(t), Concurrency: 4, Life: time.Second, Sweep: 200 * time.Millisecond,
	}
	q := delayed.NewQueue(setup.Queue, handle(t, server))
	rounds := inChaos(3, 100)
	var longest time.Duration
	for range rounds {
		w := isolatingRole.Start(t, setup)
		for _, what := range []string{"spins", "sleeps", "ignores SIGTERM"} {
			if _, err := q.With(delayed.Timeout(time.Hour)).Delay(hostileTask, what); err != nil {
				t.Fatal(err)
			}
		}
		var family map[int]string
		waitFor(t, "three children to run", func() bool {
			family = familyOf(t, w.PID())
			return len(family) >= 3
		})
		w.Kill()
		killed := time.Now()
		waitFor(t, "all children to end", func() bool {
			for pid := range family {
				if state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil &&
					!strings.Contains(string(state), ") Z ") {
					return false
				}
			}
			return true
		})
		longest = max(longest, time.Since(killed))
		server.Do(t, "FLUSHALL")
	}
	text := fmt.Sprintf("%d workers killed: all children have ended after %v at most", rounds, longest)
	t.Log(text)
	if longest > time.Second {
		limits.Errorf(t, "%s", text)
	}
}

// TestQuarantine: programs of package workermain run suspects in child processes. So a poisonous task kills at most one
// worker, and a harmless task starts at most once more because of all of them.
func TestQuarantine(t *testing.T) {
	together(t)
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			together(t)
			poisons, slow, quick := inChaos(3, 15), inChaos(2, 6), inChaos(40, 400)
			server := redistest.Start(t)
			f := newFleet(t, server, workerSetup{
				Queue: redistest.Name(t), Concurrency: 10, Life: inChaos(time.Second, 2*time.Second),
				Sweep: time.Second,
			})
			f.role = mainRole
			w := &ward{fleet: f}
			for range workers {
				w.members = append(w.members, f.start())
			}
			q := delayed.NewQueue(f.setup.Queue, handle(t, server))
			tasks, innocent := poisonAndInnocents(poisons, slow, quick)
			start := time.Now()
			refs, err := q.DelayMany(t.Context(), tasks...)
			if err != nil {
				t.Fatal(err)
			}
			w.await(5*time.Minute, "all poison to be archived and all others to be done", func() bool {
				return w.ask("ZCARD", "_archived") == poisons &&
					count(t, server, f.setup.Queue, "processed") == len(innocent)+poisons
			})
			took := time.Since(start).Round(100 * time.Millisecond)
			w.awaitDrained(time.Minute, w.members)
			w.stop(w.members...)
			redistest.CheckInvariants(t, server.Dial(t), f.setup.Queue, redistest.Invariants{Idle: true})
			for i, ref := range refs[:poisons] {
				if info, err := ref.Info(t.Context()); err != nil || info.Reason != "deaths" {
					t.Errorf("poison %d: %+v, %v", i, info, err)
				}
			}
			starts := w.log().Of(ledger.Start).ByTask()
			most := 0
			for _, task := range innocent {
				most = max(most, len(starts[task]))
			}
			t.Logf("%d poisons, %d of seconds, %d quick ones, %d workers: all over after %v; %d workers died, an "+
				"innocent task started at most %d times", poisons, slow, quick, workers, took, w.deaths, most)
			if w.deaths > poisons {
				t.Errorf("%d workers died of %d poisons", w.deaths, poisons)
			}
			if most > 2 {
				t.Errorf("an innocent task started %d times", most)
			}
		})
	}
}
