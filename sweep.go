package delayed

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

const (

	// trimEvery is the number of passes between two looks at the age of archived and parked tasks.
	trimEvery = 8
)

// sweepGroup sweeps queues of one slot.
type sweepGroup struct {
	stores  []*redisstore.Store
	id      string        // of this sweeper, in the advisory lock
	own     string        // id of the worker that it runs in, which is alive; "" for none
	certain time.Duration // how far apart two looks are that miss the heartbeat of a dead worker
	life    time.Duration
	next    time.Duration // until the next pass, as this one finds it
	contact *contact
	log     loop.Journal
	bounds  redisstore.SweepLimits
	// onArchive is called for each task that is archived because of its worker's death, or for its size. The message is
	// nil if it is too large to be read; then err says so. nil: nobody wants to know.
	onArchive func(queue string, msg *wire.Message, reason string, err error)

	link    redisstore.Link
	server  string                                     // id of the Redis server's process
	missed  map[*redisstore.Store]map[string]time.Time // when the heartbeat of a worker was first missed
	deficit map[*redisstore.Store]int                  // notifications that were missing at the last pass
	passes  int
	trouble loop.Complaints
	lines   *loop.LineLimit // log lines about tasks
}

func newSweepGroup(src Source, own string, life time.Duration, c *contact, log loop.Journal) *sweepGroup {
	id := own
	if id == "" {
		id = wire.NewWorkerID()
	}
	return &sweepGroup{
		link: redisstore.Link{Src: src}, id: id, own: own, certain: life/4 + 500*time.Millisecond, life: life,
		contact: c,
		log:     log, bounds: sweepBounds,
		missed: map[*redisstore.Store]map[string]time.Time{}, deficit: map[*redisstore.Store]int{},
		lines: &loop.LineLimit{},
	}
}

// add puts a queue into the group.
func (g *sweepGroup) add(s *redisstore.Store) {
	g.stores = append(g.stores, s)
	g.link.Key = s.Keys.List
}

// run makes passes until ctx ends: in intervals, and when a heartbeat is about to end. A sweeper without a worker has
// no heartbeat that keeps contact, so it pings between them.
func (g *sweepGroup) run(ctx context.Context, interval time.Duration) {
	defer g.lines.Close()
	defer g.link.HangUp()
	interval = min(interval, g.life)
	var wait loop.Backoff
	for ctx.Err() == nil {
		g.next = loop.Jitter(interval, 0.2)
		err := g.pass(ctx, interval)
		next := g.next
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			g.link.HangUp()
			g.contact.broken()
			g.log.Trouble(&g.trouble, "cannot sweep; trying again", err)
			next = min(max(wait.Next(), interval/4), interval)
		} else {
			g.log.Relief(&g.trouble, "sweeping again")
			wait.Reset()
		}
		for end := time.Now().Add(next); ctx.Err() == nil; {
			left := time.Until(end)
			if left <= 0 {
				break
			}
			alone := g.own == ""
			if alone {
				left = min(left, g.life/4)
			}
			if loop.Sleep(ctx, left) && alone && g.link.Connected() {
				g.ping(ctx)
			}
		}
	}
}

// open connects, and notes when the server is another one than before: then heartbeats may be missing that were never
// written there.
func (g *sweepGroup) open(ctx context.Context) error {
	fresh, err := g.link.Open(ctx)
	if err != nil {
		return err
	}
	if fresh {
		g.contact.broken()
	}
	done := g.contact.call()
	id, err := g.link.ServerID(ctx)
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
	now, err := g.link.Time(ctx)
	if err != nil {
		return err
	}
	for _, s := range g.stores {
		s.RedisTime(now)
	}
	return nil
}

// ping keeps contact.
func (g *sweepGroup) ping(ctx context.Context) {
	done := g.contact.call()
	err := g.link.Ping(ctx)
	done(err)
	if err != nil {
		g.link.HangUp()
	}
}

// pass looks once at all queues of the group.
func (g *sweepGroup) pass(ctx context.Context, interval time.Duration) error {
	if err := g.open(ctx); err != nil {
		return err
	}
	done := g.contact.call()
	// The lock outlives one pass of its holder, so that the others do not take turns with it.
	sights, err := redisstore.Survey(ctx, &g.link, g.stores, g.id, interval*3/2)
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
func (g *sweepGroup) sweepQueue(ctx context.Context, s *redisstore.Store, seen *redisstore.Sight) error {
	dead, err := g.findDead(ctx, s, seen.Workers)
	if err != nil {
		return err
	}
	legacy, err := g.findDeadLegacy(ctx, s, seen.Legacy)
	if err != nil {
		return err
	}
	if !seen.Mine {
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
			g.log.With("queue", s.Name).With("worker", worker).WithField("tasks",
				n).Warn("gave back the tasks of a dead worker")
		}
		if _, err := s.Forget(ctx, worker); err != nil {
			return err
		}
	}
	for _, worker := range legacy {
		if err := g.sweepLegacy(ctx, s, worker); err != nil {
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

// sweepAll sweeps all queues at once, for tests of programs: it trusts the script to find out which workers live.
func (g *sweepGroup) sweepAll(ctx context.Context) error {
	for _, s := range g.stores {
		workers, err := s.Workers(ctx)
		if err != nil {
			return err
		}
		for _, worker := range workers {
			if _, err := g.sweepHash(ctx, s, worker); err != nil {
				return err
			}
			if _, err := s.Forget(ctx, worker); err != nil {
				return err
			}
		}
		if err := g.trim(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// sweepHash takes all claims of a dead worker, page by page, and returns their number.
func (g *sweepGroup) sweepHash(ctx context.Context, s *redisstore.Store, worker string) (int, error) {
	liveness, hash := s.Keys.Heartbeat+worker, s.Keys.Processing+worker
	d, err := s.DeathOf(ctx, worker, hash)
	if err != nil {
		return 0, err
	}
	taken := 0
	for ctx.Err() == nil {
		tokens, total, err := s.ClaimTokens(ctx, hash, redisstore.SweepPage)
		if err != nil || total == 0 {
			return taken, err
		}
		d.Sole = taken == 0 && total == 1
		// Last claimed first, as each goes to the front of the queue.
		slices.SortFunc(tokens, func(a, b string) int {
			an, ai, _ := redisstore.ParseToken(a)
			bn, bi, _ := redisstore.ParseToken(b)
			return cmp.Or(cmp.Compare(bn, an), cmp.Compare(bi, ai))
		})
		for len(tokens) > 0 {
			page, n, err := s.Claims(ctx, hash, tokens)
			if err != nil {
				return taken, err
			}
			requeued, archived, alive, err := s.Sweep(ctx, liveness, hash, g.bounds, g.verdicts(s, page, d))
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
func (g *sweepGroup) repair(ctx context.Context, s *redisstore.Store, deficit int) error {
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

// trim drops locks that have expired, deletes old archived and completed tasks, and archives tasks that were parked for
// too long.
func (g *sweepGroup) trim(ctx context.Context, s *redisstore.Store) error {
	if ages, err := s.Ages(ctx); err != nil || !ages {
		return err
	}
	for ctx.Err() == nil {
		page, err := s.ParkedPage(ctx, 0, redisstore.TrimPage, true)
		if err != nil {
			return err
		}
		for i := range page {
			parked := wire.ParseInfo(page[i].Info)
			info := wire.Info{
				Reason: lifecycle.ReasonParkedTooLong, Function: parked.Function, Error: parked.Error, At: s.Now(),
			}
			page[i].Info = info.Encode()
		}
		if len(page) == 0 {
			break
		}
		n, err := s.Condemn(ctx, redisstore.ShelfParked, g.bounds.ArchiveKeep, page)
		if err != nil {
			return err
		}
		if n == 0 || len(page) < redisstore.TrimPage {
			break // by Redis's clock they are not too old
		}
	}
	for ctx.Err() == nil {
		n, err := s.Pardon(ctx, redisstore.PardonPage)
		if err != nil {
			return err
		}
		if n < redisstore.PardonPage {
			break
		}
	}
	for ctx.Err() == nil {
		n, err := s.Lapse(ctx, redisstore.LapsePage)
		if err != nil {
			return err
		}
		if n < redisstore.LapsePage {
			break
		}
	}
	for ctx.Err() == nil {
		n, err := s.Trim(ctx, g.bounds.ArchiveMost, redisstore.TrimPage)
		if err != nil {
			return err
		}
		if n < redisstore.TrimPage {
			break
		}
	}
	for ctx.Err() == nil {
		if n, err := s.Expire(ctx, redisstore.TrimPage); err != nil || n < redisstore.TrimPage {
			return err
		}
	}
	return ctx.Err()
}
