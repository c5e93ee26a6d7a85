package workermain

import (
	"context"
	"flag"
	"net/http"

	"github.com/godelayed/delayed"
)

// Config defines what Run runs. Functions, Setup or both are needed; the zero value of all other fields is fine.
type Config struct {
	// Functions are registered with the worker: functions of packages, or what delayed.Func returned.
	Functions []any

	// Setup is called once Redis has answered and before the first task is claimed. It builds what handlers need,
	// registers functions and methods that depend on it, and adds middleware (Worker.Use) and listeners
	// (Worker.OnEvent). An error ends the program with code 1. With -functions it is called as well, Redis or not. The
	// context ends when a signal asks the program to stop, while handlers may still run for a while: do not tie to it
	// what they use, and close that after Run has returned. Each child process calls it, too, at its own start.
	Setup func(ctx context.Context, w *delayed.Worker) error

	// Worker is the worker's configuration where no flag or variable sets it: use it for settings without a flag, such
	// as Backoff, and to change defaults. With a Logger there are no flags for level and format.
	Worker delayed.WorkerConfig

	// Dial makes the handle on Redis of the URL that flags or environment give. Set it to rediscluster.Dial or
	// redissentinel.Dial for URLs of several hosts, or to a function that adds a key prefix, or that keeps the handle
	// for handlers which delay tasks themselves. It is called before Setup, and Run closes the handle. Defaults to
	// delayed.Dial.
	Dial func(rawURL string) (*delayed.Store, error)

	// Serve adds handlers to the server of -listen, such as one for /metrics. It is called once, before the server
	// starts and before Redis has answered, and not without -listen; rdb is the handle that the worker uses, which Run
	// closes. Handlers may be called until Run returns, by several goroutines at a time, and have a minute for an
	// answer. /healthz, /readyz and /debug/pprof/ are answered by Run, whatever mux has, and -debug guards all paths
	// below /debug/. An error ends the program with code 1, and so does a panic, such as that of a wrong pattern.
	// Defaults to none.
	Serve func(mux *http.ServeMux, rdb *delayed.Store) error

	// Flags is what the flags are added to, and Run parses; flag.CommandLine lets a program have flags of its own,
	// without environment variables. Defaults to a set of Run's own.
	Flags *flag.FlagSet

	// Args are the arguments to parse, without the program's name: os.Args[2:] where the worker is a subcommand.
	// Defaults to those of the process when nil.
	Args []string
}
