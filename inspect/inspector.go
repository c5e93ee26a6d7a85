package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
)

// Config is how an Inspector works. Its zero value is ready to use.
type Config struct {
	// Redact changes what may not be seen of a task: its arguments, headers, result, errors. It is called for each task
	// that is read, before filters look at it, and for each event of Watch, in the goroutine of the caller. Defaults to
	// showing everything.
	Redact func(*Contents)
	// Actor is who acts, in the audit log. Defaults to the user of this process and its host.
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

// ErrNotFound reports that there is no such queue or task.
var ErrNotFound = errors.New("inspect: not found")

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// check returns an error if there is no inspector or no context.
func (ins *Inspector) check(ctx context.Context) error {
	switch {
	case ins == nil || ins.src == nil:
		return errors.New("inspect: the *Inspector is nil or zero: make it with New")
	case ctx == nil:
		return errors.New("inspect: the context is nil: pass context.Background()")
	}
	return nil
}

// store returns the store of a queue.
func (ins *Inspector) store(ctx context.Context, name string) (*redisstore.Store, error) {
	if err := ins.check(ctx); err != nil {
		return nil, err
	}
	if err := redisstore.CheckQueueName(name); err != nil {
		return nil, err
	}
	if !redisstore.OneSlot(ins.src, ins.prefix, name) {
		return nil, fmt.Errorf("inspect: queue name %q has no {tag}, which queues of a Redis Cluster need", name)
	}
	return redisstore.NewStore(ins.src, ins.prefix, name), nil
}

// knownStores returns the stores of all queues that the registry names, sorted by name, and which of them legacy
// workers share.
func (ins *Inspector) knownStores(ctx context.Context) (stores []*redisstore.Store, legacy map[string]bool, err error) {
	if err := ins.check(ctx); err != nil {
		return nil, nil, err
	}
	legacy, err = ins.registry.Names(ctx)
	for name := range legacy {
		// A handle on a single server with the same prefix may have written a name that a cluster cannot have.
		if s, err := ins.store(ctx, name); err == nil {
			stores = append(stores, s)
		}
	}
	slices.SortFunc(stores, func(a, b *redisstore.Store) int { return strings.Compare(a.Name, b.Name) })
	return stores, legacy, err
}

// stores returns the stores of queues, of all that are known if none is given.
func (ins *Inspector) stores(ctx context.Context, names []string) (stores []*redisstore.Store, err error) {
	if len(names) == 0 {
		stores, _, err = ins.knownStores(ctx)
		return stores, err
	}
	for _, name := range names {
		s, err := ins.store(ctx, name)
		if err != nil {
			return nil, err
		}
		stores = append(stores, s)
	}
	return stores, nil
}
