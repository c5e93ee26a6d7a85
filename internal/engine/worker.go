package engine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

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
	runner     *runner
	exec       *executors
	receiver   *receiver
	fetcher    *fetcher
	watchdog   *watchdog
	announcer  *Announcer
	lines      loop.LineLimit // limits log lines about tasks

	handlersCtx    context.Context // parent of all handlers' contexts; cancelled with the cause ErrShutdown
	cancelHandlers context.CancelCauseFunc

	unfit    error // why the settings of Redis are unfit for tasks; set with the reason state.StopSettings
	events   listeners
	memory   toldMemory    // that the status tells
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
	w.runner = &runner{
		cfg: &w.cfg, worker: w.id, log: w.log, lines: &w.lines, events: &w.events, handlersCtx: w.handlersCtx,
	}
	if cfg.Isolation != nil {
		w.runner.isolation = newIsolation(*cfg.Isolation, cfg.CancelGrace, w.log)
	}
	w.exec = newExecutors(cfg.Concurrency, cfg.Prefetch, cfg.HeartbeatLife, w.runner.execute)
	w.setTaskLimits()
	w.exec.reserve(cfg.MaxStuck)
	w.watchdog = newWatchdog(w.exec, w.runner.timeLimit, cfg.StuckAfter, w.log)
	w.watchdog.emit, w.watchdog.stopWorker = w.events.emit, func() { w.stopFor(state.StopStuck) }
	var python *redisstore.Store
	if cfg.PythonQueue != "" {
		python = redisstore.NewStore(cfg.Source, cfg.Prefix, cfg.PythonQueue)
	}
	for _, name := range w.plan.Names {
		w.addLane(name, python)
	}
	w.receiver = &receiver{
		worker: w.id, lanes: w.lanes, exec: w.exec, registry: &w.registry, runner: w.runner,
		python: python, legacy: cfg.Legacy, log: w.log, lines: &w.lines, readControl: w.readControl,
	}
	w.fetcher = &fetcher{
		worker: w.id, patience: shortestPatience, lines: &w.lines, lanes: w.lanes, plan: w.plan,
		wakes: make(chan wakeUp, len(w.lanes)+16), claimBudget: w.claimBudget, exec: w.exec,
		receive: w.receiver.receive, startLone: w.receiver.startLone, mayClaim: w.mayClaim, onDue: w.pokeMovers,
		life: cfg.HeartbeatLife, log: w.log,
	}
	queues := map[string]bool{}
	for _, l := range w.lanes {
		queues[l.store.Name] = l.legacy
	}
	w.announcer = NewAnnouncer(cfg.Registry, cfg.Source, queues, cfg.HeartbeatLife*9/40, w.log)
	w.groupLanes()
	return w
}

// addLane makes the lane and the finisher of a queue.
func (w *Worker) addLane(name string, python *redisstore.Store) {
	l := newLane(redisstore.NewStore(w.cfg.Source, w.cfg.Prefix, name), w.id, w.cfg.Legacy)
	l.maxRetry, l.emit = w.cfg.MaxRetry, w.events.emitFor
	w.lanes = append(w.lanes, l)
	f := newFinisher(l, w.exec, w.log.With("queue", name), python)
	f.lateCancellation = w.runner.lateCancellation
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
	g.heartbeat = newHeartbeat(g.lanes, life, value, health, w.log, w.onBeat)
	g.heartbeat.listing, g.heartbeat.events = w.registry.Listing, &w.events
	g.heartbeat.onRegistered, g.heartbeat.tell = w.announcer.now, w.tell
	g.heartbeat.status = w.statusAt
	// Tasks that cannot start must not take the executors' places from those of other queues.
	g.heartbeat.onRefused = func(l *lane) { giveBack(w.exec.takeBackOf(l)) }
	g.mover = newMover(src, g.lanes, w.log)
	g.mover.onPending = func(l *lane, suspects bool) { w.fetcher.nudge(l.index, suspects) }
	g.mover.runnableParked, g.mover.onParkedFound = w.receiver.runnableParked, w.exec.wakeFetcher
	g.mover.events, g.mover.archiveKeep = &w.events, w.cfg.ArchiveFor
	waiter := &waiter{
		link: g.lanes[0].store.NewLink(), wakes: w.fetcher.wakes,
		blockOn: make(chan redisstore.WaitOn, 1),
	}
	for _, l := range g.lanes {
		l.beatNow = g.heartbeat.beatNow
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

// claimBudget returns how many tasks the fetcher may claim now, and how long to wait at most before it asks again; 0 is
// no bound. A worker that may not claim gives back the tasks that have not started.
func (w *Worker) claimBudget() (int, time.Duration) {
	if !w.mayClaim() {
		giveBack(w.exec.takeBack())
		return 0, 0
	}
	n, wait, back := w.exec.claimBudget()
	giveBack(back)
	return n, wait
}

// mayClaim reports whether the worker may claim tasks at all.
func (w *Worker) mayClaim() bool {
	return !w.paused.Load() && !w.quiet.Load() && (!w.exec.limited || !w.exec.exhausted())
}

// onBeat wakes the executors and the fetcher, which may wait for a heartbeat.
func (w *Worker) onBeat() {
	w.exec.wakeAll()
	w.exec.wakeFetcher()
}

// pokeMovers makes all movers check their queues now.
func (w *Worker) pokeMovers() {
	for _, g := range w.slotGroups {
		g.mover.checked.Store(false) // until then it is unknown whether there is work
		g.mover.runNow()
	}
}
