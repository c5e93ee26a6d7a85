package delayed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"runtime"
	"slices"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/engine"
	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/engine/finish"
	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

const (
	// shortestLife is the shortest heartbeat: four renewals of it must fit beside ordinary delays of the network.
	shortestLife = 500 * time.Millisecond
	defaultLife  = 15 * time.Second
	defaultSweep = 8 * time.Second
	// maxConcurrency keeps the executors of one process within what its memory holds.
	maxConcurrency = 100_000
)

// WorkerConfig configures a worker. Only Queues is required. A field that is zero takes its default; where zero itself
// makes sense and is not the default, as with Grace or MaxRetry, a negative value means it.
type WorkerConfig struct {
	// Queues to serve: Strict{"critical", "mail"} or Weighted{"critical": 6, "mail": 3}. Required.
	Queues QueueOrder
	// Concurrency is how many tasks run at once: the worker has as many executors, goroutines that each run one task at
	// a time. A stuck handler is not counted, because another executor takes its place; see StuckAfter. At most
	// 100,000. Defaults to 10 × GOMAXPROCS.
	Concurrency int
	// Prefetch is how many tasks beyond Concurrency are claimed ahead, so that an executor need not wait for Redis. By
	// default the worker claims ahead what its executors do in about 5 ms, at most 800 tasks, and gives back what has
	// waited for 20 ms while all executors are busy. With a number, the worker claims up to that many ahead and gives
	// none back, however long they wait, even while another worker is idle; negative: none.
	Prefetch int
	// HeartbeatLife is how long the worker counts as alive after its last heartbeat; it renews it four times in that
	// time. Sweepers and workers of one queue should agree on it. At least 500 ms. Defaults to 15 s.
	HeartbeatLife time.Duration
	// SweepInterval is the time between two passes of the embedded sweeper at most, ± 20 %; it also looks when a
	// heartbeat ends, and at least once in HeartbeatLife. Defaults to 8 s.
	SweepInterval time.Duration
	// NoSweeper leaves sweeping to other workers or to a separate Sweeper. Defaults to false.
	NoSweeper bool
	// Grace is how long Run waits for running handlers when it must stop. Defaults to 25 s; negative: none.
	Grace time.Duration
	// CancelGrace is how long Run then waits for handlers whose context it has canceled. Defaults to 3 s; negative:
	// none.
	CancelGrace time.Duration
	// MaxRetry is how often a failed task is tried again without the option MaxRetry. Defaults to 25; negative: never.
	// (The option MaxRetry(0) means never.)
	MaxRetry int
	// Backoff returns how long a failed task waits; retried is how often it was retried before. It applies without the
	// options Backoff and BackoffFunc. It is called concurrently. Defaults to 5 s, doubled each time up to 6 h, each ±
	// 25 %.
	Backoff func(retried int) time.Duration
	// IsFailure decides whether an error of a handler is a failure. If it returns false, the task is tried again after
	// the backoff, which does not grow. That spends no retry and does not count as failed. Such a task is tried again
	// without end, also when no retries are left, unless TTL, Deadline or RetryUntil bounds it. It is called
	// concurrently. It is not called for errors made by Archive, Drop, RetryIn and Snooze. If it panics, the error is a
	// failure. Defaults to nil: every error is a failure.
	IsFailure func(err error) bool
	// Timeout bounds the runs of tasks without the option Timeout; see there. Defaults to none.
	Timeout time.Duration
	// StuckAfter is how long a handler may go on after its Timeout or Deadline before it counts as stuck: that is
	// logged once, with its stack, and another executor takes its place; the task stays claimed, and its outcome counts
	// if the handler returns after all. Handlers without a timeout are logged when they have run for 30 minutes.
	// Defaults to 30 s; negative: nobody looks for such handlers.
	StuckAfter time.Duration
	// MaxStuck is how many stuck handlers the worker tolerates; see StuckAfter. With one more it stops as at the end of
	// Run's context, except that it does not wait for stuck handlers, and Run returns *StuckError: then restart the
	// process. Defaults to a tenth of Concurrency, one at least; negative: none, so that the first stuck handler stops
	// the worker.
	MaxStuck int
	// PythonQueue names the queue to which the worker hands on the Python tasks that it claims. In a Redis Cluster it
	// must have the same {tag}. A task that is handed on gives up its reserved id (TaskID) and its lock (Unique). A
	// Python task in an extended message is parked, not handed on, if PythonQueue is a plain queue (see
	// Store.WithLegacy), or if that queue never had a Python task and the worker's handle is one of WithLegacy.
	// Defaults to none: Python tasks are parked.
	PythonQueue string
	// Limits set when the worker stops by itself. Defaults to never.
	Limits WorkerLimits
	// Rest is how long each executor pauses after a task. The worker then claims nothing ahead, unless Prefetch says
	// so. Defaults to 0.
	Rest time.Duration
	// ArchiveMax is how many archived tasks a queue keeps: the oldest are deleted, and counted in the day's counter
	// "trimmed". Workers and sweepers of one queue should agree on it. Defaults to 10,000.
	ArchiveMax int
	// ArchiveFor is how long an archived task is kept, rounded to milliseconds. Defaults to 90 days.
	ArchiveFor time.Duration
	// Schedulers run beside the worker and enqueue periodic tasks: one for each queue that has periodic entries, which
	// need not be one that the worker serves. Any number of workers may have the same. Defaults to none.
	Schedulers []SchedulerConfig
	// Isolation selects the tasks that run in child processes, and sets their limits. Defaults to those of functions
	// with Isolated.
	Isolation Isolation
	// Allow names settings of Redis with which the worker runs all the same: eviction, replica, scripts or version; see
	// SettingError. They are logged as warnings. Defaults to none.
	Allow []string
	// Logger receives the log of the worker; SlogLogger makes one of a slog.Handler. Defaults to logrus's standard
	// logger.
	Logger logrus.FieldLogger
}

// WorkerLimits set when a worker stops by itself: as if the context of Run had ended, so Run returns nil, and
// WorkerStatus.StopReason is the reason. Zero fields set no limit. MaxTasks of 1 with StopWhenEmpty runs one task, or
// none if there is none.
type WorkerLimits struct {
	// MaxTasks is how many tasks end before the worker stops; it never starts more. Retries count as tasks of their
	// own.
	MaxTasks int
	// MaxTime is how long Run goes on.
	MaxTime time.Duration
	// MaxMemory is how much memory the process may have, in bytes, at least 1 MiB. The worker looks every second.
	MaxMemory int64
	// StopWhenEmpty makes the worker stop when none of its queues has a task that is pending or due, and none runs
	// here. Tasks that are due later, those that run elsewhere and those of paused queues do not count.
	StopWhenEmpty bool
	// StopWhenEmptyFor makes the worker stop when its queues have been empty, as StopWhenEmpty defines that, for this
	// long, and it has run no task meanwhile. It does not need StopWhenEmpty, and replaces it if both are set.
	StopWhenEmptyFor time.Duration
}

// withDefaults returns a copy in which everything that was left out is filled in.
func (c WorkerConfig) withDefaults() WorkerConfig {
	c.ArchiveMax = cmp.Or(c.ArchiveMax, lifecycle.MaxArchived)
	c.ArchiveFor = cmp.Or(c.ArchiveFor, lifecycle.ArchivedLife)
	c.Concurrency = cmp.Or(c.Concurrency, 10*runtime.GOMAXPROCS(0))
	c.HeartbeatLife = cmp.Or(c.HeartbeatLife, defaultLife)
	c.SweepInterval = cmp.Or(c.SweepInterval, defaultSweep)
	c.Grace = orNone(c.Grace, 25*time.Second)
	c.CancelGrace = orNone(c.CancelGrace, 3*time.Second)
	c.StuckAfter = cmp.Or(c.StuckAfter, 30*time.Second)
	c.MaxStuck = orNone(c.MaxStuck, max(1, c.Concurrency/10))
	c.MaxRetry = orNone(c.MaxRetry, 25)
	if c.Backoff == nil {
		c.Backoff = finish.DefaultBackoff
	}
	c.Isolation = c.Isolation.withDefaults()
	return c
}

// orNone returns the value of a field of which zero means the default, and a negative value none.
func orNone[T int | time.Duration](value, initial T) T { return max(cmp.Or(value, initial), 0) }

// faults collects what is wrong with a configuration.
type faults struct {
	config string
	errs   []error
}

// unless notes a fault of a field unless it is fine.
func (f *faults) unless(fine bool, field string, value any, want string) {
	if !fine {
		f.errs = append(f.errs, fmt.Errorf("delayed: %s.%s is %v: expected %s", f.config, field, value, want))
	}
}

// shared checks the fields that workers and sweepers have in common.
func (f *faults) shared(
	life, keep time.Duration, most int, sweep string, interval time.Duration, l logrus.FieldLogger,
) {
	f.unless(life >= shortestLife, "HeartbeatLife", life, "at least "+shortestLife.String())
	f.unless(interval >= 10*time.Millisecond, sweep, interval, "at least 10ms")
	f.unless(most >= 1, "ArchiveMax", most, "at least 1")
	f.unless(keep >= time.Second, "ArchiveFor", keep, "at least 1s")
	f.errs = append(f.errs, checkLogger(f.config, l))
}

// check returns all errors of a configuration whose defaults are filled in.
func (c WorkerConfig) check() error {
	f := faults{config: "WorkerConfig"}
	f.unless(c.Concurrency >= 1 && c.Concurrency <= maxConcurrency, "Concurrency", c.Concurrency,
		fmt.Sprint("1 to ", maxConcurrency))
	f.unless(c.Prefetch <= maxConcurrency, "Prefetch", c.Prefetch, fmt.Sprint("at most ", maxConcurrency))
	f.unless(c.MaxStuck <= maxConcurrency, "MaxStuck", c.MaxStuck, fmt.Sprint("at most ", maxConcurrency))
	f.shared(c.HeartbeatLife, c.ArchiveFor, c.ArchiveMax, "SweepInterval", c.SweepInterval, c.Logger)
	for field, d := range map[string]time.Duration{
		"Grace": c.Grace, "CancelGrace": c.CancelGrace, "Timeout": c.Timeout, "StuckAfter": c.StuckAfter,
		"Limits.MaxTime": c.Limits.MaxTime, "Limits.StopWhenEmptyFor": c.Limits.StopWhenEmptyFor, "Rest": c.Rest,
	} {
		f.unless(d >= 0 || field == "StuckAfter", field, d, "a positive duration, or 0 for none")
		f.errs = append(f.errs, checkDuration("WorkerConfig."+field, d))
	}
	f.unless(c.Limits.MaxTasks >= 0, "Limits.MaxTasks", c.Limits.MaxTasks, "1 or more, or 0 for any number")
	f.unless(c.Limits.MaxMemory == 0 || c.Limits.MaxMemory >= leastMemory, "Limits.MaxMemory", c.Limits.MaxMemory,
		fmt.Sprintf("a number of bytes of at least %d, which is 1 MiB, or 0 for any", leastMemory))
	if c.PythonQueue != "" {
		if err := redisstore.CheckQueueName(c.PythonQueue); err != nil {
			f.errs = append(f.errs, fmt.Errorf("delayed: WorkerConfig.PythonQueue: %w", err))
		}
	}
	return errors.Join(append(f.errs, checkAllowed("WorkerConfig.Allow", c.Allow), c.Isolation.check())...)
}

// prefetch returns how many tasks to claim ahead; negative: as the handlers allow.
func (c WorkerConfig) prefetch() int {
	switch {
	case c.Prefetch == 0 && c.Rest == 0:
		return -1
	case c.Prefetch <= 0:
		return 0
	}
	return c.Prefetch
}

// leastMemory is less than any process uses: a smaller limit was meant in another unit.
const leastMemory = 1 << 20

// QueueOrder is the queues that a worker serves and the order in which it looks at them: Strict or Weighted.
type QueueOrder interface {
	plan() (fetch.Order, error)
}

// Strict serves queues by priority: a task of a later queue is claimed only when the earlier ones are empty.
type Strict []string

func (s Strict) plan() (fetch.Order, error) {
	return fetch.Order{Names: slices.Clone(s)}, checkNames(s)
}

// Weighted serves queues at random, in proportion to their weights while all have tasks; no queue starves. It shares
// claims, not time: with equal weights, a queue whose tasks take ten times as long gets about ten times as much of the
// executors' time. Weights are 1 to 1000; Queue.SetWeight changes them while workers run.
type Weighted map[string]int

func (w Weighted) plan() (fetch.Order, error) {
	p := fetch.Order{Names: slices.Sorted(maps.Keys(w))}
	errs := []error{checkNames(p.Names)}
	for _, name := range p.Names {
		weight := w[name]
		if weight < 1 || weight > engine.MaxWeight {
			errs = append(errs, fmt.Errorf("delayed: queue %q has weight %d: expected 1 to %d", name, weight,
				engine.MaxWeight))
		}
		p.Weights = append(p.Weights, weight)
		p.Total += weight
	}
	p.Configured = slices.Clone(p.Weights)
	return p, errors.Join(errs...)
}

// checkNames returns everything that is wrong with the names of a worker's queues.
func checkNames(names []string) error {
	if len(names) == 0 {
		return errors.New("delayed: no queues: name at least one, as in Strict{\"mail\"}")
	}
	var errs []error
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			errs = append(errs, fmt.Errorf("delayed: queue %q is named twice", name))
			continue
		}
		errs = append(errs, redisstore.CheckQueueName(name))
	}
	return errors.Join(errs...)
}

// SlogLogger returns a logger for the configurations of workers, sweepers and schedulers that writes to a handler of
// log/slog. The handler decides which levels it wants. SlogLogger(nil) panics.
func SlogLogger(h slog.Handler) logrus.FieldLogger {
	if wire.IsNil(h) {
		panic(errors.New("delayed: SlogLogger(nil): expected a handler, such as slog.Default().Handler()"))
	}
	l := logrus.New()
	l.SetOutput(io.Discard)
	l.SetFormatter(noFormat{})
	l.SetLevel(logrus.DebugLevel)
	l.AddHook(slogHook{h})
	return slogLogger{l, h}
}

// slogLogger knows which lines its handler wants before they are made.
type slogLogger struct {
	*logrus.Logger
	handler slog.Handler
}

// Enabled is what internal/loop asks.
func (l slogLogger) Enabled(level logrus.Level) bool {
	return l.IsLevelEnabled(level) && l.handler.Enabled(context.Background(), slogLevel(level))
}

// noFormat is the formatter of a logger whose hook writes the entries.
type noFormat struct{}

func (noFormat) Format(*logrus.Entry) ([]byte, error) { return nil, nil }

type slogHook struct{ handler slog.Handler }

func (slogHook) Levels() []logrus.Level { return logrus.AllLevels }

// slogLevel returns the level of log/slog that corresponds to one of logrus.
func slogLevel(level logrus.Level) slog.Level {
	switch level {
	case logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel:
		return slog.LevelError
	case logrus.WarnLevel:
		return slog.LevelWarn
	case logrus.InfoLevel:
		return slog.LevelInfo
	case logrus.DebugLevel, logrus.TraceLevel:
	}
	return slog.LevelDebug
}

func (h slogHook) Fire(e *logrus.Entry) error {
	level, ctx := slogLevel(e.Level), e.Context
	if ctx == nil {
		ctx = context.Background()
	}
	if !h.handler.Enabled(ctx, level) {
		return nil
	}
	record := slog.NewRecord(e.Time, level, e.Message, 0)
	for k, v := range e.Data {
		if err, ok := v.(error); ok {
			v = err.Error()
		}
		record.AddAttrs(slog.Any(k, v))
	}
	return h.handler.Handle(ctx, record)
}

// checkLogger returns an error for a logger that would panic at its first line.
func checkLogger(config string, l logrus.FieldLogger) error {
	entry, isEntry := l.(*logrus.Entry)
	if l != nil && (wire.IsNil(l) || isEntry && entry.Logger == nil) {
		return fmt.Errorf("delayed: %s.Logger is a nil or zero %T: expected one that logs, or nothing for the default",
			config, l)
	}
	return nil
}
