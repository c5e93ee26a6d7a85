package engine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godelayed/delayed/internal/buildinfo"
	"github.com/godelayed/delayed/internal/catalog"
	"github.com/godelayed/delayed/internal/engine/beat"
	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/exec"
	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/engine/move"
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
	plan       fetch.Order
	registry   function.Registry
	lanes      []*lane.Lane
	finishers  []*finish.Finisher // one for each lane, in the same order
	slotGroups []*slotGroup
	decider    *finish.Decider
	runner     *exec.Runner
	exec       *exec.Executors
	receiver   *fetch.Receiver
	fetcher    *fetch.Fetcher
	watchdog   *exec.Watchdog
	announcer  *beat.Announcer
	status     *beat.Status
	lines      loop.LineLimit // limits log lines about tasks

	handlersCtx    context.Context // parent of all handlers' contexts; canceled with the cause ErrShutdown
	cancelHandlers context.CancelCauseFunc

	unfit    error // why the settings of Redis are unfit for tasks; set with the reason state.StopSettings
	events   events.Listeners
	stopping chan struct{} // closed by StopFor

	controlMu sync.Mutex // held while one of the following, and what the executors hold back because of it, changes
	phase     atomic.Int32
	paused    atomic.Bool
	quiet     atomic.Bool
	reason    atomic.Pointer[state.Reason] // why the worker stops; nil: it does not
}

// slotGroup has the parts of a worker that serve the queues of one slot together.
type slotGroup struct {
	lanes     []*lane.Lane
	heartbeat *beat.Heartbeat
	mover     *move.Mover
	sweeper   *sweep.Group
}

// New returns a worker. It does not connect to Redis.
func New(cfg Config) *Worker {
	w := &Worker{cfg: cfg, id: wire.NewWorkerID(), started: time.Now(), plan: cfg.Queues, stopping: make(chan struct{})}
	w.log = cfg.Log.With("worker", w.id)
	w.events.Air = events.NewBroadcast(w.id)
	w.handlersCtx, w.cancelHandlers = context.WithCancelCause(context.Background())
	w.decider = &finish.Decider{
		Program: cfg.Program, IsFailure: cfg.IsFailure, Backoff: cfg.Backoff,
		Worker: w.id, Log: w.log, Lines: &w.lines, Events: &w.events, HandlersCtx: w.handlersCtx,
	}
	if cfg.Isolation != nil {
		w.decider.Isolation = child.NewIsolation(*cfg.Isolation, cfg.CancelGrace, w.log)
	}
	w.runner = &exec.Runner{Decider: w.decider, Timeout: cfg.Timeout}
	w.exec = exec.New(cfg.Concurrency, cfg.Prefetch, cfg.HeartbeatLife, w.runner)
	w.setTaskLimits()
	w.exec.Reserve(cfg.MaxStuck)
	w.watchdog = exec.NewWatchdog(w.exec, w.runner, cfg.StuckAfter)
	var python *redisstore.Store
	if cfg.PythonQueue != "" {
		python = redisstore.NewStore(cfg.Source, cfg.Prefix, cfg.PythonQueue)
	}
	for _, name := range w.plan.Names {
		w.addLane(name, python)
	}
	w.receiver = &fetch.Receiver{
		Decider: w.decider, Lanes: w.lanes, Exec: w.exec, Registry: &w.registry, Python: python, Legacy: cfg.Legacy,
		Owner: w,
	}
	w.fetcher = &fetch.Fetcher{
		Receiver: w.receiver, Plan: w.plan, Wakes: make(chan fetch.WakeUp, len(w.lanes)+16),
		Life: cfg.HeartbeatLife, Patience: lane.ShortestPatience,
	}
	queues := map[string]bool{}
	for _, l := range w.lanes {
		queues[l.Store.Name] = l.Legacy
	}
	w.announcer = beat.NewAnnouncer(cfg.Registry, cfg.Source, queues, cfg.HeartbeatLife*9/40, w.log)
	w.status = &beat.Status{
		All: catalog.Status{
			Version: catalog.Version, Started: w.started.UnixMilli(), Library: cfg.Build.Library,
			Program: cfg.Build.String(), Concurrency: cfg.Concurrency, Queues: w.plan.String(),
		},
		Worker: w, Exec: w.exec,
	}
	w.groupLanes()
	return w
}

// addLane makes the lane and the finisher of a queue.
func (w *Worker) addLane(name string, python *redisstore.Store) {
	l := lane.New(redisstore.NewStore(w.cfg.Source, w.cfg.Prefix, name), w.id, w.cfg.Legacy)
	l.MaxRetry = w.cfg.MaxRetry
	w.lanes = append(w.lanes, l)
	f := finish.New(l, w.exec, w.decider)
	f.Python = python
	f.ArchiveMost, f.ArchiveKeep = w.cfg.ArchiveMax, w.cfg.ArchiveFor
	w.finishers = append(w.finishers, f)
}

// groupLanes groups the lanes by slot and makes the parts of each group.
func (w *Worker) groupLanes() {
	bySlot := map[int]*slotGroup{}
	for _, l := range w.lanes {
		slot := l.Store.Slot()
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
		l.Control.Turns = turns
	}
	health := sweep.NewLinkHealth(life)
	g.heartbeat = beat.New(g.lanes, life, value, health, w.log, w.exec, w.announcer)
	g.heartbeat.Functions, g.heartbeat.Status, g.heartbeat.Events = &w.registry, w.status, &w.events
	g.mover = move.New(src, g.lanes, w.log)
	g.mover.Fetcher, g.mover.Parked = w.fetcher, w.receiver
	g.mover.Events, g.mover.ArchiveKeep = &w.events, w.cfg.ArchiveFor
	waiter := &fetch.Waiter{
		Link: g.lanes[0].Store.NewLink(), Wakes: w.fetcher.Wakes,
		BlockOn: make(chan redisstore.WaitOn, 1),
	}
	for _, l := range g.lanes {
		waiter.Lanes = append(waiter.Lanes, l.Index)
		waiter.Stores = append(waiter.Stores, l.Store)
	}
	w.fetcher.Waiters = append(w.fetcher.Waiters, waiter)
	g.sweeper = sweep.NewGroup(sweep.Config{
		Stores: waiter.Stores, Worker: w.id, Interval: w.cfg.SweepInterval, Life: life,
		ArchiveMax: w.cfg.ArchiveMax, ArchiveFor: w.cfg.ArchiveFor,
		Health: health, Log: w.log, OnArchive: w.events.EmitSwept,
	})
}

// MayClaim reports whether the worker may claim tasks at all.
func (w *Worker) MayClaim() bool {
	return !w.paused.Load() && !w.quiet.Load() && (!w.exec.Limited || !w.exec.Exhausted())
}

// PokeMovers makes all movers check their queues now.
func (w *Worker) PokeMovers() {
	for _, g := range w.slotGroups {
		g.mover.Checked.Store(false) // until then it is unknown whether there is work
		g.mover.RunNow()
	}
}

// Quarantine makes the worker run suspects in child processes. Call it before Run, in programs that can have children.
func (w *Worker) Quarantine() {
	if i := w.decider.Isolation; i != nil {
		i.Quarantine = true
	}
}

// Config says what a worker does. The caller fills in and checks every field: this package has no defaults. The public
// configuration documents the fields; the comments here say what differs.
type Config struct {
	Source  redisstore.Source
	Prefix  string // of all keys
	Where   string // names the Redis server in the log
	Signals *redisstore.Signals
	Log     loop.Journal
	// Registry is where the worker announces its queues; nil: nowhere.
	Registry *redisstore.Registry

	Queues        fetch.Order
	Concurrency   int
	Prefetch      int // tasks to claim ahead; negative: as many as suits the handlers
	HeartbeatLife time.Duration
	SweepInterval time.Duration
	NoSweeper     bool
	Grace         time.Duration
	CancelGrace   time.Duration
	MaxRetry      int
	Backoff       func(retried int) time.Duration
	IsFailure     func(error) bool // nil: every error is a failure
	Timeout       time.Duration    // 0: none
	StuckAfter    time.Duration    // negative: no watchdog
	MaxStuck      int
	Legacy        bool
	PythonQueue   string // "": none
	Rest          time.Duration
	ArchiveMax    int
	ArchiveFor    time.Duration

	// Limits; 0 is none.
	MaxTasks         int
	MaxTime          time.Duration
	MaxMemory        int64
	StopWhenEmpty    bool
	StopWhenEmptyFor time.Duration

	Build buildinfo.Info

	Isolation *child.Config // nil: this program has no child processes

	// Settings asks the servers that hold the queues for their settings. unfit says why the settings of one are unfit
	// for tasks, err why one did not answer.
	Settings func(ctx context.Context, servers []redisstore.Server) (warnings []string, unfit, err error)
	Program  child.Program
	// Beside are functions that run as long as the worker claims tasks. Each must return when its context ends.
	Beside []func(context.Context)
}

// listenGrace returns how long a worker that has stopped waits for its listeners.
func (c *Config) listenGrace() time.Duration { return max(c.CancelGrace, time.Second) }
