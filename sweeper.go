package delayed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/sweep"
)

// SweeperConfig configures a sweeper. Only Queues is required.
type SweeperConfig struct {
	// Queues to sweep. Required.
	Queues []string
	// Interval is the time between two passes at most, ± 20 %; the sweeper also looks when a heartbeat ends, and at
	// least once in HeartbeatLife. Defaults to 8 s.
	Interval time.Duration
	// HeartbeatLife is that of the workers. Defaults to 15 s.
	HeartbeatLife time.Duration
	// ArchiveMax and ArchiveFor bound the archive, as those of WorkerConfig do. Default to 10,000 tasks and 90 days.
	ArchiveMax int
	ArchiveFor time.Duration
	// Logger receives the log of the sweeper. Defaults to logrus's standard logger.
	Logger logrus.FieldLogger
}

// Sweeper gives back the tasks of workers that have died, be they Go, Python or legacy ones, and mends notify lists.
// Every worker runs one; a separate Sweeper is for queues that only legacy workers serve. Any number may run on one
// queue.
type Sweeper struct {
	groups  []*sweep.Group
	signals *redisstore.Signals
	started atomic.Bool
}

// NewSweeper returns a sweeper, or everything that is wrong with cfg. It does not connect.
func NewSweeper(rdb *Store, cfg SweeperConfig) (*Sweeper, error) {
	if err := rdb.check(); err != nil {
		return nil, fmt.Errorf("delayed: NewSweeper: %w", err)
	}
	cfg.Interval, cfg.HeartbeatLife = cmp.Or(cfg.Interval, defaultSweep), cmp.Or(cfg.HeartbeatLife, defaultLife)
	cfg.ArchiveMax = cmp.Or(cfg.ArchiveMax, lifecycle.MaxArchived)
	cfg.ArchiveFor = cmp.Or(cfg.ArchiveFor, lifecycle.ArchivedLife)
	f := faults{config: "SweeperConfig", errs: []error{checkNames(cfg.Queues), rdb.checkSlots(cfg.Queues)}}
	f.shared(cfg.HeartbeatLife, cfg.ArchiveFor, cfg.ArchiveMax, "Interval", cfg.Interval, cfg.Logger)
	if err := errors.Join(f.errs...); err != nil {
		return nil, err
	}
	bySlot := map[int][]*redisstore.Store{}
	for _, name := range cfg.Queues {
		st := redisstore.NewStore(rdb.loops, rdb.prefix, name)
		bySlot[st.Slot()] = append(bySlot[st.Slot()], st)
	}
	s := &Sweeper{signals: rdb.signals}
	log := loop.NewJournal(cfg.Logger)
	for _, stores := range bySlot {
		s.groups = append(s.groups, sweep.NewGroup(sweep.Config{
			Stores: stores, Interval: cfg.Interval, Life: cfg.HeartbeatLife,
			ArchiveMax: cfg.ArchiveMax, ArchiveFor: cfg.ArchiveFor,
			Health: sweep.NewLinkHealth(cfg.HeartbeatLife), Log: log,
		}))
	}
	return s, nil
}

// Run sweeps until ctx ends, and returns nil then. A second Run returns ErrClosed, and so does one whose handle on
// Redis is closed, before or meanwhile. While Redis is away it tries again, and carries on by itself.
func (s *Sweeper) Run(ctx context.Context) error {
	if s == nil || s.groups == nil {
		return errNoSweeper
	}
	if err := checkContext(ctx); err != nil {
		return err
	}
	if !s.started.CompareAndSwap(false, true) {
		return fmt.Errorf("%w: Run was called before: make another sweeper", ErrClosed)
	}
	ctx, end := s.signals.Until(ctx)
	defer end()
	done := make(chan struct{})
	for _, g := range s.groups {
		go func() {
			defer func() { done <- struct{}{} }()
			g.Run(ctx)
		}()
	}
	for range s.groups {
		<-done
	}
	return redisstore.Closing(ctx)
}

var errNoSweeper = errors.New("delayed: the *Sweeper is nil or zero: make it with NewSweeper")
