package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/state"
)

// workerRun is one call of Worker.Run: the goroutines that it has started, and the contexts that end them.
type workerRun struct {
	w     *Worker
	grace time.Time // when handlers that still run are canceled

	loops, beats, finishers sync.WaitGroup

	// These contexts end one after the other: finishing when all handlers have returned, which lets finishers end once
	// Redis knows all outcomes; retrying when finishers shall give up; beating last, which ends the heartbeats.
	finishing, retrying, beating          context.Context
	endFinishing, endRetrying, endBeating context.CancelFunc
}

// Run claims and runs tasks until ctx ends or the worker stops for another reason. Then it stops claiming, gives back
// tasks that have not started, and waits for running handlers.
//
//nolint:contextcheck // claimed tasks are finished after ctx has ended
func (w *Worker) Run(ctx context.Context) error {
	if !w.phase.CompareAndSwap(int32(state.New), int32(state.Running)) {
		return fmt.Errorf("%w: Run was called before: make another worker", redisstore.ErrClosed)
	}
	answered, err := w.prepare(ctx)
	if err != nil {
		w.phase.Store(int32(state.Stopped))
		return err
	}
	w.logStart()
	w.events.Emit(events.Event{Kind: event.WorkerStarted})
	ctx, end := w.cfg.Signals.Until(ctx)
	defer end()

	r := newWorkerRun(w)
	r.start(ctx, answered)
	select {
	case <-ctx.Done():
		if redisstore.Closing(ctx) != nil {
			w.StopFor(state.StopClosed)
		}
		w.StopFor(state.StopContext)
	case <-w.stopping:
	}
	defer context.AfterFunc(w.cfg.Signals.Open, r.endRetrying)() // the connections are closed: retries are in vain
	reason := r.stop(end)
	idle := r.drain(reason)
	if loop.Await(idle, 0) {
		err := r.finish(idle, reason)
		w.log.Info("worker stopped")
		return w.stopError(reason, err)
	}
	// The rest goes on in the background: a handler that still runs keeps its claim and its heartbeat.
	err = w.stillRunning(reason)
	go func() { _ = r.finish(idle, reason) }() // finish logs its error
	w.log.WithError(err).Error("handlers still run; their tasks stay claimed until the process exits")
	return err
}

// prepare does what must precede the first claim. answered is false if Redis did not return its settings.
func (w *Worker) prepare(ctx context.Context) (answered bool, err error) {
	answered, err = w.checkSettings(ctx, startCheck)
	if err == nil {
		err = w.makeReady()
	}
	if w.cfg.Signals.Open.Err() != nil {
		err = redisstore.ErrHandleClosed
	}
	return answered, err
}

// makeReady prepares the functions and starts the listeners. None can be added afterwards.
func (w *Worker) makeReady() error {
	w.controlMu.Lock() // Listen may be running
	defer w.controlMu.Unlock()
	if err := w.cfg.Program.Prepare(); err != nil {
		return err
	}
	w.events.Start(w.log)
	return nil
}

func newWorkerRun(w *Worker) *workerRun {
	r := &workerRun{w: w}
	r.finishing, r.endFinishing = context.WithCancel(context.Background())
	r.retrying, r.endRetrying = context.WithCancel(context.Background())
	r.beating, r.endBeating = context.WithCancel(context.Background())
	return r
}

// start starts the goroutines of the worker. Those that claim and move tasks end with ctx.
func (r *workerRun) start(ctx context.Context, answered bool) {
	w := r.w
	w.exec.Start()
	w.decider.Isolation.Start(&w.registry)
	for _, g := range w.slotGroups {
		keep(&r.beats, func() { g.heartbeat.Run(r.beating) })
		keep(&r.loops, func() { g.mover.Run(ctx) })
		if !w.cfg.NoSweeper {
			keep(&r.loops, func() { g.sweeper.Run(ctx) })
		}
	}
	keep(&r.beats, func() { w.announcer.Run(r.beating) })
	keep(&r.beats, func() { w.events.Air.Run(r.beating, w.log) })
	if w.cfg.StuckAfter > 0 {
		keep(&r.beats, func() { w.watchdog.Run(r.beating) })
	}
	for _, wt := range w.fetcher.Waiters {
		keep(&r.loops, func() { wt.Run(ctx) })
	}
	for _, f := range w.finishers {
		keep(&r.finishers, func() { f.Run(r.finishing, r.retrying) })
	}
	for _, lane := range w.lanes {
		keep(&r.beats, func() { w.follow(r.beating, lane) })
	}
	keep(&r.loops, func() { w.fetcher.Run(ctx) })
	keep(&r.loops, func() { w.afterStart(ctx, answered) })
	for _, beside := range w.cfg.Beside {
		keep(&r.loops, func() { beside(ctx) })
	}
	for _, watch := range w.watches() {
		keep(&r.loops, func() { watch(ctx) })
	}
}

// keep runs a loop of the worker. A worker cannot do without any of them: if what the program has given to the worker
// ends a loop by runtime.Goexit, such as a logger that calls FailNow of package testing, the process ends as if that
// had panicked.
func keep(group *sync.WaitGroup, run func()) {
	group.Go(func() {
		returned := false
		defer func() {
			if returned {
				return
			}
			if p := function.NewPanic(nil); p.ErrorType() == "goexit" {
				panic(fmt.Errorf("delayed: a logger or a source of connections has ended a loop of the worker: %w", p))
			}
		}()
		run()
		returned = true
	})
}

// stop ends claiming, logs why, and returns the reason.
func (r *workerRun) stop(end context.CancelFunc) (reason state.Reason) {
	w := r.w
	w.controlMu.Lock()
	w.phase.Store(int32(state.Stopping))
	w.holdBack() // now: the loops below may have to wait for Redis
	w.controlMu.Unlock()
	end()
	reason = w.stopReason()
	w.log.WithField("reason", reason).Info("worker stops: it claims no more tasks")
	w.events.Emit(events.Event{Kind: event.WorkerStopping, Reason: reason})
	if reason != state.StopStuck {
		for _, lane := range w.lanes {
			r.beats.Go(func() { w.noteStop(r.beating, lane) })
		}
	}
	r.grace = time.Now().Add(w.cfg.Grace)
	r.loops.Wait()
	w.fetcher.MendAfterStop()
	return reason
}

// drain gives back tasks that have not started and waits for running handlers: first for the grace period, then with
// their contexts canceled. It closes the channel that it returns when all of them have returned.
func (r *workerRun) drain(reason state.Reason) (idle <-chan struct{}) {
	w := r.w
	lane.GiveBack(w.exec.TakeBack(nil))
	w.exec.Stop()
	sound, all := make(chan struct{}), make(chan struct{})
	go func() {
		w.exec.Sound.Wait()
		close(sound)
		w.exec.Stuck.Wait()
		close(all)
	}()
	awaited := all
	if reason == state.StopStuck {
		awaited = sound // stuck handlers do not return
	}
	if !loop.Await(awaited, time.Until(r.grace)) {
		w.cancelHandlers(lane.ErrShutdown)
		loop.Await(awaited, w.cfg.CancelGrace)
	}
	return all
}

// finish waits for all handlers, lets the finishers report the last endings, and unregisters the worker.
func (r *workerRun) finish(idle <-chan struct{}, reason state.Reason) error {
	w := r.w
	<-idle
	w.cancelHandlers(lane.ErrShutdown)
	r.endFinishing()
	timer := time.AfterFunc(w.cfg.CancelGrace+redisstore.CallTimeout, r.endRetrying)
	r.finishers.Wait()
	timer.Stop()
	r.endRetrying()
	// Again: Redis may have served a wait between the close of its connection and the moment when it noticed that, with
	// the notification of a task that this worker has given back.
	w.fetcher.MendAfterStop()
	r.endBeating() // before unregister: a later heartbeat would register the worker again
	r.beats.Wait()
	err := w.unregister()
	w.decider.Isolation.Close()
	w.lines.Close()
	w.phase.Store(int32(state.Stopped))
	w.events.Emit(events.Event{Kind: event.WorkerStopped, Reason: reason, Err: w.stopError(reason, err)})
	w.events.Stop(w.cfg.listenGrace())
	return err
}

// stopError returns what Run returns: err, joined with the cause if the worker stopped because of stuck handlers, of a
// closed handle on Redis or of the settings of Redis.
func (w *Worker) stopError(reason state.Reason, err error) error {
	switch {
	case reason == state.StopSettings:
		return errors.Join(w.unfit, err)
	case reason == state.StopClosed && !errors.Is(err, redisstore.ErrClosed):
		return errors.Join(redisstore.ErrHandleClosed, err)
	case reason != state.StopStuck:
		return err
	case err == nil:
		return w.watchdog.Fatal
	}
	return errors.Join(w.watchdog.Fatal, err)
}

// stillRunning returns the error of a worker whose handlers have not returned.
func (w *Worker) stillRunning(reason state.Reason) error {
	running := &lane.RunningError{}
	for _, c := range w.exec.Running() {
		if reason != state.StopStuck || !w.exec.IsStuck(c) {
			running.Funcs = append(running.Funcs, c.Fn.Path())
		}
	}
	if reason == state.StopStuck && len(running.Funcs) == 0 {
		return w.watchdog.Fatal
	}
	return w.stopError(reason, running)
}

// startCheck bounds how long the start of a worker waits for the settings of Redis.
const startCheck = time.Second

// checkSettings asks the servers of the worker's queues for their settings, logs warnings, and returns an error if the
// settings are unfit for tasks. answered is false if a server did not answer.
func (w *Worker) checkSettings(ctx context.Context, limit time.Duration) (answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	servers := make([]redisstore.Server, len(w.slotGroups))
	for i, g := range w.slotGroups {
		servers[i] = g.lanes[0].Store.Server(w.cfg.Where)
		if len(w.slotGroups) > 1 {
			servers[i].Name += fmt.Sprintf(", for queue %q,", g.lanes[0].Store.Name)
		}
	}
	warnings, unfit, err := w.cfg.Settings(ctx, servers)
	if err != nil {
		return false, nil // the loops log that Redis does not answer
	}
	for _, warning := range warnings {
		w.log.Warn(warning)
	}
	return true, unfit
}

// afterStart does what the start did not wait for: it checks the settings until Redis answers, and warns of queues that
// nobody uses.
func (w *Worker) afterStart(ctx context.Context, answered bool) {
	for wait := (loop.Backoff{}); !answered; {
		var err error
		if answered, err = w.checkSettings(ctx, redisstore.CallTimeout); err != nil {
			w.unfit = err
			w.StopFor(state.StopSettings)
			return
		}
		if !answered && !loop.Sleep(ctx, wait.Next()) {
			return
		}
	}
	var unused []string
	for _, l := range w.lanes {
		if used, err := l.Store.Used(ctx, w.id); err == nil && !used {
			unused = append(unused, l.Store.Name)
		}
	}
	const doubt = "now or in the last 90 days: is its name right, and the key prefix?"
	switch n := len(unused); {
	case n == 1:
		w.log.With("queue", unused[0]).Warn("Redis knows of no task of this queue, " + doubt)
	case n > 1: // in one line, however many they are
		w.log.WithField("queues", unused[:min(n, lane.MostLogged)]).WithField("count", n).
			Warn("Redis knows of no task of several queues, " +
				strings.Replace(doubt, "is its name", "are their names", 1))
	}
}

// logStart logs that the worker starts, with its configuration.
func (w *Worker) logStart() {
	functions := w.Functions()
	paths := make([]string, len(functions))
	for i, f := range functions {
		paths[i] = f.Path
	}
	log := w.log.With("redis", w.cfg.Where)
	if w.cfg.Prefix != "" {
		log = log.With("prefix", w.cfg.Prefix)
	}
	log.WithField("queues", w.plan.String()).WithField("concurrency", w.cfg.Concurrency).WithField("functions", paths).
		WithField("version", w.cfg.Build.Library).Info("worker started")
	if len(functions) == 0 && w.cfg.PythonQueue == "" {
		w.log.Warn("no functions are registered: all tasks will be parked until a worker knows their functions; " +
			"call Register before Run")
	}
}

// ServeChild makes this process a child that runs tasks for its parent. made returns a worker like the parent's. It
// does not return.
func ServeChild(made func() (*Worker, error)) {
	new(child.Child).Serve(func(c *child.Child) error {
		w, err := made()
		if err != nil {
			return err
		}
		w.phase.Store(int32(state.Running)) // Use and Listen are too late now
		c.Source, c.Prefix, c.Legacy, c.MaxRetry = w.cfg.Source, w.cfg.Prefix, w.cfg.Legacy, w.cfg.MaxRetry
		c.Registry, c.Program, c.IsFailure = &w.registry, w.cfg.Program, w.cfg.IsFailure
		return w.cfg.Program.Prepare()
	})
}
