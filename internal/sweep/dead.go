package sweep

import (
	"context"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// findDead returns the workers that are certainly dead: their heartbeats were missing at two looks, so far apart that a
// living worker would have registered again, and contact with Redis was unbroken from before the first look to the
// second.
func (g *Group) findDead(ctx context.Context, s *redisstore.Store, workers []string) (dead []string, err error) {
	var others, missing []string
	for _, w := range workers {
		if w != g.cfg.Worker {
			others = append(others, w)
		}
	}
	if len(others) > 0 {
		asked := others
		own := g.server == "" && g.cfg.Worker != ""
		if own {
			asked = append(asked, g.cfg.Worker)
		}
		done := g.cfg.Health.Call()
		left, err := s.Lifetimes(ctx, &g.link, asked)
		done(err)
		if err != nil {
			return nil, err
		}
		if own && left[len(others)] < 0 {
			// Nothing else shows whether this is the server of the look before. It does not have this worker's
			// heartbeat, so it may not have had those of the others, who need time to register.
			delete(g.missed, s)
		}
		for i, w := range others {
			if left[i] < 0 {
				missing = append(missing, w)
			} else {
				g.passWithin(left[i] + expiryMargin)
			}
		}
	}
	return g.confirmDead(s, ourWorkers, missing), nil
}

// expiryMargin is added to the time that a heartbeat has left, so that it has expired at the next look.
const expiryMargin = 20 * time.Millisecond

// passWithin makes the next pass come within d.
func (g *Group) passWithin(d time.Duration) { g.next = min(g.next, max(d, expiryMargin)) }

// findDeadLegacy returns the ids of legacy workers with claims that are certainly dead.
func (g *Group) findDeadLegacy(ctx context.Context, s *redisstore.Store, total int) (dead []string, err error) {
	if total == 0 {
		g.confirmDead(s, legacyWorkers, nil)
		return nil, nil
	}
	ids, err := s.LegacyWorkers(ctx, legacyPage)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, id := range ids {
		alive, err := s.LegacyAlive(ctx, id)
		if err != nil {
			return nil, err
		}
		if !alive {
			missing = append(missing, id)
		}
	}
	return g.confirmDead(s, legacyWorkers, missing), nil
}

// legacyPage bounds the claims of legacy workers that one pass looks at; each such worker has one at a time.
const legacyPage = 1000

// ourWorkers and legacyWorkers are the prefixes that keep both kinds of ids apart.
const (
	ourWorkers    = ""
	legacyWorkers = "legacy "
)

// confirmDead notes the workers whose heartbeats are missing now, forgets those whose heartbeats are back, and returns
// those that have been missing for long enough.
func (g *Group) confirmDead(s *redisstore.Store, kind string, missing []string) (dead []string) {
	now := time.Now()
	since, ok := g.cfg.Health.UnbrokenSince()
	before := g.missed[s]
	after := make(map[string]time.Time, len(missing))
	for key, first := range before {
		if strings.HasPrefix(key, legacyWorkers) != (kind == legacyWorkers) {
			after[key] = first
		}
	}
	for _, w := range missing {
		first, seen := before[kind+w]
		if !seen || !ok || first.Before(since) {
			first = now // a look from before the contact broke does not count
		}
		after[kind+w] = first
		if wait := g.confirmAfter - now.Sub(first); wait > 0 || !ok {
			g.passWithin(wait)
		} else {
			dead = append(dead, w)
		}
	}
	g.missed[s] = after
	return dead
}
