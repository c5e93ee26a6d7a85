package inspect

import (
	"context"
	"errors"
	"fmt"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
)

// Config says how an Inspector works. Its zero value is ready to use.
type Config struct {
	// Redact changes what may not be seen of a task: its arguments, headers, result, errors. It is called for each task
	// that is read, before filters look at it, and for each event of Watch, in the goroutine of the caller. Defaults to
	// showing everything.
	Redact func(*Contents)
	// Actor says in the audit log who acts. Defaults to the user of this process and its host.
	Actor string
}

// Inspector reads the queues of one Redis handle, those with its prefix, and acts on their tasks. It is safe for
// concurrent use and holds no connection.
type Inspector struct {
	cfg      Config
	rdb      *delayed.Store
	src      redisstore.Source
	prefix   string
	where    string // address of Redis, for people
	signals  *redisstore.Signals
	registry *redisstore.Registry
}

// New returns an Inspector. It does not connect. Closing rdb ends it.
func New(rdb *delayed.Store, cfg Config) (*Inspector, error) {
	parts, err := seam.Handle(rdb)
	if err != nil {
		return nil, fmt.Errorf("inspect: %w", err)
	}
	ins := &Inspector{cfg: cfg, rdb: rdb, prefix: parts.Prefix, where: parts.Where}
	ins.src, _ = parts.Source.(redisstore.Source)
	ins.signals, _ = parts.Signals.(*redisstore.Signals)
	ins.registry, _ = parts.Registry.(*redisstore.Registry)
	return ins, nil
}

// ErrNotFound says that there is no such queue or task.
var ErrNotFound = errors.New("inspect: not found")

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// store returns the store of a queue.
func (ins *Inspector) store(name string) (*redisstore.Store, error) {
	if ins == nil || ins.src == nil {
		return nil, errors.New("inspect: the *Inspector is nil or zero: make it with New")
	}
	if err := redisstore.CheckQueueName(name); err != nil {
		return nil, err
	}
	if !redisstore.OneSlot(ins.src, ins.prefix, name) {
		return nil, fmt.Errorf("inspect: queue name %q has no {tag}, which queues of a Redis Cluster need", name)
	}
	return redisstore.NewStore(ins.src, ins.prefix, name), nil
}

// checkContext returns an error if there is no context.
func checkContext(ctx context.Context) error {
	if ctx == nil {
		return errors.New("inspect: the context is nil: pass context.Background()")
	}
	return nil
}
