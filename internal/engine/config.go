package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Config says what a worker does. Everything is filled in and checked: this package has no defaults of its own. What
// the fields mean stands with those of the public configuration; here is what differs.
type Config struct {
	Source  redisstore.Source
	Prefix  string // of all keys
	Where   string // which Redis, for the log
	Signals *redisstore.Signals
	Log     loop.Journal

	Queues        Order
	Concurrency   int
	Prefetch      int // tasks to claim ahead; negative: as the handlers allow
	HeartbeatLife time.Duration
	SweepInterval time.Duration
	NoSweeper     bool
	Grace         time.Duration
	CancelGrace   time.Duration
	MaxRetry      int
	Backoff       func(retried int) time.Duration
	IsFailure     func(error) bool // nil: every error is one
	Timeout       time.Duration    // 0: none
	StuckAfter    time.Duration    // negative: nobody looks
	MaxStuck      int
	Legacy        bool
	PythonQueue   string // "": none
	Rest          time.Duration
	ArchiveMax    int
	ArchiveFor    time.Duration

	// Zero stands for no limit.
	MaxTasks         int
	MaxTime          time.Duration
	MaxMemory        int64
	StopWhenEmpty    bool
	StopWhenEmptyFor time.Duration

	Version string // of the library, for the log

	// Settings asks the servers that hold the queues whether they are fit for tasks: unfit says why one of them is not,
	// err that one did not answer.
	Settings func(ctx context.Context, servers []redisstore.Server) (warnings []string, unfit, err error)
	// Prepare is called once, before the first task.
	Prepare func() error
	// Call calls the function of a claim, through what the package above has put around it. When that calls
	// runtime.Goexit, Call does not return.
	Call func(context.Context, *Claim) (result any, err error)
	// Wrapped reports whether there is anything around the function of a claim, which needs a context then.
	Wrapped func(*Claim) bool
	// Misfit returns the function whose arguments did not fit, if that is what an error of Call says.
	Misfit func(error) (path string, ok bool)
	// Beside is what runs along with the worker until its context ends.
	Beside []func(context.Context)
}

// listenGrace is how long a worker that has stopped waits for its listeners.
func (c *Config) listenGrace() time.Duration { return max(c.CancelGrace, time.Second) }
