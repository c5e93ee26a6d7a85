package delayed

import (
	"context"
	"errors"
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

// Worker claims tasks from its queues and calls the functions registered with it. Create it with NewWorker, register
// functions, and Run it. Its methods are safe for concurrent use.
type Worker struct {
	cfg         WorkerConfig
	log         loop.Journal
	id          string
	plan        orderPlan
	registry    function.Registry
	lanes       []*lane
	groups      []*slotGroup
	exec        *executors
	fetcher     *fetcher
	watchdog    *watchdog
	signals     *redisstore.Signals
	lines       loop.LineLimit // log lines about tasks
	pythonStore *redisstore.Store
	schedulers  []*Scheduler

	heard func(*claim, error) // hears what handlers returned, in tests; nil for nobody

	tasks  context.Context // of all handlers; its cause is ErrShutdown once it is cancelled
	cancel context.CancelCauseFunc

	middleware []func(HandlerFunc) HandlerFunc // by Use
	where      string                          // which Redis, for the log
	prefix     string                          // of its keys
	unfit      error                           // why Redis must not hold tasks, with the reason stopSettings
	chain      HandlerFunc                     // made of it by Run; nil: there is none
	hooks      hooks
	stopping   chan struct{} // closed by stopFor

	control sync.Mutex // what is held back agrees with the following
	state   atomic.Int32
	paused  atomic.Bool
	quiet   atomic.Bool
	reason  atomic.Pointer[string] // to stop; nil: none yet
}

// workerConns is how many connections a worker cannot do without.
const workerConns = 5

// slotGroup is what a worker does for queues of one slot.
type slotGroup struct {
	lanes     []*lane
	heartbeat *heartbeat
	mover     *mover
	sweeper   *sweep.Group
}

// NewWorker returns a worker, or everything that is wrong with cfg. It does not connect.
func NewWorker(rdb *Redis, cfg WorkerConfig) (*Worker, error) {
	if err := rdb.check(); err != nil {
		return nil, fmt.Errorf("delayed: NewWorker: %w", err)
	}
	if p, ok := rdb.loops.(redisstore.PoolSource); ok && p.Pool.MaxActive > 0 && p.Pool.MaxActive < workerConns {
		return nil, fmt.Errorf("delayed: the pool's MaxActive is %d: a worker keeps four connections and needs at "+
			"least one more: expected %d or more, or 0",
			p.Pool.MaxActive, workerConns)
	}
	cfg = cfg.withDefaults()
	err := cfg.check(rdb.prefix)
	var plan orderPlan
	if wire.IsNil(cfg.Queues) {
		err = errors.Join(err, errors.New("delayed: WorkerConfig.Queues is missing: expected Strict or Weighted"))
	} else {
		var planErr error
		if plan, planErr = cfg.Queues.plan(); planErr == nil {
			planErr = rdb.checkSlots(plan.names)
		}
		err = errors.Join(err, planErr)
	}
	if err != nil {
		return nil, err
	}
	w := &Worker{
		cfg: cfg, id: wire.NewWorkerID(), plan: plan, signals: rdb.signals, where: rdb.where, prefix: rdb.prefix,
		stopping: make(chan struct{}),
	}
	w.log = loop.NewJournal(cfg.Logger).With("worker", w.id)
	w.tasks, w.cancel = context.WithCancelCause(context.Background())
	if cfg.PythonQueue != "" {
		w.pythonStore = redisstore.NewStore(rdb.loops, rdb.prefix, cfg.PythonQueue)
	}
	for _, name := range plan.names {
		l := newLane(redisstore.NewStore(rdb.loops, rdb.prefix, name), w.id, cfg.Legacy)
		l.owner = w
		if w.pythonStore != nil && l.store.Slot() != w.pythonStore.Slot() {
			return nil, fmt.Errorf("delayed: WorkerConfig.PythonQueue %q and queue %q are in different slots of the "+
				"cluster: give both the same {tag}",
				cfg.PythonQueue, name)
		}
		w.lanes = append(w.lanes, l)
		l.finisher = newFinisher(l, w.log.With("queue", name), w.pythonStore)
		l.finisher.canceled = w.canceledLate
		l.finisher.archiveMost, l.finisher.archiveKeep = w.cfg.ArchiveMax, w.cfg.ArchiveFor
	}
	w.assemble(rdb.loops)
	if w.schedulers, err = newSchedulers(rdb, cfg); err != nil {
		return nil, err
	}
	return w, nil
}

// assemble makes the parts of the worker.
func (w *Worker) assemble(src Source) {
	host, _ := os.Hostname()
	value := fmt.Sprintf("%s:%d", host, os.Getpid())
	w.exec = newExecutors(w.cfg.Concurrency, w.cfg.prefetch(), w.cfg.HeartbeatLife, w.execute)
	w.allow()
	w.exec.reserve(w.cfg.MaxStuck)
	w.watchdog = newWatchdog(w)
	for _, l := range w.lanes {
		l.finisher.exec = w.exec
	}
	w.fetcher = &fetcher{
		worker: w.id, patience: shortestPatience, lines: &w.lines, lanes: w.lanes, plan: w.plan,
		wakes: make(chan wakeUp, len(w.lanes)+16), room: w.room, exec: w.exec,
		receive: w.receive, inHand: w.inHand, startLone: w.startLone, mayClaim: w.mayClaim, onDue: w.moveNow,
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
		g.heartbeat = newHeartbeat(g.lanes, w.cfg.HeartbeatLife, value, health, w.log, w.beaten)
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
			Health: health, Log: w.log, OnArchive: w.tellSwept,
		})
		w.fetcher.waiters = append(w.fetcher.waiters, waiter)
	}
}

// Register makes functions callable by tasks: functions of packages, or what Func returned. It returns everything that
// is wrong with them, joined, and registers the others. It may be called while the worker runs; parked tasks of the new
// functions are claimed then.
func (w *Worker) Register(fns ...any) error {
	if err := w.registering("Register"); err != nil {
		return err
	}
	var good []*function.Function
	var errs []error
	for _, fn := range fns {
		f, err := newFunction(fn)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		good = append(good, f)
	}
	err := w.registry.Add(good, errs)
	w.registered()
	for _, f := range good {
		if f.InMain {
			w.log.With("function", f.Path()).
				Warn("function of package main: a function of the same name in another program has the same path; " +
					"move it to a package")
		}
	}
	return err
}

// registered says that there are new functions: parked tasks of theirs become pending, and Redis is told.
func (w *Worker) registered() {
	w.moveNow()
	for _, g := range w.groups {
		g.heartbeat.now()
	}
}

// RegisterMethods registers every exported method of receiver that has an accepted signature. Tasks name them by method
// expression:
//
//	q.Delay((*Mailer).Send, 42)
//	err := w.RegisterMethods(&Mailer{db: db})
func (w *Worker) RegisterMethods(receiver any) error {
	if err := w.registering("RegisterMethods"); err != nil {
		return err
	}
	skipped, err := w.registry.AddMethods(receiver)
	w.registered()
	for _, why := range skipped {
		w.log.WithError(why).Debug("method not registered")
	}
	return err
}

// registering returns an error if functions cannot be registered any more.
func (w *Worker) registering(method string) error {
	if err := w.check(); err != nil {
		return err
	}
	if WorkerState(w.state.Load()) == WorkerStopped {
		return fmt.Errorf("%w: %s after Run has returned: make another worker", ErrClosed, method)
	}
	return nil
}

// attach makes middleware and listeners ready, of which there will be no more.
func (w *Worker) attach() (err error) {
	w.control.Lock() // Use or Listen may still be at work
	defer w.control.Unlock()
	if w.chain, err = chain(w.middleware, callFunc); err != nil {
		return err
	}
	w.hooks.start(w.log)
	return nil
}

// Run claims and runs tasks until ctx ends; then it stops claiming, gives back tasks that have not started, waits for
// running handlers for WorkerConfig.Grace, cancels their contexts with cause ErrShutdown, and waits for CancelGrace. It
// returns nil after a clean stop, *StillRunningError when handlers still run, *StuckError when it stopped because of
// handlers that are stuck (both of them joined, if others still run), and ErrClosed when it was called before or the
// handle on Redis is closed, also meanwhile. It handles no signals. While Redis is away it tries again and carries on
// by itself.
//
// First Run asks the servers of its queues for their settings, as Redis.Check does: it returns a *SettingError if one
// must not hold tasks and WorkerConfig.Allow does not name the reason, and logs warnings. Where Redis does not answer
// yet, it asks once Redis does.
//
//nolint:contextcheck // what was claimed is brought to its end after ctx
func (w *Worker) Run(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	if !w.state.CompareAndSwap(int32(WorkerNew), int32(WorkerRunning)) {
		return fmt.Errorf("%w: Run was called before: make another worker", ErrClosed)
	}
	answered, err := w.checkSettings(ctx, startCheck)
	if err == nil {
		err = w.attach()
	}
	if w.signals.Open.Err() != nil {
		err = redisstore.ErrHandleClosed
	}
	if err != nil {
		w.state.Store(int32(WorkerStopped))
		return err
	}
	w.logStart()
	w.emit(Event{Kind: EventWorkerStarted})
	ctx, end := w.signals.Until(ctx)
	defer end()
	w.exec.start()

	tell, told := context.WithCancel(context.Background())         // ends when no task runs any more
	abandon, giveUp := context.WithCancel(context.Background())    // ends when Redis shall not be told any more
	beating, stopBeats := context.WithCancel(context.Background()) // ends at the very end
	var loops, beats, finishers sync.WaitGroup
	for _, g := range w.groups {
		beats.Go(func() { g.heartbeat.run(beating) })
		loops.Go(func() { g.mover.run(ctx) })
		if !w.cfg.NoSweeper {
			loops.Go(func() { g.sweeper.Run(ctx) })
		}
	}
	if w.cfg.StuckAfter > 0 {
		beats.Go(func() { w.watchdog.run(beating) })
	}
	for _, wt := range w.fetcher.waiters {
		loops.Go(func() { wt.run(ctx) })
	}
	for _, l := range w.lanes {
		finishers.Go(func() { l.finisher.run(tell, abandon) })
		beats.Go(func() { w.follow(beating, l) })
	}
	for _, s := range w.schedulers {
		loops.Go(func() { _ = s.Run(ctx) }) // it has no errors but that of a second Run
	}
	loops.Go(func() { w.fetcher.run(ctx) })
	loops.Go(func() { w.followUp(ctx, answered) })
	for _, watch := range w.watches() {
		loops.Go(func() { watch(ctx) })
	}

	select {
	case <-ctx.Done():
		if redisstore.Closing(ctx) != nil {
			w.stopFor(stopClosed)
		}
		w.stopFor(stopContext)
	case <-w.stopping:
	}
	defer context.AfterFunc(w.signals.Open, giveUp)() // Redis cannot be told any more
	w.control.Lock()
	w.state.Store(int32(WorkerStopping))
	w.holdBack() // at once: the loops may have to wait for Redis
	w.control.Unlock()
	end()
	reason := w.stopReason()
	w.log.WithField("reason", reason).Info("worker stops: no more tasks are claimed")
	w.emit(Event{Kind: EventWorkerStopping, Reason: reason})
	if reason != stopStuck {
		for _, l := range w.lanes {
			beats.Go(func() { w.noteStop(beating, l) })
		}
	}
	grace := time.Now().Add(w.cfg.Grace)
	loops.Wait()
	w.giveBack(w.exec.takeBack())
	w.exec.stop()
	sound, idle := make(chan struct{}), make(chan struct{})
	go func() {
		w.exec.over.Wait()
		close(sound)
		w.exec.late.Wait()
		close(idle)
	}()
	awaited := idle
	if reason == stopStuck {
		awaited = sound // the others do not return
	}
	if !waitFor(awaited, time.Until(grace)) {
		w.cancel(ErrShutdown)
		waitFor(awaited, w.cfg.CancelGrace)
	}
	// What remains is done with or without the caller: a handler that still runs keeps its claim and its heartbeat.
	finish := func() error {
		<-idle
		w.cancel(ErrShutdown)
		told()
		timer := time.AfterFunc(w.cfg.CancelGrace+redisstore.CallTimeout, giveUp)
		finishers.Wait()
		timer.Stop()
		giveUp()
		stopBeats() // before unregister, or a heartbeat could register the worker again behind it
		beats.Wait()
		err := w.unregister()
		w.lines.Close()
		w.state.Store(int32(WorkerStopped))
		w.emit(Event{Kind: EventWorkerStopped, Reason: reason, Err: w.stuck(reason, err)})
		w.hooks.stop(w.cfg.listenGrace())
		return err
	}
	if waitFor(idle, 0) {
		err := finish()
		w.log.Info("worker stopped")
		return w.stuck(reason, err)
	}
	err = w.stillRunning(reason)
	go func() { _ = finish() }() // its error is told by the log
	w.log.WithError(err).Error("handlers still run; their tasks stay claimed until the process exits")
	return err
}

// stuck returns err, preceded by what has stopped the worker if that are handlers that do not return, a handle that was
// closed, or the settings of Redis.
func (w *Worker) stuck(reason string, err error) error {
	switch {
	case reason == stopSettings:
		return errors.Join(w.unfit, err)
	case reason == stopClosed && !errors.Is(err, ErrClosed):
		return errors.Join(redisstore.ErrHandleClosed, err)
	case reason != stopStuck:
		return err
	case err == nil:
		return w.watchdog.fatal
	}
	return errors.Join(w.watchdog.fatal, err)
}

// stillRunning returns the error of a worker whose handlers have not returned.
func (w *Worker) stillRunning(reason string) error {
	running := &StillRunningError{}
	for _, c := range w.exec.running() {
		if reason != stopStuck || !w.exec.givenUp(c) {
			running.Funcs = append(running.Funcs, c.fn.Path())
		}
	}
	if reason == stopStuck && len(running.Funcs) == 0 {
		return w.watchdog.fatal
	}
	return w.stuck(reason, running)
}

// waitFor says whether done closes within d.
func waitFor(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// room returns how many tasks the fetcher may claim now. A worker that shall not claim gives back what has not started.
func (w *Worker) room() (int, time.Duration) {
	if !w.mayClaim() {
		w.giveBack(w.exec.takeBack())
		return 0, 0
	}
	n, wait, back := w.exec.room()
	w.giveBack(back)
	return n, wait
}

// mayClaim says whether the worker claims tasks at all.
func (w *Worker) mayClaim() bool {
	return !w.paused.Load() && !w.quiet.Load() && (!w.exec.limited || !w.exec.exhausted())
}

// beaten wakes whoever waits for a heartbeat.
func (w *Worker) beaten() {
	w.exec.wake()
	w.exec.signal()
}

func (w *Worker) moveNow() {
	for _, g := range w.groups {
		g.mover.looked.Store(false) // until it has, nobody knows whether there is anything to do
		g.mover.now()
	}
}
