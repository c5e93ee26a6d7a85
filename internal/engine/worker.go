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
	cfg         Config
	log         loop.Journal
	id          string
	plan        Order
	registry    function.Registry
	lanes       []*lane
	groups      []*slotGroup
	exec        *executors
	fetcher     *fetcher
	watchdog    *watchdog
	lines       loop.LineLimit // log lines about tasks
	pythonStore *redisstore.Store

	onReturn func(*Claim, error) // hears what handlers returned, in tests; nil for nobody

	tasks  context.Context // of all handlers; its cause is ErrShutdown once it is cancelled
	cancel context.CancelCauseFunc

	unfit    error // why Redis must not hold tasks, with the reason stopSettings
	hooks    listeners
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
	if cfg.PythonQueue != "" {
		w.pythonStore = redisstore.NewStore(cfg.Source, cfg.Prefix, cfg.PythonQueue)
	}
	for _, name := range w.plan.Names {
		l := newLane(redisstore.NewStore(cfg.Source, cfg.Prefix, name), w.id, cfg.Legacy)
		l.owner = w
		w.lanes = append(w.lanes, l)
		l.finisher = newFinisher(l, w.log.With("queue", name), w.pythonStore)
		l.finisher.canceled = w.canceledLate
		l.finisher.archiveMost, l.finisher.archiveKeep = w.cfg.ArchiveMax, w.cfg.ArchiveFor
	}
	w.assemble(cfg.Source)
	return w
}

// assemble makes the parts of the worker.
func (w *Worker) assemble(src redisstore.Source) {
	host, _ := os.Hostname()
	value := fmt.Sprintf("%s:%d", host, os.Getpid())
	w.exec = newExecutors(w.cfg.Concurrency, w.cfg.Prefetch, w.cfg.HeartbeatLife, w.execute)
	w.allow()
	w.exec.reserve(w.cfg.MaxStuck)
	w.watchdog = newWatchdog(w)
	for _, l := range w.lanes {
		l.finisher.exec = w.exec
	}
	w.fetcher = &fetcher{
		worker: w.id, patience: shortestPatience, lines: &w.lines, lanes: w.lanes, plan: w.plan,
		wakes: make(chan wakeUp, len(w.lanes)+16), budget: w.room, exec: w.exec,
		receive: w.receive, inHand: w.inHand, startLone: w.startLone, mayClaim: w.mayClaim, onDue: w.pokeMovers,
		life: w.cfg.HeartbeatLife, log: w.log,
	}
	bySlot := map[int]*slotGroup{}
	position := map[*lane]int{}
	for i, l := range w.lanes {
		position[l] = i
		slot := l.store.Slot()
		g := bySlot[slot]
		if g == nil {
			g = &slotGroup{}
			bySlot[slot] = g
			w.groups = append(w.groups, g)
		}
		g.lanes = append(g.lanes, l)
	}
	for _, g := range w.groups {
		health := sweep.NewLinkHealth(w.cfg.HeartbeatLife)
		g.heartbeat = newHeartbeat(g.lanes, w.cfg.HeartbeatLife, value, health, w.log, w.onBeat)
		g.heartbeat.listing = w.registry.Listing
		for _, l := range g.lanes {
			l.beat = g.heartbeat.now
		}
		g.mover = newMover(src, g.lanes, w.log)
		g.mover.pending = func(l *lane, suspects bool) { w.fetcher.nudge(position[l], suspects) }
		g.mover.runnable, g.mover.found = w.runnable, w.exec.signal
		g.mover.hooks, g.mover.archiveKeep = &w.hooks, w.cfg.ArchiveFor
		waiter := &waiter{
			link: g.lanes[0].store.NewLink(), wakes: w.fetcher.wakes,
			arm: make(chan []string, 1),
		}
		for _, l := range g.lanes {
			waiter.lanes = append(waiter.lanes, position[l])
			waiter.stores = append(waiter.stores, l.store)
		}
		g.sweeper = sweep.NewGroup(sweep.Config{
			Stores: waiter.stores, Worker: w.id, Interval: w.cfg.SweepInterval, Life: w.cfg.HeartbeatLife,
			ArchiveMax: w.cfg.ArchiveMax, ArchiveFor: w.cfg.ArchiveFor,
			Health: health, Log: w.log, OnArchive: w.emitSwept,
		})
		w.fetcher.waiters = append(w.fetcher.waiters, waiter)
	}
}

// room returns how many tasks the fetcher may claim now. A worker that shall not claim gives back what has not started.
func (w *Worker) room() (int, time.Duration) {
	if !w.mayClaim() {
		w.giveBack(w.exec.takeBack())
		return 0, 0
	}
	n, wait, back := w.exec.claimBudget()
	w.giveBack(back)
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
