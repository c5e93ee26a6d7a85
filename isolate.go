package delayed

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/isolate"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Isolation configures which tasks a worker runs in child processes, and their limits. Functions with Isolated run
// there in any case. The zero value isolates no others and has the defaults of its fields. It needs ChildMain.
//
// A child is the worker's own binary, started again. It runs one task at a time, and many one after the other; there
// are as many children as isolated tasks run at a time. A handler there gets its context, headers and middleware, and
// reports progress and returns results as in the worker. When its context ends and it has not returned after Grace, the
// child is asked to end by SIGTERM, and soon after killed, with its process group: what it has started, except what
// made a group or a session of its own. That, a crash and os.Exit cost one attempt of one task: its error wraps
// ErrChildDied, and what is kept of the failure has the stacks of the child's goroutines, if it could still report
// them, and what it wrote to its standard error.
//
// A program with ChildMain also runs every task there that was claimed by a worker which died, until the task has ended
// or 72 hours have passed: it may have been the cause, and in a child it harms nobody else. If it ends its child, that
// counts as a death of a worker that had nothing else in hand; see Task.Deaths. Memory and CPU do not bound such tasks.
//
// Differences: errors of handlers reach listeners as texts of at most 64 KiB, though IsFailure and BackoffFunc get them
// as they are; Progress returns no errors of Redis; and what a handler keeps in memory is its child's.
type Isolation struct {
	// All isolates all functions. Defaults to false.
	All bool
	// Queues isolates the tasks of these queues. Defaults to none.
	Queues []string
	// Grace is how long a handler may go on after the end of its context, before its child is ended. While the worker
	// stops, it is at most half of CancelGrace. Defaults to 2 s; negative: none.
	Grace time.Duration
	// Memory is how many bytes a child may allocate beyond what it has at its start, at least 64 MiB; beyond that it
	// crashes. If a control group was delegated to the worker (Delegate=memory of systemd), the child and what it has
	// started may use so many together. This works on Linux only. Defaults to 0: any number.
	Memory int64
	// CPU is how much processor time a task may use, rounded up to seconds. Defaults to 0: any.
	CPU time.Duration
	// MaxTasks is how many tasks a child runs before another takes its place. Defaults to 10,000; negative: any number.
	MaxTasks int
	// Idle is how long a child waits for a task before it ends. Defaults to 1 min.
	Idle time.Duration
	// Ahead is how many children are started before there are tasks for them, if anything is isolated, and kept. A
	// start takes some 10 ms and what ChildMain's function takes. Defaults to 1; negative: none.
	Ahead int
}

// leastIsolated is the smallest limit of memory: Go reserves that much at a time.
const leastIsolated = 64 << 20

// withDefaults returns a copy in which everything that was left out is filled in.
func (i Isolation) withDefaults() Isolation {
	i.Grace, i.Idle = orNone(i.Grace, 2*time.Second), cmp.Or(i.Idle, time.Minute)
	i.MaxTasks, i.Ahead = orNone(i.MaxTasks, 10_000), orNone(i.Ahead, 1)
	return i
}

// check returns everything that is wrong with the settings. Defaults are filled in.
func (i Isolation) check() error {
	var errs []error
	if (i.All || len(i.Queues) > 0) && !isolate.Supported {
		errs = append(errs, errNotHere("WorkerConfig.Isolation"))
	}
	for _, name := range i.Queues {
		errs = append(errs, redisstore.CheckQueueName(name))
	}
	f := faults{config: "WorkerConfig.Isolation", errs: errs}
	f.unless(i.Memory == 0 || i.Memory >= leastIsolated, "Memory", i.Memory,
		fmt.Sprintf("a number of bytes of at least %d, which is 64 MiB, or 0 for any", leastIsolated))
	for field, d := range map[string]time.Duration{"Grace": i.Grace, "CPU": i.CPU, "Idle": i.Idle} {
		f.unless(d >= 0, field, d, "a duration, or 0")
		f.errs = append(f.errs, checkDuration("WorkerConfig.Isolation."+field, d))
	}
	return errors.Join(f.errs...)
}

// engine returns the settings as the engine takes them; nil if this system has no child processes.
func (i Isolation) engine() *child.Config {
	if !isolate.Supported {
		return nil
	}
	return &child.Config{
		All: i.All, Queues: slices.Clone(i.Queues), Grace: i.Grace, MaxTasks: i.MaxTasks, Idle: i.Idle, Ahead: i.Ahead,
		Limits: isolate.Limits{Memory: i.Memory, CPU: i.CPU},
	}
}

// Isolated makes workers run the tasks of a function in child processes, where they can be killed: see Isolation. It
// acts where the function is registered. Workers whose program has not called ChildMain refuse to run, and Register
// refuses it where the system has no such processes: Linux has them, and macOS, where they are not tested regularly.
func Isolated() FuncOption {
	return funcOption{"Isolated()", func(d *funcDefaults) { d.spec.Policy.Isolated = true }}
}

// ErrChildDied is wrapped by the error of a task whose child process died: see Isolation.
var ErrChildDied = isolate.ErrDied

// isolationReady: main has called ChildMain.
var isolationReady atomic.Bool

// ChildMain makes a program able to run tasks in child processes. Call it first in main, before anything that a child
// must not do, such as opening ports or starting goroutines:
//
//	func main() {
//		delayed.ChildMain(newWorker)
//		w, err := newWorker()
//		…
//		err = w.Run(ctx)
//	}
//
// In the program itself it returns at once. In a child, which is the same binary with the same arguments, it calls
// newWorker, runs the tasks that the parent sends, and never returns. newWorker makes the worker as the program itself
// does, with the same functions, middleware and configuration; the worker of a child is not run, and needs no
// connection to Redis. What main does after ChildMain does not happen in a child, so newWorker also opens what handlers
// use, such as a database. A program that runs several workers registers the functions of all in newWorker. Programs of
// package workermain need not call ChildMain. Tests with isolated functions call it in TestMain. It panics if newWorker
// is nil.
func ChildMain(newWorker func() (*Worker, error)) {
	if newWorker == nil {
		panic(errors.New("delayed: ChildMain: expected a function that makes the worker, found nil"))
	}
	if isolate.Supported {
		isolationReady.Store(true)
	}
	if !isolate.IsChild() {
		return
	}
	engine.ServeChild(func() (*engine.Worker, error) {
		w, err := newWorker()
		switch {
		case err != nil:
			return nil, err
		case w == nil || w.engine == nil:
			return nil, errors.New("delayed: the function given to ChildMain returned no worker: expected one, or " +
				"an error")
		}
		return w.engine, nil
	})
}

// checkIsolated returns an error for functions that this program cannot isolate.
func (w *Worker) checkIsolated(fns []*function.Function, running bool) error {
	for _, f := range fns {
		switch {
		case !f.Policy.Isolated:
		case !isolate.Supported:
			return fmt.Errorf("%w: %s: %w", ErrFunction, f.Path(), errNotHere("Isolated"))
		case running && !isolationReady.Load():
			return fmt.Errorf("%w: %s is Isolated, but this program has no child processes: call delayed.ChildMain "+
				"first in main", ErrFunction, f.Path())
		}
	}
	return nil
}

// checkIsolation returns an error if tasks shall be isolated, and this program has no child processes. If it has, the
// worker uses them for suspects as well.
func (w *Worker) checkIsolation() error {
	if isolationReady.Load() {
		w.engine.Quarantine()
		return nil
	}
	if w.isolates {
		return errors.New("delayed: WorkerConfig.Isolation needs child processes: call delayed.ChildMain first in main")
	}
	return w.checkIsolated(w.engine.AllFunctions(), true)
}

func errNotHere(what string) error {
	return fmt.Errorf("delayed: %s: %s has no child processes for tasks: expected Linux or macOS", what, runtime.GOOS)
}
