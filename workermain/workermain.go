// Package workermain is the main function of a worker program: flags, environment variables, signals, logs, health
// checks and exit codes around a delayed.Worker.
//
//	func main() {
//		workermain.Main(mail.Welcome, mail.Digest)
//	}
//
// Such a program is started with the names of its queues:
//
//	REDIS_URL=redis://localhost:6379/0 mailworker -queues critical=6,mail=3
//
// mailworker -help lists all flags. Each setting is also an environment variable, -heartbeat-life for instance
// DELAYED_HEARTBEAT_LIFE; a flag wins over the environment, and an empty variable counts as none. Passwords belong into
// the environment: other users of a machine can see flags. A variable that begins with DELAYED_ and is no setting is an
// error, as an unknown flag is; those that Kubernetes sets for services are let through.
//
// # What the log has at the start
//
// The line "worker started" has the address of Redis without its password, the key prefix if there is one, the queues
// in their order with their weights, the paths of the functions and the version of package delayed. Warnings report
// queues in which Redis knows of no task, whose names may be misspelt, a worker without functions, and settings of
// Redis that may lose tasks. Settings that do lose tasks end the program with code 1, unless -allow names them: see
// delayed.SettingError.
//
// # Signals
//
//	INT, TERM, HUP  stop: claim no more tasks, give back those that have not started, wait for handlers; a second
//	                one exits at once
//	TSTP            quiet: claim no more tasks for good, so that the program can be stopped without hurry
//	USR2            pause: claim no more tasks
//	CONT            resume after a pause
//
// Ctrl-Z in a terminal is TSTP as well: the worker becomes quiet and stays in the foreground. CONT is also what a
// shell's fg and bg and a service manager send to a process that was halted by STOP; it ends a pause, and otherwise
// changes nothing. INT and HUP are ignored if they were ignored when the program started, as nohup arranges it. A log
// that nobody reads any more does not end the program. On Windows there are only Ctrl-C and Ctrl-Break, which stop.
//
// # Stopping by itself
//
// Flags make a program end with code 0 after one task (-once) or some (-max-tasks), when there is nothing to do
// (-stop-when-empty, -stop-when-empty-for), after a time (-max-time), or when it uses too much memory (-max-memory). It
// stops as after a signal, and it logs why. Under a service manager that starts it again, this limits leaks; -once and
// -stop-when-empty suit cron.
//
// # Child processes
//
// On Linux, such a program runs some tasks in child processes of its own: those of functions with delayed.Isolated, all
// with -isolate, and tasks whose worker has died, because they may have been the cause; see delayed.Isolation. A child
// is the same program with the same arguments. It reads the same settings and calls Setup, but it does not wait for
// Redis, claims nothing, and does not listen.
//
// # Functions
//
// With -functions, the program prints the functions that it has registered, with their signatures, as JSON, and ends
// with code 0. Other languages make typed stubs of it: python -m godelayed.stubs. It calls Setup, without waiting for
// Redis, because Setup registers functions too. Names of parameters are read from the source, so run it where it was
// built, without -trimpath; where they are unknown, arguments have numbers.
//
// # Exit codes
//
//	0    a clean end
//	1    the start failed, because of the settings of Redis for instance; or Redis did not confirm at the end how
//	     tasks went, which then run again
//	2    wrong flags, environment or configuration
//	3    handlers did not stop within -grace and -cancel-grace; their tasks run again
//	4    more handlers than -max-stuck ignored the end of their time; their tasks run again
//	130  a second signal to stop
//
// # Health checks, metrics and profiles
//
// With -listen, an HTTP server answers to whoever can reach it, without authentication.
//
//	/healthz  200 while the worker starts, or Redis has confirmed its heartbeat within the heartbeat's life, also
//	          while it is paused or stops; otherwise 503
//	/readyz   200 when the worker claims tasks and is connected; otherwise 503: also while it starts, is paused or
//	          quiet, and from the signal to stop until the end
//	/debug/   with -debug, and only for requests from the same machine to localhost
//
// Health checks answer in JSON. Where /healthz decides about restarts, note that an outage of Redis that outlasts the
// heartbeat's life turns it to 503, although the worker carries on by itself afterwards. The program adds other paths
// by Config.Serve, such as /metrics:
//
//	workermain.Config{
//		Functions: []any{mail.Welcome},
//		Serve: func(mux *http.ServeMux, rdb *delayed.Store) error {
//			ins, err := inspect.New(rdb, inspect.Config{})
//			if err != nil {
//				return err
//			}
//			prometheus.MustRegister(delayedprom.New(ins, delayedprom.Config{}))
//			mux.Handle("GET /metrics", promhttp.Handler())
//			return nil
//		},
//	}
//
// Below /debug/pprof/ there are the profiles that go tool pprof reads, and /debug/pprof/trace for go tool trace; they
// reveal much about a program, and cost time. This package does not import net/http/pprof or expvar, because these add
// pages to http.DefaultServeMux. A program that publishes variables adds expvar.Handler() at /debug/vars by
// Config.Serve: -debug guards all paths below /debug/.
package workermain

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/godelayed/delayed"
)

// The exit codes, as the package comment lists them.
const (
	exitClean   = 0
	exitFailed  = 1
	exitUsage   = 2
	exitRunning = 3
	exitStuck   = 4
	exitForced  = 130
)

// Main runs a worker with the given functions and ends the process with Run's code.
func Main(fns ...any) { os.Exit(Run(Config{Functions: fns})) }

// Run reads flags and environment, runs a worker until a signal stops it, and returns the code to exit with; see the
// package comment. It may return while handlers still run, with code 3, 4 or 130, and leaves the signals as it found
// them.
func Run(cfg Config) int {
	if cfg.Args == nil {
		cfg.Args = os.Args[1:]
	}
	return run(cfg, os.LookupEnv, os.Environ)
}

func run(cfg Config, lookup func(string) (string, bool), environ func() []string) int {
	if cfg.Flags == nil {
		cfg.Flags = new(flag.FlagSet)
	}
	s := newSettings(cfg)
	switch err := s.parse(cfg.Flags, cfg.Args, lookup); {
	case errors.Is(err, flag.ErrHelp):
		s.printHelp(os.Stdout, cfg.Flags)
		return exitClean
	case err != nil:
		return refuse(cfg.Flags, err)
	case s.version:
		fmt.Fprintln(os.Stdout, versionText(cfg.Flags.Name()))
		return exitClean
	}
	if err := s.checkEnvironment(environ()); err != nil {
		return refuse(cfg.Flags, err)
	}
	p := &program{setup: cfg.Setup, serve: cfg.Serve, settings: s, log: s.logger()}
	s.worker.Logger = p.log
	var err error
	if p.rdb, err = dial(cfg.Dial, s.redisURL); err != nil {
		return refuse(cfg.Flags, err)
	}
	if p.rdb == nil {
		return refuse(cfg.Flags, errors.New("delayed: Config.Dial returned nil: expected a handle or an error"))
	}
	if s.prefix != nil {
		p.rdb = p.rdb.WithPrefix(*s.prefix)
	}
	if s.legacy {
		p.rdb = p.rdb.WithLegacy()
	}
	if p.worker, err = delayed.NewWorker(p.rdb, s.worker); err != nil {
		return refuse(cfg.Flags, err)
	}
	if len(cfg.Functions) == 0 && cfg.Setup == nil {
		return p.fail(errors.New("delayed: no functions: expected Config.Functions, or a Config.Setup that registers " +
			"some"))
	}
	if err := p.worker.Register(cfg.Functions...); err != nil {
		return p.fail(err)
	}
	delayed.ChildMain(p.child)
	if s.list {
		defer p.rdb.Close()
		return p.list(os.Stdout)
	}
	code := p.run()
	// In that case handlers still run, and their heartbeats go on until the process ends.
	if code != exitRunning && code != exitStuck && code != exitForced {
		p.rdb.Close()
	}
	return code
}

// refuse prints what is wrong with flags, environment or configuration, since there is no logger yet.
func refuse(flags *flag.FlagSet, err error) int {
	for _, e := range flatten(err) {
		fmt.Fprintf(os.Stderr, "%s: %v\n", flags.Name(), e)
	}
	fmt.Fprintf(os.Stderr, "%s: -help lists all flags and their environment variables\n", flags.Name())
	return exitUsage
}

// flatten splits joined errors, so that each gets a line of its own.
func flatten(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || len(joined.Unwrap()) < 2 {
		return []error{err}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, flatten(e)...)
	}
	return all
}

// run works until the worker ends or a second signal ends the program at once.
func (p *program) run() int {
	signals, forget := notify()
	defer forget()
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	done := make(chan int, 1)
	go func() { done <- p.work(ctx) }()
	for {
		select {
		case code := <-done:
			return code
		case sig := <-signals:
			if p.obey(ctx, sig, stop) {
				return exitForced
			}
		}
	}
}

// work starts everything, and runs the worker until ctx ends or the worker stops by itself.
func (p *program) work(ctx context.Context) int {
	closeServer, err := p.listen(ctx)
	if err != nil {
		return p.fail(err)
	}
	defer closeServer()
	if err := p.awaitRedis(ctx); err != nil {
		return p.notStarted(ctx, err)
	}
	if err := p.setUp(ctx); err != nil {
		return p.notStarted(ctx, err)
	}
	if ctx.Err() != nil {
		return p.notStarted(ctx, ctx.Err())
	}
	now := time.Now()
	p.started.Store(&now)
	err = p.worker.Run(ctx)
	var unfit *delayed.SettingError
	var running *delayed.StillRunningError
	var stuck *delayed.StuckError
	switch {
	case errors.As(err, &stuck):
		return exitStuck // the worker has logged why
	case errors.As(err, &running):
		return exitRunning // the worker has logged it
	case errors.As(err, &unfit):
		return p.fail(err)
	case err != nil:
		p.log.WithError(err).Error("worker did not end cleanly")
		return exitFailed
	}
	return exitClean
}

// notStarted returns the exit code of a start that failed or that a signal has canceled.
func (p *program) notStarted(ctx context.Context, err error) int {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		p.log.Info("stopped before the worker started")
		return exitClean
	}
	return p.fail(err)
}
