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
	Cfg         Config
	Log         loop.Journal
	UID         string
	plan        Order
	Registry    function.Registry
	Lanes       []*Lane
	Groups      []*slotGroup
	Exec        *Executors
	Fetcher     *Fetcher
	watchdog    *Watchdog
	lines       loop.LineLimit // log lines about tasks
	pythonStore *redisstore.Store

	heard func(*Claim, error) // hears what handlers returned, in tests; nil for nobody

	Tasks  context.Context // of all handlers; its cause is ErrShutdown once it is cancelled
	Cancel context.CancelCauseFunc

	unfit    error // why Redis must not hold tasks, with the reason StopSettings
	Hooks    Hooks
	stopping chan struct{} // closed by StopFor

	control sync.Mutex // what is held back agrees with the following
	Phase   atomic.Int32
	Paused  atomic.Bool
	quiet   atomic.Bool
	reason  atomic.Pointer[string] // to stop; nil: none yet
}

// slotGroup is what a worker does for queues of one slot.
type slotGroup struct {
	lanes     []*Lane
	Heartbeat *Heartbeat
	Mover     *mover
	Sweeper   *sweep.Group
}

// New returns a worker. It does not connect.
func New(cfg Config) *Worker {
	w := &Worker{Cfg: cfg, UID: wire.NewWorkerID(), plan: cfg.Queues, stopping: make(chan struct{})}
	w.Log = cfg.Log.With("worker", w.UID)
	w.Tasks, w.Cancel = context.WithCancelCause(context.Background())
	if cfg.PythonQueue != "" {
		w.pythonStore = redisstore.NewStore(cfg.Source, cfg.Prefix, cfg.PythonQueue)
	}
	for _, name := range w.plan.Names {
		l := NewLane(redisstore.NewStore(cfg.Source, cfg.Prefix, name), w.UID, cfg.Legacy)
		l.owner = w
		w.Lanes = append(w.Lanes, l)
		l.Finisher = NewFinisher(l, w.Log.With("queue", name), w.pythonStore)
		l.Finisher.canceled = w.canceledLate
		l.Finisher.archiveMost, l.Finisher.archiveKeep = w.Cfg.ArchiveMax, w.Cfg.ArchiveFor
	}
	w.assemble(cfg.Source)
	return w
}

// assemble makes the parts of the worker.
func (w *Worker) assemble(src redisstore.Source) {
	host, _ := os.Hostname()
	value := fmt.Sprintf("%s:%d", host, os.Getpid())
	w.Exec = NewExecutors(w.Cfg.Concurrency, w.Cfg.Prefetch, w.Cfg.HeartbeatLife, w.execute)
	w.allow()
	w.Exec.Reserve(w.Cfg.MaxStuck)
	w.watchdog = newWatchdog(w)
	for _, l := range w.Lanes {
		l.Finisher.Exec = w.Exec
	}
	w.Fetcher = &Fetcher{
		worker: w.UID, Patience: shortestPatience, lines: &w.lines, Lanes: w.Lanes, plan: w.plan,
		Wakes: make(chan WakeUp, len(w.Lanes)+16), room: w.room, Exec: w.Exec,
		receive: w.Receive, InHand: w.InHand, StartLone: w.startLone, MayClaim: w.mayClaim, OnDue: w.MoveNow,
		Life: w.Cfg.HeartbeatLife, log: w.Log,
	}
	bySlot := map[int]*slotGroup{}
	position := map[*Lane]int{}
	for i, l := range w.Lanes {
		position[l] = i
		slot := l.Store.Slot()
		g := bySlot[slot]
		if g == nil {
			g = &slotGroup{}
			bySlot[slot] = g
			w.Groups = append(w.Groups, g)
		}
		g.lanes = append(g.lanes, l)
	}
	for _, g := range w.Groups {
		health := sweep.NewLinkHealth(w.Cfg.HeartbeatLife)
		g.Heartbeat = NewHeartbeat(g.lanes, w.Cfg.HeartbeatLife, value, health, w.Log, w.beaten)
		g.Heartbeat.listing = w.Registry.Listing
		for _, l := range g.lanes {
			l.Beat = g.Heartbeat.Now
		}
		g.Mover = NewMover(src, g.lanes, w.Log)
		g.Mover.Pending = func(l *Lane, suspects bool) { w.Fetcher.Nudge(position[l], suspects) }
		g.Mover.Runnable, g.Mover.found = w.runnable, w.Exec.signal
		g.Mover.hooks, g.Mover.archiveKeep = &w.Hooks, w.Cfg.ArchiveFor
		waiter := &Waiter{
			Link: g.lanes[0].Store.NewLink(), wakes: w.Fetcher.Wakes,
			arm: make(chan []string, 1),
		}
		for _, l := range g.lanes {
			waiter.Lanes = append(waiter.Lanes, position[l])
			waiter.Stores = append(waiter.Stores, l.Store)
		}
		g.Sweeper = sweep.NewGroup(sweep.Config{
			Stores: waiter.Stores, Worker: w.UID, Interval: w.Cfg.SweepInterval, Life: w.Cfg.HeartbeatLife,
			ArchiveMax: w.Cfg.ArchiveMax, ArchiveFor: w.Cfg.ArchiveFor,
			Health: health, Log: w.Log, OnArchive: w.tellSwept,
		})
		w.Fetcher.Waiters = append(w.Fetcher.Waiters, waiter)
	}
}

// Register makes functions callable by tasks, unless there are errors already or anything is wrong with any. Parked
// tasks of theirs are claimed then.
func (w *Worker) Register(fns []*function.Function, errs []error) error {
	if err := w.registering("Register"); err != nil {
		return err
	}
	err := w.Registry.Add(fns, errs)
	w.registered()
	for _, f := range fns {
		if f.InMain {
			w.Log.With("function", f.Path()).
				Warn("function of package main: a function of the same name in another program has the same path; " +
					"move it to a package")
		}
	}
	return err
}

// registered says that there are new functions: parked tasks of theirs become pending, and Redis is told.
func (w *Worker) registered() {
	w.MoveNow()
	for _, g := range w.Groups {
		g.Heartbeat.Now()
	}
}

// RegisterMethods registers the methods of a receiver, as function.Registry.AddMethods does.
func (w *Worker) RegisterMethods(receiver any) error {
	if err := w.registering("RegisterMethods"); err != nil {
		return err
	}
	skipped, err := w.Registry.AddMethods(receiver)
	w.registered()
	for _, why := range skipped {
		w.Log.WithError(why).Debug("method not registered")
	}
	return err
}

// registering returns an error if functions cannot be registered any more.
func (w *Worker) registering(method string) error {
	if Phase(w.Phase.Load()) == PhaseStopped {
		return fmt.Errorf("%w: %s after Run has returned: make another worker", redisstore.ErrClosed, method)
	}
	return nil
}

// Functions describes what is registered, sorted by path.
func (w *Worker) Functions() []function.Info {
	var infos []function.Info
	for _, f := range w.Registry.All() {
		infos = append(infos, f.Info())
	}
	return infos
}

// room returns how many tasks the fetcher may claim now. A worker that shall not claim gives back what has not started.
func (w *Worker) room() (int, time.Duration) {
	if !w.mayClaim() {
		w.GiveBack(w.Exec.TakeBack())
		return 0, 0
	}
	n, wait, back := w.Exec.Room()
	w.GiveBack(back)
	return n, wait
}

// mayClaim says whether the worker claims tasks at all.
func (w *Worker) mayClaim() bool {
	return !w.Paused.Load() && !w.quiet.Load() && (!w.Exec.Limited || !w.Exec.Exhausted())
}

// beaten wakes whoever waits for a heartbeat.
func (w *Worker) beaten() {
	w.Exec.Wake()
	w.Exec.signal()
}

func (w *Worker) MoveNow() {
	for _, g := range w.Groups {
		g.Mover.Looked.Store(false) // until it has, nobody knows whether there is anything to do
		g.Mover.Now()
	}
}
