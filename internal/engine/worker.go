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
)

// Worker claims tasks from its queues and calls the functions registered with it. Its methods are safe for concurrent
// use.
type Worker struct {
	cfg       Config
	log       loop.Journal
	id        string
	plan      Order
	registry  function.Registry
	lanes     []*lane
	finishers []*finisher // of the lanes, by their index
	groups    []*slotGroup
	runner    *runner
	exec      *executors
	receiver  *receiver
	fetcher   *fetcher
	watchdog  *watchdog
	lines     loop.LineLimit // log lines about tasks

	tasks  context.Context // of all handlers; its cause is ErrShutdown once it is cancelled
	cancel context.CancelCauseFunc

	unfit    error // why Redis must not hold tasks, with the reason stopSettings
	events   listeners
	stopping chan struct{} // closed by stopFor

	control sync.Mutex // what is held back agrees with the following
	phase   atomic.Int32
	paused  atomic.Bool
	quiet   atomic.Bool
	reason  atomic.Pointer[string] // to stop; nil: none yet
}

// slotGroup is what a worker does for queues of one slot.
type slotGroup struct {
	lanes     []*lane
	heartbeat *heartbeat
	mover     *mover
	sweeper   *sweep.Group
}

// New returns a worker. It does not connect.
func New(cfg Config) *Worker {
	w := &Worker{cfg: cfg, id: wire.NewWorkerID(), plan: cfg.Queues, stopping: make(chan struct{})}
	w.log = cfg.Log.With("worker", w.id)
	w.tasks, w.cancel = context.WithCancelCause(context.Background())
	w.runner = &runner{
		cfg: &w.cfg, worker: w.id, log: w.log, lines: &w.lines, events: &w.events, tasks: w.tasks,
	}
	w.exec = newExecutors(cfg.Concurrency, cfg.Prefetch, cfg.HeartbeatLife, w.runner.execute)
	w.limitTasks()
	w.exec.reserve(cfg.MaxStuck)
	w.watchdog = newWatchdog(w.exec, w.runner.limit, cfg.StuckAfter, w.log)
	w.watchdog.emit, w.watchdog.drain = w.events.emit, func() { w.stopFor(stopStuck) }
	var python *redisstore.Store
	if cfg.PythonQueue != "" {
		python = redisstore.NewStore(cfg.Source, cfg.Prefix, cfg.PythonQueue)
	}
	for _, name := range w.plan.Names {
		l := newLane(redisstore.NewStore(cfg.Source, cfg.Prefix, name), w.id, cfg.Legacy)
		l.maxRetry, l.report = cfg.MaxRetry, w.events.emitFor
		w.lanes = append(w.lanes, l)
		f := newFinisher(l, w.exec, w.log.With("queue", name), python)
		f.canceled = w.runner.canceledLate
		f.archiveMost, f.archiveKeep = cfg.ArchiveMax, cfg.ArchiveFor
		w.finishers = append(w.finishers, f)
	}
	w.receiver = &receiver{
		worker: w.id, lanes: w.lanes, exec: w.exec, registry: &w.registry, runner: w.runner,
		python: python, legacy: cfg.Legacy, log: w.log, lines: &w.lines, readControl: w.readControl,
	}
	w.fetcher = &fetcher{
		worker: w.id, patience: shortestPatience, lines: &w.lines, lanes: w.lanes, plan: w.plan,
		wakes: make(chan wakeUp, len(w.lanes)+16), budget: w.budget, exec: w.exec,
		receive: w.receiver.receive, startLone: w.receiver.startLone, mayClaim: w.mayClaim, onDue: w.pokeMovers,
		life: cfg.HeartbeatLife, log: w.log,
	}
	w.group()
	return w
}

// group puts the lanes of each slot together, and makes what serves them together.
func (w *Worker) group() {
	bySlot := map[int]*slotGroup{}
	for _, l := range w.lanes {
		slot := l.store.Slot()
		g := bySlot[slot]
		if g == nil {
			g = &slotGroup{}
			bySlot[slot] = g
			w.groups = append(w.groups, g)
		}
		g.lanes = append(g.lanes, l)
	}
	host, _ := os.Hostname()
	value := fmt.Sprintf("%s:%d", host, os.Getpid())
	for _, g := range w.groups {
		w.equip(g, value)
	}
}

// equip makes the parts of a group. value is that of its heartbeat.
func (w *Worker) equip(g *slotGroup, value string) {
	src, life := w.cfg.Source, w.cfg.HeartbeatLife
	health := sweep.NewLinkHealth(life)
	g.heartbeat = newHeartbeat(g.lanes, life, value, health, w.log, w.onBeat)
	g.heartbeat.listing, g.heartbeat.events = w.registry.Listing, &w.events
	g.mover = newMover(src, g.lanes, w.log)
	g.mover.pending = func(l *lane, suspects bool) { w.fetcher.nudge(l.index, suspects) }
	g.mover.runnable, g.mover.found = w.receiver.runnable, w.exec.signal
	g.mover.events, g.mover.archiveKeep = &w.events, w.cfg.ArchiveFor
	waiter := &waiter{link: g.lanes[0].store.NewLink(), wakes: w.fetcher.wakes, arm: make(chan []string, 1)}
	for _, l := range g.lanes {
		l.beat = g.heartbeat.now
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

// budget returns how many tasks the fetcher may claim now. A worker that shall not claim gives back what has not
// started.
func (w *Worker) budget() (int, time.Duration) {
	if !w.mayClaim() {
		giveBack(w.exec.takeBack())
		return 0, 0
	}
	n, wait, back := w.exec.claimBudget()
	giveBack(back)
	return n, wait
}

// mayClaim says whether the worker claims tasks at all.
func (w *Worker) mayClaim() bool {
	return !w.paused.Load() && !w.quiet.Load() && (!w.exec.limited || !w.exec.exhausted())
}

// onBeat wakes whoever waits for a heartbeat.
func (w *Worker) onBeat() {
	w.exec.wake()
	w.exec.signal()
}

func (w *Worker) pokeMovers() {
	for _, g := range w.groups {
		g.mover.looked.Store(false) // until it has, nobody knows whether there is anything to do
		g.mover.now()
	}
}
