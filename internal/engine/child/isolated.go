// Package child runs tasks in child processes: Isolation is the parent's side, Child that of the child. What the
// functions of the user say about an error travels between them, because only the child has the error itself.
package child

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/function"
	"github.com/godelayed/delayed/internal/isolate"
	"github.com/godelayed/delayed/internal/loop"
)

// Config says which tasks run in child processes, and how. The public configuration documents the fields.
type Config struct {
	All      bool
	Queues   []string
	Grace    time.Duration
	Limits   isolate.Limits
	MaxTasks int // of one child; 0: any number
	Idle     time.Duration
	Ahead    int
	Output   io.Writer // what children write to their standard error; nil: that of this process
}

// Program is the program that a worker runs in: it calls functions, and knows their middleware.
type Program interface {
	// Prepare is called once, before the first task.
	Prepare() error
	// Call calls the function of a claim, with the middleware around it. If the function calls runtime.Goexit, Call
	// does not return.
	Call(ctx context.Context, c *lane.Claim) (result any, err error)
	// Wrapped reports whether there is middleware around the function of a claim. Middleware needs a context.
	Wrapped(c *lane.Claim) bool
	// Misfit reports whether an error of Call says that arguments did not fit a function, and returns its path.
	Misfit(err error) (path string, ok bool)
}

// Isolation runs tasks in child processes.
type Isolation struct {
	Config

	// Quarantine: suspects run in child processes, too. Set before the first task.
	Quarantine bool

	pool        *isolate.Pool // for chosen tasks
	suspects    *isolate.Pool // for all others, without the limits, which are not meant for them
	cancelGrace time.Duration
}

// startPatience is how long a task whose time is over still waits for a child process that is being set up.
const startPatience = 10 * time.Second

// causes are the causes of a handler's context. Between parent and child their positions stand for them.
var causes = [...]error{context.Canceled, lane.ErrTimeout, lane.ErrCanceled, lane.ErrLost, lane.ErrShutdown}

// causeOf returns the position of the cause of a context.
func causeOf(ctx context.Context) byte {
	cause := context.Cause(ctx)
	i := slices.IndexFunc(causes[:], func(err error) bool { return errors.Is(cause, err) })
	return byte(max(i, 0)) //nolint:gosec // there are five
}

// causeAt is the reverse of causeOf.
func causeAt(i byte) error { return causes[min(int(i), len(causes)-1)] }

// NewIsolation returns what runs tasks in child processes. It starts none.
func NewIsolation(cfg Config, cancelGrace time.Duration, log loop.Journal) *Isolation {
	if cfg.Output == nil {
		cfg.Output = os.Stderr
	}
	pool := func(limits isolate.Limits) *isolate.Pool {
		return isolate.NewPool(isolate.Config{
			Limits: limits, MaxJobs: cfg.MaxTasks, Idle: cfg.Idle, Ahead: cfg.Ahead, Cause: causeOf,
			Output: cfg.Output, Log: log,
		})
	}
	return &Isolation{cfg, false, pool(cfg.Limits), pool(isolate.Limits{}), cancelGrace}
}

// Applies reports whether a task runs in a child process. i may be nil.
func (i *Isolation) Applies(c *lane.Claim) bool {
	return i != nil && (i.Chosen(c) || i.Quarantine && c.Suspicion > 0)
}

// Chosen reports whether the configuration says that a task runs in a child process.
func (i *Isolation) Chosen(c *lane.Claim) bool {
	return i.All || c.Fn.Policy.Isolated || slices.Contains(i.Queues, c.Queue())
}

// Holds reports whether a suspect runs in a child process, where it can harm nobody. One whose workers go on to die
// may be able to: where the system kills all processes of a container for the memory of one, for instance. i may be
// nil.
func (i *Isolation) Holds(c *lane.Claim) bool {
	return i != nil && i.Quarantine && lane.WorkerDeaths(c) <= lane.MaxQuarantined
}

// Start starts children ahead if a function or a queue is isolated. i may be nil.
func (i *Isolation) Start(registry *function.Registry) {
	if i == nil {
		return
	}
	isolated := func(f *function.Function) bool { return f.Policy.Isolated }
	i.pool.Start(i.All || len(i.Queues) > 0 || slices.ContainsFunc(registry.All(), isolated))
}

// Close ends all children. i may be nil.
func (i *Isolation) Close() {
	if i != nil {
		i.pool.Close()
		i.suspects.Close()
	}
}

// Call runs a task in a child process. Its result is a keptResult.
func (i *Isolation) Call(ctx context.Context, c *lane.Claim, limit time.Duration) (result any, err error) {
	j := job{Queue: c.Queue(), Worker: c.Lane.Worker, Message: c.Raw, Limit: limit}
	if end, ok := ctx.Deadline(); ok {
		j.Left = max(time.Until(end), 1)
	}
	body, err := jobCodec.encode(j)
	if err != nil {
		return nil, err
	}
	pool := i.suspects
	if i.Chosen(c) {
		pool = i.pool
	}
	answer, err := pool.Run(ctx, body, func(b []byte) { reportFor(ctx, c, b) }, func() isolate.Patience {
		switch cause := context.Cause(ctx); {
		case errors.Is(cause, lane.ErrShutdown): // time is left in which the worker gives the task back
			return isolate.Patience{Grace: min(i.Grace, i.cancelGrace/2), Rest: i.cancelGrace / 4}
		case errors.Is(cause, lane.ErrTimeout): // a slow start, as on a busy machine, is no fault of the task
			return isolate.Patience{Start: startPatience, Grace: i.Grace}
		}
		return isolate.Patience{Grace: i.Grace}
	})
	if err != nil {
		return nil, err
	}
	v, err := verdictCodec.decode(answer)
	if err != nil {
		return nil, err
	}
	return KeptResult{v.Result, v.ResultErr}, errorOf(&v)
}

// reportFor hands on a progress report of a child.
func reportFor(ctx context.Context, c *lane.Claim, b []byte) {
	if p, err := progressCodec.decode(b); err == nil {
		_ = c.Report(ctx, p) // the child does not wait for it
	}
}
