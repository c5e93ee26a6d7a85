package delayed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/godelayed/delayed/event"
	"github.com/godelayed/delayed/internal/buildinfo"
	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/engine/events"
	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// Worker claims tasks from its queues and calls the functions registered with it. Create it with NewWorker, register
// functions, and Run it. Its methods are safe for concurrent use.
type Worker struct {
	engine *engine.Worker

	mu         sync.Mutex                      // protects the following until Run
	middleware []func(HandlerFunc) HandlerFunc // by Use
	chain      HandlerFunc                     // middleware combined by Run; nil: there is none
	isolates   bool                            // WorkerConfig.Isolation names tasks
}

// workerConns is the least number of connections of a worker.
const workerConns = 5

// NewWorker returns a worker, or everything that is wrong with cfg. It does not connect.
func NewWorker(rdb *Store, cfg WorkerConfig) (*Worker, error) {
	if err := rdb.check(); err != nil {
		return nil, fmt.Errorf("delayed: NewWorker: %w", err)
	}
	p, ok := redisstore.Unwrap(rdb.loops).(redisstore.PoolSource)
	if ok && p.Pool.MaxActive > 0 && p.Pool.MaxActive < workerConns {
		return nil, fmt.Errorf("delayed: the pool's MaxActive is %d: a worker keeps four connections and needs at "+
			"least one more: expected %d or more, or 0", p.Pool.MaxActive, workerConns)
	}
	cfg = cfg.withDefaults()
	err := cfg.check()
	var plan fetch.Order
	if wire.IsNil(cfg.Queues) {
		err = errors.Join(err, errors.New("delayed: WorkerConfig.Queues is missing: expected Strict or Weighted"))
	} else {
		var planErr error
		if plan, planErr = cfg.Queues.plan(); planErr == nil {
			planErr = rdb.checkSlots(plan.Names)
		}
		err = errors.Join(err, planErr)
	}
	if err != nil {
		return nil, err
	}
	if err := cfg.checkPythonQueue(rdb, plan.Names); err != nil {
		return nil, err
	}
	schedulers, err := newSchedulers(rdb, cfg)
	if err != nil {
		return nil, err
	}
	w := &Worker{isolates: cfg.Isolation.All || len(cfg.Isolation.Queues) > 0}
	e := cfg.engine(rdb, plan)
	e.Program = program{w}
	for _, s := range schedulers {
		// What its error can say, the worker finds too: that the handle is closed, or that Redis runs no scripts.
		e.Beside = append(e.Beside, func(ctx context.Context) { _ = s.Run(ctx) })
	}
	w.engine = engine.New(e)
	return w, nil
}

// engine returns the configuration of the engine. Defaults are filled in, and it was checked.
func (c WorkerConfig) engine(rdb *Store, plan fetch.Order) engine.Config {
	e := engine.Config{
		Source: rdb.loops, Prefix: rdb.prefix, Where: rdb.where, Signals: rdb.signals, Log: loop.NewJournal(c.Logger),
		Registry: rdb.registry,
		Queues:   plan, Concurrency: c.Concurrency, Prefetch: c.prefetch(), HeartbeatLife: c.HeartbeatLife,
		SweepInterval: c.SweepInterval, NoSweeper: c.NoSweeper, Grace: c.Grace, CancelGrace: c.CancelGrace,
		MaxRetry: c.MaxRetry, Backoff: c.Backoff, IsFailure: c.IsFailure, Timeout: c.Timeout, StuckAfter: c.StuckAfter,
		MaxStuck: c.MaxStuck, Legacy: rdb.legacy, PythonQueue: c.PythonQueue, Rest: c.Rest, ArchiveMax: c.ArchiveMax,
		ArchiveFor: c.ArchiveFor, MaxTasks: c.Limits.MaxTasks, MaxTime: c.Limits.MaxTime, MaxMemory: c.Limits.MaxMemory,
		StopWhenEmpty: c.Limits.StopWhenEmpty, StopWhenEmptyFor: c.Limits.StopWhenEmptyFor, Build: buildinfo.Read(),
		Isolation: c.Isolation.engine(),
	}
	e.Settings = func(ctx context.Context, servers []redisstore.Server) (warnings []string, unfit, err error) {
		warnings, err = checkServers(ctx, rdb.loops, servers, c.Allow)
		if wrong := (*SettingError)(nil); errors.As(err, &wrong) {
			return warnings, err, nil
		}
		return warnings, nil, err
	}
	return e
}

// checkPythonQueue returns an error if one script cannot use both the Python queue and one of the queues.
func (c WorkerConfig) checkPythonQueue(rdb *Store, queues []string) error {
	if c.PythonQueue == "" {
		return nil
	}
	to := redisstore.NewStore(rdb.loops, rdb.prefix, c.PythonQueue).Slot()
	for _, name := range queues {
		if redisstore.NewStore(rdb.loops, rdb.prefix, name).Slot() != to {
			return fmt.Errorf("delayed: WorkerConfig.PythonQueue %q and queue %q are in different slots of the "+
				"cluster: give both the same {tag}", c.PythonQueue, name)
		}
	}
	return nil
}

// Register makes functions callable by tasks: functions of packages, or what Func returned. If anything is wrong with
// one of them it registers none, and returns everything that is wrong, joined. It may be called while the worker runs;
// parked tasks of the new functions are claimed then.
func (w *Worker) Register(fns ...any) error {
	if err := w.check(); err != nil {
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
	if err := w.checkIsolated(good, w.engine.Begun()); err != nil {
		errs = append(errs, err)
	}
	return w.engine.Register(good, errs)
}

// RegisterMethods registers every exported method of receiver that has an accepted signature. Tasks name them by method
// expression:
//
//	q.Delay((*Mailer).Send, 42)
//	err := w.RegisterMethods(&Mailer{db: db})
func (w *Worker) RegisterMethods(receiver any) error {
	if err := w.check(); err != nil {
		return err
	}
	return w.engine.RegisterMethods(receiver)
}

// Use puts middleware around the handlers of all functions that the worker runs. The first one given is the outermost;
// further calls add more within. Call it before Run; afterwards it returns an error that wraps ErrClosed.
//
//	err := w.Use(func(next delayed.HandlerFunc) delayed.HandlerFunc {
//		return func(ctx context.Context, t *delayed.Task) error {
//			start := time.Now()
//			err := next(ctx, t)
//			observe(t.Path(), time.Since(start), err)
//			return err
//		}
//	})
//
// Each function is called once, when Run begins; what it returns is called concurrently, for every task. Middleware may
// give next another context, made of ctx, which is what the handler gets; it may return without calling next, and nil
// then means that the task is done. Next decodes the arguments and calls the handler: its error is an *ArgumentError
// when they do not fit, and the handler's panics are errors too. Middleware that stands around one function only is
// given to Func: see Middleware.
func (w *Worker) Use(mw ...func(HandlerFunc) HandlerFunc) error {
	if err := w.check(); err != nil {
		return err
	}
	if slices.ContainsFunc(mw, func(m func(HandlerFunc) HandlerFunc) bool { return m == nil }) {
		return fmt.Errorf("%w: Use: expected middleware, found nil; leave it out", ErrFunction)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.engine.Begun() {
		return fmt.Errorf("%w: Use after Run: call it before", ErrClosed)
	}
	w.middleware = append(slices.Clip(w.middleware), mw...)
	return nil
}

// OnEvent has fn called with every event of the worker, in their order. Call it before Run; afterwards it returns an
// error that wraps ErrClosed.
//
// Listeners hear of events shortly after they have happened, on a goroutine of their own: they cannot hold up the
// worker, nor change what becomes of a task (see Use for that), and a panic of theirs is logged. A worker keeps up to
// 10,000 events for listeners that are slow; further ones are dropped, and Event.Missed of the next one says how many.
// When the worker stops, Run waits for listeners for WorkerConfig.CancelGrace, for a second at least.
func (w *Worker) OnEvent(fn func(Event)) error {
	if err := w.check(); err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("%w: OnEvent: expected a function that takes an Event, found nil", ErrFunction)
	}
	return w.engine.Listen(func(e events.Event) { fn(publicEvent(&e)) })
}

// Run claims and runs tasks until ctx ends; then it stops claiming, gives back tasks that have not started, waits for
// running handlers for WorkerConfig.Grace, cancels their contexts with cause ErrShutdown, and waits for CancelGrace. It
// returns nil after a clean stop, *StillRunningError when handlers still run, *StuckError when it stopped because of
// handlers that are stuck (both of them joined, if others still run), and ErrClosed when it was called before or the
// handle on Redis is closed, also meanwhile. It handles no signals. While Redis is away it tries again and carries on
// by itself.
//
// Before anything else, Run asks the servers of its queues for their settings, as Store.Check does: it returns a
// *SettingError if one must not hold tasks and WorkerConfig.Allow does not name the reason, and logs warnings. Where
// Redis does not answer yet, it asks once Redis does.
func (w *Worker) Run(ctx context.Context) error {
	if err := w.check(); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	if err := w.checkIsolation(); err != nil {
		return err
	}
	return publicEnd(w.engine.Run(ctx))
}

// ID returns the worker's id, 32 hexadecimal digits. It never changes, and no other worker has it.
func (w *Worker) ID() string {
	must(w.check())
	return w.engine.ID()
}

// Pause makes the worker claim no more tasks until Resume. It gives back what it has claimed ahead; running handlers go
// on.
func (w *Worker) Pause() {
	must(w.check())
	w.engine.Pause()
}

// Resume ends a Pause. It does not end Quiet.
func (w *Worker) Resume() {
	must(w.check())
	w.engine.Resume()
}

// Quiet makes the worker stop claiming for good: Resume does not undo it. It gives back what it has claimed ahead;
// running handlers go on. Once it is idle it can be stopped without hurry.
func (w *Worker) Quiet() {
	must(w.check())
	w.engine.Quiet()
}

// Status returns a snapshot.
func (w *Worker) Status() WorkerStatus {
	must(w.check())
	s := w.engine.Status()
	return WorkerStatus{
		ID: w.engine.ID(), State: s.Phase, Busy: s.Busy, Connected: s.Connected, Beat: s.Beat,
		StopReason: s.StopReason,
	}
}

// WorkerStatus is a snapshot of a worker, for health checks.
type WorkerStatus struct {
	ID    string // of the worker, 32 hexadecimal digits
	State state.Worker
	// Busy is the number of handlers that run.
	Busy int
	// Connected means that Redis has confirmed the worker's last heartbeat on every queue.
	Connected bool
	// Beat is when Redis last confirmed the heartbeat on every queue; zero: it has not. A worker sends four of them
	// within the life of one.
	Beat time.Time
	// StopReason is why the worker stops or has stopped. It is "" while the worker does not stop.
	StopReason state.Reason
}

// check returns an error if w was not made by NewWorker.
func (w *Worker) check() error {
	if w == nil || w.engine == nil {
		return errNoWorker
	}
	return nil
}

var errNoWorker = errors.New("delayed: the *Worker is nil or zero: make it with NewWorker")

// program is the program of a worker, as its engine sees it.
type program struct{ w *Worker }

// Prepare puts the worker's middleware together.
func (p program) Prepare() (err error) {
	p.w.mu.Lock() // Use may still be at work
	defer p.w.mu.Unlock()
	p.w.chain, err = chain(p.w.middleware, callFunc)
	return err
}

// Wrapped reports whether a task goes through middleware, which needs a context of its own.
func (p program) Wrapped(c *lane.Claim) bool {
	return p.w.chain != nil || defaultsOf(c.Function()).chain != nil
}

// Call calls the function of a claim, through middleware if there is any. When the function or middleware calls
// runtime.Goexit, it does not return.
func (p program) Call(ctx context.Context, c *lane.Claim) (result any, err error) {
	if !p.Wrapped(c) {
		result, err = c.Function().Call(ctx, c.Message())
		return result, public(err)
	}
	t := taskOf(c)
	outermost := p.w.chain
	if outermost == nil {
		outermost = defaultsOf(c.Function()).chain
	}
	err = function.Protect(ctx, t, outermost)
	return t.claimed.result, err
}

// Event is something that has happened in a worker; Worker.OnEvent subscribes to them. docs/HOOKS.md says when each
// kind comes and which fields it fills in; all others are zero.
type Event struct {
	// Kind is what has happened.
	Kind event.Kind
	// At is when it happened, by the clock of this process.
	At time.Time
	// Queue is the name of the queue that it is about, "" if it is about the worker as a whole.
	Queue string
	// Task is the task that it is about, nil if none.
	Task *Task
	// Duration is how long the handler ran.
	Duration time.Duration
	// Wait is how long the task waits until it is tried again, or with event.TaskStarted how long ago it was enqueued.
	Wait time.Duration
	// Reason is why, with the events TaskArchived, TaskParked, TaskStuck, WorkerStopping and WorkerStopped.
	Reason state.Reason
	// Err is the error that led to it.
	Err error
	// Missed is the number of events before this one that were dropped, because listeners had not kept up.
	Missed int
}

// publicEvent returns an event as listeners get it.
func publicEvent(e *events.Event) Event {
	public := Event{
		Kind: e.Kind, At: e.At, Queue: e.Queue, Duration: e.Duration, Wait: e.Wait, Reason: e.Reason,
		Err: publicEnd(e.Err), Missed: e.Missed,
	}
	switch {
	case e.Claim != nil && e.Claim.Message().Path != "":
		public.Task = taskOf(e.Claim)
	case e.Message != nil:
		public.Task = sweptTask(e.Queue, e.Message)
	}
	return public
}

// newSchedulers returns the schedulers that run beside a worker.
func newSchedulers(rdb *Store, cfg WorkerConfig) (all []*Scheduler, err error) {
	var errs []error
	for _, c := range cfg.Schedulers {
		if c.Logger == nil {
			c.Logger = cfg.Logger
		}
		s, err := NewScheduler(rdb, c)
		all, errs = append(all, s), append(errs, err)
	}
	return all, errors.Join(errs...)
}

// Misfit returns the path of the function whose arguments did not fit, if err says so.
func (program) Misfit(err error) (path string, ok bool) {
	var wrong *ArgumentError
	if errors.As(err, &wrong) {
		return wrong.Func, true
	}
	return "", false
}
