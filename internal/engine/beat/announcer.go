package beat

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

// Announcer keeps queues known to those who look for queues. It asks Redis as often as heartbeats are
// renewed, because Redis may lose the registry at any time, or may have refused to write it. It is no part of the
// heartbeats: in a cluster the registry may be on a node that does not answer while the nodes of the queues do.
type Announcer struct {
	registry *redisstore.Registry // nil: nobody looks for queues
	src      redisstore.Source
	queues   map[string]bool // whether legacy workers share them
	every    time.Duration
	poke     chan struct{}
	log      loop.Journal
	trouble  loop.Complaints
}

// announceForbidden is the pause after Redis has answered that this user may not announce queues.
const announceForbidden = time.Minute

// NewAnnouncer returns the announcer of queues, which maps names to whether legacy workers share the queue. It does not
// connect.
func NewAnnouncer(
	registry *redisstore.Registry, src redisstore.Source, queues map[string]bool, every time.Duration, log loop.Journal,
) *Announcer {
	return &Announcer{
		registry: registry, src: src, queues: queues, every: every, poke: make(chan struct{}, 1), log: log,
	}
}

// now makes run announce at once. It never blocks.
func (a *Announcer) now() { loop.Poke(a.poke) }

// Run begins when now is called first, which is when the worker is registered.
func (a *Announcer) Run(ctx context.Context) {
	select {
	case <-a.poke:
	case <-ctx.Done():
	}
	for ctx.Err() == nil {
		loop.SleepOr(ctx, a.poke, a.Announce(ctx))
	}
}

// Announce makes the queues known, and returns how long to wait until the next time.
func (a *Announcer) Announce(ctx context.Context) time.Duration {
	if a.registry == nil {
		return a.every
	}
	err := a.registry.Uphold(ctx, a.src, a.queues)
	switch {
	case ctx.Err() != nil:
	case answer.Forbidden(err):
		// Nothing depends on it. Redis logs what it forbids, so do not ask with each heartbeat.
		a.log.WithError(err).Debug("queues are not announced")
		return announceForbidden
	case err != nil:
		a.log.Trouble(&a.trouble, "cannot make the queues known to those who look for queues; trying again", err)
	default:
		a.log.Relief(&a.trouble, "the queues are known again to those who look for queues")
	}
	return loop.Jitter(a.every, 0.1)
}
