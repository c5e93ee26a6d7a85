package delayed

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

const (
	// sweepPage bounds the claims that one script takes.
	sweepPage = 100
	// repairPage bounds the notifications that one script adds.
	repairPage = 1000
	// trimEvery is the number of passes between two looks at the age of archived and parked tasks.
	trimEvery = 8
	// trimPage bounds the tasks that one script deletes or condemns.
	trimPage = 100
)

// sweepGroup sweeps queues of one slot.
type sweepGroup struct {
	stores  []*store
	id      string        // of this sweeper, in the advisory lock
	own     string        // id of the worker that it runs in, which is alive; "" for none
	certain time.Duration // how far apart two looks are that miss the heartbeat of a dead worker
	life    time.Duration
	next    time.Duration // until the next pass, as this one finds it
	contact *contact
	log     journal
	bounds  sweepLimits
	hooks   *hooks // of the worker that it runs in; nil: none

	link    link
	server  string                          // id of the Redis server's process
	missed  map[*store]map[string]time.Time // when the heartbeat of a worker was first missed
	deficit map[*store]int                  // notifications that were missing at the last pass
	passes  int
	trouble complaints
	lines   *lineLimit // log lines about tasks
}

func newSweepGroup(src Source, own string, life time.Duration, c *contact, log journal) *sweepGroup {
	id := own
	if id == "" {
		id = newWorkerID()
	}
	return &sweepGroup{
		link: link{src: src}, id: id, own: own, certain: life/4 + 500*time.Millisecond, life: life, contact: c,
		log: log, bounds: sweepBounds,
		missed: map[*store]map[string]time.Time{}, deficit: map[*store]int{}, lines: &lineLimit{},
	}
}

// add puts a queue into the group.
func (g *sweepGroup) add(s *store) {
	g.stores = append(g.stores, s)
	g.link.key = s.keys.list
}

// run makes passes until ctx ends: in intervals, and when a heartbeat is about to end. A sweeper without a worker has
// no heartbeat that keeps contact, so it pings between them.
func (g *sweepGroup) run(ctx context.Context, interval time.Duration, ping bool) {
	defer g.lines.close()
	defer g.link.hangUp()
	interval = min(interval, g.life)
	var wait backoff
	for ctx.Err() == nil {
		g.next = jitter(interval, 0.2)
		err := g.pass(ctx, interval)
		next := g.next
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			g.link.hangUp()
			g.contact.broken()
			g.log.trouble(&g.trouble, "cannot sweep; trying again", err)
			next = min(max(wait.next(), interval/4), interval)
		} else {
			g.log.relief(&g.trouble, "sweeping again")
			wait.reset()
		}
		for end := time.Now().Add(next); ctx.Err() == nil; {
			left := time.Until(end)
			if left <= 0 {
				break
			}
			if ping {
				left = min(left, g.life/4)
			}
			if sleep(ctx, left) && ping && g.link.connected() {
				g.ping(ctx)
			}
		}
	}
}

// open connects, and notes when the server is another one than before: then heartbeats may be missing that were never
// written there.
func (g *sweepGroup) open(ctx context.Context) error {
	fresh, err := g.link.open(ctx)
	if err != nil {
		return err
	}
	if fresh {
		g.contact.broken()
	}
	done := g.contact.call()
	id, err := g.link.serverID(ctx)
	done(err)
	if err != nil {
		return err
	}
	if id != g.server {
		if g.server != "" {
			g.contact.broken()
		}
		g.server = id
	}
	if g.own != "" {
		return nil // the worker's heartbeat brings the time
	}
	now, err := g.link.time(ctx)
	if err != nil {
		return err
	}
	for _, s := range g.stores {
		s.redisTime(now)
	}
	return nil
}

// ping keeps contact.
func (g *sweepGroup) ping(ctx context.Context) {
	done := g.contact.call()
	err := g.link.ping(ctx)
	done(err)
	if err != nil {
		g.link.hangUp()
	}
}

// pass looks once at all queues of the group.
func (g *sweepGroup) pass(ctx context.Context, interval time.Duration) error {
	if err := g.open(ctx); err != nil {
		return err
	}
	done := g.contact.call()
	// The lock outlives one pass of its holder, so that the others do not take turns with it.
	sights, err := survey(ctx, &g.link, g.stores, g.id, interval*3/2)
	done(err)
	if err != nil {
		return err
	}
	g.passes++
	for i := range sights {
		if err := g.sweepQueue(ctx, g.stores[i], &sights[i]); err != nil {
			return err
		}
	}
	return nil
}

// sweepQueue sweeps one queue. Without the advisory lock it only looks, so that it can act as soon as the lock is free.
func (g *sweepGroup) sweepQueue(ctx context.Context, s *store, seen *sight) error {
	dead, err := g.findDead(ctx, s, seen.workers)
	if err != nil {
		return err
	}
	legacy, err := g.findDeadLegacy(ctx, s, seen.legacy)
	if err != nil {
		return err
	}
	if !seen.mine {
		if len(dead)+len(legacy) > 0 {
			g.lookIn(g.certain / 2) // whoever has the lock may be among them
		}
		return nil
	}
	for _, worker := range dead {
		n, err := g.sweepHash(ctx, s, worker)
		if err != nil {
			return err
		}
		if n > 0 {
			g.log.with("queue", s.name).with("worker", worker).WithField("tasks",
				n).Warn("gave back the tasks of a dead worker")
		}
		if _, err := s.forget(ctx, worker); err != nil {
			return err
		}
	}
	for _, worker := range legacy {
		if err := g.sweepLegacy(ctx, s, worker); err != nil {
			return err
		}
	}
	if err := g.repair(ctx, s, seen.pending-seen.noti); err != nil {
		return err
	}
	if g.passes%trimEvery == 1 {
		return g.trim(ctx, s)
	}
	return nil
}

// sweepHash takes all claims of a dead worker, page by page, and returns their number.
func (g *sweepGroup) sweepHash(ctx context.Context, s *store, worker string) (int, error) {
	liveness, hash := s.keys.heartbeat+worker, s.keys.processing+worker
	d, err := s.deathOf(ctx, worker, hash)
	if err != nil {
		return 0, err
	}
	taken := 0
	for ctx.Err() == nil {
		tokens, total, err := s.claimTokens(ctx, hash, sweepPage)
		if err != nil || total == 0 {
			return taken, err
		}
		d.sole = taken == 0 && total == 1
		// Last claimed first, as each goes to the front of the queue.
		slices.SortFunc(tokens, func(a, b string) int {
			an, ai, _ := parseToken(a)
			bn, bi, _ := parseToken(b)
			return cmp.Or(cmp.Compare(bn, an), cmp.Compare(bi, ai))
		})
		for len(tokens) > 0 {
			page, n, err := s.claims(ctx, hash, tokens)
			if err != nil {
				return taken, err
			}
			requeued, archived, alive, err := s.sweep(ctx, liveness, hash, g.bounds, g.verdicts(s, page, d))
			if err != nil || alive {
				return taken, err
			}
			taken += requeued + archived
			tokens = tokens[n:]
		}
	}
	return taken, ctx.Err()
}

// repair removes surplus notifications, and adds those that have been missing at two passes: between them a worker that
// was woken has had the time to claim.
func (g *sweepGroup) repair(ctx context.Context, s *store, deficit int) error {
	last := g.deficit[s]
	g.deficit[s] = max(deficit, 0)
	if deficit < 0 {
		_, err := s.repair(ctx, 0)
		return err
	}
	for missing := min(deficit, last); missing > 0; missing -= repairPage {
		added, err := s.repair(ctx, min(missing, repairPage))
		if err != nil || added <= 0 {
			return err
		}
	}
	return nil
}

// trim drops locks that have expired, deletes old archived and completed tasks, and archives tasks that were parked for
// too long.
func (g *sweepGroup) trim(ctx context.Context, s *store) error {
	if ages, err := s.ages(ctx); err != nil || !ages {
		return err
	}
	for ctx.Err() == nil {
		page, err := s.parkedPage(ctx, 0, trimPage, true)
		if err != nil {
			return err
		}
		for i := range page {
			parked := wire.ParseInfo(page[i].info)
			info := wire.Info{Reason: "parked too long", Function: parked.Function, Error: parked.Error, At: s.now()}
			page[i].info = info.Encode()
		}
		if len(page) == 0 {
			break
		}
		n, err := s.condemn(ctx, shelfParked, g.bounds.archiveKeep, page)
		if err != nil {
			return err
		}
		if n == 0 || len(page) < trimPage {
			break // by Redis's clock they are not too old
		}
	}
	for ctx.Err() == nil {
		n, err := s.pardon(ctx, pardonPage)
		if err != nil {
			return err
		}
		if n < pardonPage {
			break
		}
	}
	for ctx.Err() == nil {
		n, err := s.lapse(ctx, lapsePage)
		if err != nil {
			return err
		}
		if n < lapsePage {
			break
		}
	}
	for ctx.Err() == nil {
		n, err := s.trim(ctx, g.bounds.archiveMost, trimPage)
		if err != nil {
			return err
		}
		if n < trimPage {
			break
		}
	}
	for ctx.Err() == nil {
		if n, err := s.expire(ctx, trimPage); err != nil || n < trimPage {
			return err
		}
	}
	return ctx.Err()
}
