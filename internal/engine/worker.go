package engine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/sweep"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Worker claims tasks from its queues and calls the functions registered with it. Its methods are safe for concurrent
// use.
type Worker struct {
	cfg        Config
	log        loop.Journal
	id         string
	started    time.Time
	plan       Order
	registry   function.Registry
	lanes      []*lane
	finishers  []*finisher // one for each lane, in the same order
	slotGroups []*slotGroup
	decider    *decider
	runner     *runner
	exec       *executors
	receiver   *receiver
	fetcher    *fetcher
	watchdog   *watchdog
	announcer  *Announcer
	status     *status
	lines      loop.LineLimit // limits log lines about tasks

	handlersCtx    context.Context // parent of all handlers' contexts; cancelled with the cause ErrShutdown
	cancelHandlers context.CancelCauseFunc

	unfit    error // why the settings of Redis are unfit for tasks; set with the reason state.StopSettings
	events   listeners
	stopping chan struct{} // closed by stopFor

	controlMu sync.Mutex // held while one of the following, and what the executors hold back because of it, changes
	phase     atomic.Int32
	paused    atomic.Bool
	quiet     atomic.Bool
	reason    atomic.Pointer[state.Reason] // why the worker stops; nil: it does not
}

// slotGroup has the parts of a worker that serve the queues of one slot together.
type slotGroup struct {
	lanes     []*lane
	heartbeat *heartbeat
	mover     *mover
	sweeper   *sweep.Group
}

// New returns a worker. It does not connect to Redis.
func New(cfg Config) *Worker {
	w := &Worker{cfg: cfg, id: wire.NewWorkerID(), started: time.Now(), plan: cfg.Queues, stopping: make(chan struct{})}
	w.log = cfg.Log.With("worker", w.id)
	w.events.air = newBroadcast(w.id)
	w.handlersCtx, w.cancelHandlers = context.WithCancelCause(context.Background())
	w.decider = &decider{
		program: cfg.Program, isFailure: cfg.IsFailure, backoff: cfg.Backoff,
		worker: w.id, log: w.log, lines: &w.lines, events: &w.events, handlersCtx: w.handlersCtx,
	}
	if cfg.Isolation != nil {
		w.decider.isolation = newIsolation(*cfg.Isolation, cfg.CancelGrace, w.log)
	}
	w.runner = &runner{decider: w.decider, timeout: cfg.Timeout}
	w.exec = newExecutors(cfg.Concurrency, cfg.Prefetch, cfg.HeartbeatLife, w.runner)
	w.setTaskLimits()
	w.exec.reserve(cfg.MaxStuck)
	w.watchdog = newWatchdog(w.exec, w.runner, cfg.StuckAfter, &w.events, w, w.log)
	var python *redisstore.Store
	if cfg.PythonQueue != "" {
		python = redisstore.NewStore(cfg.Source, cfg.Prefix, cfg.PythonQueue)
	}
	for _, name := range w.plan.Names {
		w.addLane(name, python)
	}
	w.receiver = &receiver{
		worker: w.id, lanes: w.lanes, exec: w.exec, registry: &w.registry, decider: w.decider,
		python: python, legacy: cfg.Legacy, log: w.log, lines: &w.lines, owner: w,
	}
	w.fetcher = &fetcher{
		worker: w.id, patience: shortestPatience, lines: &w.lines, lanes: w.lanes, plan: w.plan,
		wakes: make(chan wakeUp, len(w.lanes)+16), exec: w.exec, receiver: w.receiver, owner: w,
		life: cfg.HeartbeatLife, log: w.log,
	}
	queues := map[string]bool{}
	for _, l := range w.lanes {
		queues[l.store.Name] = l.legacy
	}
	w.announcer = NewAnnouncer(cfg.Registry, cfg.Source, queues, cfg.HeartbeatLife*9/40, w.log)
	w.status = &status{
		all: catalog.Status{
			Version: catalog.Version, Started: w.started.UnixMilli(), Library: cfg.Build.Library,
			Program: cfg.Build.String(), Concurrency: cfg.Concurrency, Queues: w.plan.String(),
		},
		worker: w, exec: w.exec,
	}
	w.groupLanes()
	return w
}

// addLane makes the lane and the finisher of a queue.
func (w *Worker) addLane(name string, python *redisstore.Store) {
	l := newLane(redisstore.NewStore(w.cfg.Source, w.cfg.Prefix, name), w.id, w.cfg.Legacy)
	l.maxRetry = w.cfg.MaxRetry
	w.lanes = append(w.lanes, l)
	f := newFinisher(l, w.exec, w.decider, &w.events, w.log)
	f.python = python
	f.archiveMost, f.archiveKeep = w.cfg.ArchiveMax, w.cfg.ArchiveFor
	w.finishers = append(w.finishers, f)
}

// groupLanes groups the lanes by slot and makes the parts of each group.
func (w *Worker) groupLanes() {
	bySlot := map[int]*slotGroup{}
	for _, l := range w.lanes {
		slot := l.store.Slot()
		g := bySlot[slot]
		if g == nil {
			g = &slotGroup{}
			bySlot[slot] = g
			w.slotGroups = append(w.slotGroups, g)
		}
		g.lanes = append(g.lanes, l)
	}
	host, _ := os.Hostname()
	value := fmt.Sprintf("%s:%d", host, os.Getpid())
	for _, g := range w.slotGroups {
		w.makeParts(g, value)
	}
}

// makeParts makes the parts of a group. value identifies this process in the heartbeat's value.
func (w *Worker) makeParts(g *slotGroup, value string) {
	src, life := w.cfg.Source, w.cfg.HeartbeatLife
	turns := make(chan struct{}, controlReaders)
	for _, l := range g.lanes {
		l.control.turns = turns
	}
	health := sweep.NewLinkHealth(life)
	g.heartbeat = newHeartbeat(g.lanes, life, value, health, w.log, w.exec, w.announcer)
	g.heartbeat.functions, g.heartbeat.status, g.heartbeat.events = &w.registry, w.status, &w.events
	g.mover = newMover(src, g.lanes, w.log)
	g.mover.fetcher, g.mover.parked = w.fetcher, w.receiver
	g.mover.events, g.mover.archiveKeep = &w.events, w.cfg.ArchiveFor
	waiter := &waiter{
		link: g.lanes[0].store.NewLink(), wakes: w.fetcher.wakes,
		blockOn: make(chan redisstore.WaitOn, 1),
	}
	for _, l := range g.lanes {
		waiter.lanes = append(waiter.lanes, l.index)
		waiter.stores = append(waiter.stores, l.store)
	}
	w.fetcher.waiters = append(w.fetcher.waiters, waiter)
	g.sweeper = sweep.NewGroup(sweep.Config{
		Stores: waiter.stores, Worker: w.id, Interval: w.cfg.SweepInterval, Life: life,
		ArchiveMax: w.cfg.ArchiveMax, ArchiveFor: w.cfg.ArchiveFor,
		Health: health, Log: w.log, OnArchive: w.events.emitSwept,
	})
}

// mayClaim reports whether the worker may claim tasks at all.
func (w *Worker) mayClaim() bool {
	return !w.paused.Load() && !w.quiet.Load() && (!w.exec.limited || !w.exec.exhausted())
}

// pokeMovers makes all movers check their queues now.
func (w *Worker) pokeMovers() {
	for _, g := range w.slotGroups {
		g.mover.checked.Store(false) // until then it is unknown whether there is work
		g.mover.runNow()
	}
}

// Quarantine makes the worker run suspects in child processes. Call it before Run, in programs that can have children.
func (w *Worker) Quarantine() {
	if i := w.decider.isolation; i != nil {
		i.Quarantine = true
	}
}
