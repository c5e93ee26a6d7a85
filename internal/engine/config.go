package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/buildinfo"
	"github.com/godelayed/delayed/internal/engine/child"
	"github.com/godelayed/delayed/internal/engine/fetch"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

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
