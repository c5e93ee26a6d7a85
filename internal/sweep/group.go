// Package sweep finds workers that have died, and decides what happens to the tasks that they held: a task goes back to
// its queue, or is archived if it has taken down too many workers. It also mends notify lists and deletes what was kept
// for long enough.
package sweep

import (
	"cmp"
	"context"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// trimEvery is how many passes go by between two checks of the age of archived and parked tasks.
const trimEvery = 8

// Config defines what a Group sweeps, and how.
type Config struct {
	Stores []*redisstore.Store // the queues, at least one, all of one slot
	// Worker is the id of the worker that the group runs in. That worker is alive, and its heartbeat keeps contact with
	// Redis and brings Redis's time. "" if the group runs alone.
	Worker   string
	Interval time.Duration // between two passes, ± 20 %; they come at least once in Life
	Life     time.Duration // of the heartbeats of all workers
	// ArchiveMax and ArchiveFor bound the archive.
	ArchiveMax int
	ArchiveFor time.Duration
	// Health is the health of the connections to the server of these queues.
	Health *LinkHealth
	Log    loop.Journal
	// OnArchive, if not nil, is called before a dead worker's task is archived: for its deaths, or because its message
	// is too large to be read; then msg is nil and err reports how large it is.
	OnArchive func(queue string, msg *wire.Message, reason state.Reason, err error)
}

// Group sweeps queues of one slot.
type Group struct {
	cfg          Config
	id           string        // of this sweeper, in the advisory lock
	confirmAfter time.Duration // least time between the two looks that find a worker dead
	limits       redisstore.SweepLimits

	link    redisstore.Link
	server  string                                     // id of the Redis server's process; "" if it does not report it
	asked   bool                                       // the server of this connection does not report its id
	missed  map[*redisstore.Store]map[string]time.Time // when the heartbeat of a worker was first missed
	deficit map[*redisstore.Store]int                  // notifications that were missing at the last pass
	lapsed  map[*redisstore.Store]string               // cursor where to look for expired locks
	passes  int
	next    time.Duration // until the next pass, as far as this one knows
	trouble loop.Complaints
	lines   *loop.LineLimit // log lines about tasks
}

// NewGroup returns a sweeper of queues. It does not connect.
func NewGroup(cfg Config) *Group {
	id := cfg.Worker
	if id == "" {
		id = wire.NewWorkerID()
	}
	return &Group{
		cfg: cfg, id: id, confirmAfter: cfg.Life/4 + 500*time.Millisecond,
		limits: redisstore.SweepLimits{
			MaxDeaths: lifecycle.MaxDeaths, DeathsLife: lifecycle.DeathLife,
			ArchiveKeep: cfg.ArchiveFor, ArchiveMost: cfg.ArchiveMax,
		},
		link:   cfg.Stores[0].NewLink(),
		missed: map[*redisstore.Store]map[string]time.Time{}, deficit: map[*redisstore.Store]int{},
		lapsed: map[*redisstore.Store]string{},
		lines:  &loop.LineLimit{},
	}
}

// Run makes passes until ctx ends: in intervals, and when a heartbeat is about to expire. A group that runs alone also
// pings between passes, because it has no heartbeat that keeps contact.
func (g *Group) Run(ctx context.Context) {
	defer g.lines.Close()
	defer g.link.HangUp()
	interval := min(g.cfg.Interval, g.cfg.Life)
	alone := g.cfg.Worker == ""
	var wait loop.Backoff
	for ctx.Err() == nil {
		g.next = loop.Jitter(interval, 0.2)
		err := g.pass(ctx, interval)
		next := g.next
		switch {
		case err == nil:
			g.cfg.Log.Relief(&g.trouble, "sweeping again")
			wait.Reset()
		case ctx.Err() != nil:
			return
		default:
			g.cfg.Log.Trouble(&g.trouble, "cannot sweep; trying again", err)
			if !redisstore.IsWrongType(err) {
				g.link.HangUp()
				g.cfg.Health.Break()
				next = min(max(wait.Next(), interval/4), interval)
			}
		}
		for end := time.Now().Add(next); ctx.Err() == nil; {
			left := time.Until(end)
			if left <= 0 {
				break
			}
			if alone {
				left = min(left, g.cfg.Life/4)
			}
			if loop.Sleep(ctx, left) && alone && g.link.Connected() {
				g.ping(ctx)
			}
		}
	}
}

// open connects, and notices when the server is not the one from before: heartbeats may be missing there because they
// were never written. Another connection may lead to another server. So may the same one, through a proxy; then the id
// of the server's process shows, and if the server does not report its id, findDead finds the worker's own heartbeat
// missing.
func (g *Group) open(ctx context.Context) error {
	fresh, err := g.link.Open(ctx)
	if err != nil {
		return err
	}
	if fresh {
		g.cfg.Health.Break()
		g.asked = false
	}
	if err := g.checkServer(ctx); err != nil {
		return err
	}
	if g.cfg.Worker != "" {
		return nil // the worker's heartbeat brings the time
	}
	now, err := g.link.Time(ctx)
	if err != nil {
		return err
	}
	for _, s := range g.cfg.Stores {
		s.RedisTime(now)
	}
	return nil
}

// checkServer notices when the connection leads to another server than before.
func (g *Group) checkServer(ctx context.Context) error {
	if g.asked {
		return nil // Redis logs what it forbids, so do not ask with each pass
	}
	done := g.cfg.Health.Call()
	id, err := g.link.ServerID(ctx)
	done(err)
	if err != nil {
		return err
	}
	g.asked = id == ""
	if id != g.server {
		if g.server != "" {
			g.cfg.Health.Break()
		}
		g.server = id
	}
	return nil
}

// ping keeps contact with Redis.
func (g *Group) ping(ctx context.Context) {
	done := g.cfg.Health.Call()
	err := g.link.Ping(ctx)
	done(err)
	if err != nil {
		g.link.HangUp()
	}
}

// pass looks once at all queues of the group. One whose keys are of another type does not keep it from the others.
func (g *Group) pass(ctx context.Context, interval time.Duration) error {
	if err := g.open(ctx); err != nil {
		return err
	}
	done := g.cfg.Health.Call()
	// The lock outlasts the interval, so that the same sweeper keeps it.
	queues, fault := redisstore.Survey(ctx, &g.link, g.cfg.Stores, g.id, interval*3/2)
	done(fault)
	if queues == nil {
		return fault
	}
	g.passes++
	for i := range queues {
		err := g.sweepQueue(ctx, g.cfg.Stores[i], &queues[i])
		if err != nil && !redisstore.IsWrongType(err) {
			return err
		}
		fault = cmp.Or(fault, err)
	}
	return fault
}

// sweepQueue sweeps one queue. Without the advisory lock it only looks, so that it can act as soon as the lock is free.
func (g *Group) sweepQueue(ctx context.Context, s *redisstore.Store, seen *redisstore.SurveyedQueue) error {
	dead, err := g.findDead(ctx, s, seen.Workers)
	if err != nil {
		return err
	}
	legacy, err := g.findDeadLegacy(ctx, s, seen.Legacy)
	if err != nil {
		return err
	}
	if !seen.Locked {
		if len(dead)+len(legacy) > 0 {
			g.passWithin(g.confirmAfter / 2) // the holder of the lock may be one of the dead
		}
		return nil
	}
	for _, worker := range dead {
		n, err := g.takeClaims(ctx, s, worker)
		if err != nil {
			return err
		}
		if n > 0 {
			g.cfg.Log.With("queue", s.Name).With("worker", worker).WithField("tasks",
				n).Warn("gave back the tasks of a dead worker")
		}
		if _, err := s.Forget(ctx, worker); err != nil {
			return err
		}
	}
	for _, worker := range legacy {
		if err := g.takeLegacyClaim(ctx, s, worker); err != nil {
			return err
		}
	}
	if err := g.repair(ctx, s, seen.Pending-seen.Noti); err != nil {
		return err
	}
	if g.passes%trimEvery == 1 {
		return g.trim(ctx, s)
	}
	return nil
}

// repair removes surplus notifications, and adds those that were missing at two passes: between them a woken worker had
// time to claim.
func (g *Group) repair(ctx context.Context, s *redisstore.Store, deficit int) error {
	last := g.deficit[s]
	g.deficit[s] = max(deficit, 0)
	if deficit < 0 {
		_, err := s.Repair(ctx, 0)
		return err
	}
	for missing := min(deficit, last); missing > 0; missing -= redisstore.RepairPage {
		added, err := s.Repair(ctx, min(missing, redisstore.RepairPage))
		if err != nil || added <= 0 {
			return err
		}
	}
	return nil
}

// SweepAll gives back the tasks of all workers without a heartbeat, after a single look, and deletes what is too old.
func (g *Group) SweepAll(ctx context.Context) error {
	for _, s := range g.cfg.Stores {
		workers, err := s.Workers(ctx)
		if err != nil {
			return err
		}
		for _, worker := range workers {
			if _, err := g.takeClaims(ctx, s, worker); err != nil {
				return err
			}
			if _, err := s.Forget(ctx, worker); err != nil {
				return err
			}
		}
		if err := g.trim(ctx, s); err != nil {
			return err
		}
		for g.lapsed[s] != "" && g.lapsed[s] != "0" { // a pass need not look at all locks
			if err := g.lapse(ctx, s); err != nil {
				return err
			}
		}
	}
	return nil
}
