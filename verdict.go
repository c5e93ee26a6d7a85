package delayed

import (
	"context"
	"crypto/sha1" //nolint:gosec // names equal messages; nothing secret depends on it
	"encoding/hex"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// sweepBounds are those of a sweep, unless the configuration says otherwise.
var sweepBounds = sweepLimits{maxDeaths: maxDeaths, deathsLife: deathsLife, archiveKeep: archivedLife, archiveMost: archivedMost}

// judge returns those of the workers that are dead beyond doubt: their heartbeats have been missing at two looks, at least one life
// apart, and contact with Redis was unbroken in between; or contact has been unbroken for two lives and at most half of the
// workers seem dead.
func (g *sweepGroup) judge(ctx context.Context, s *store, workers []string) (dead []string, err error) {
	var others []string
	for _, w := range workers {
		if w != g.own {
			others = append(others, w)
		}
	}
	if len(others) == 0 {
		g.surelyDead(s, ourWorkers, nil, false)
		return nil, nil
	}
	done := g.contact.call()
	alive, err := s.alive(ctx, &g.link, others)
	done(err)
	if err != nil {
		return nil, err
	}
	var missing []string
	for i, w := range others {
		if !alive[i] {
			missing = append(missing, w)
		}
	}
	return g.surelyDead(s, ourWorkers, missing, 2*len(missing) <= len(workers)), nil
}

// judgeLegacy returns the ids of legacy workers with claims whose liveness keys are missing beyond doubt.
func (g *sweepGroup) judgeLegacy(ctx context.Context, s *store, total int) (dead []string, err error) {
	if total == 0 {
		g.surelyDead(s, legacyWorkers, nil, false)
		return nil, nil
	}
	ids, _, err := s.claimTokens(ctx, s.keys.legacy, legacyPage)
	if err != nil {
		return nil, err
	}
	var missing []string
	for _, id := range ids {
		alive, err := s.legacyAlive(ctx, id)
		if err != nil {
			return nil, err
		}
		if !alive {
			missing = append(missing, id)
		}
	}
	return g.surelyDead(s, legacyWorkers, missing, false), nil
}

// legacyPage bounds the claims of legacy workers that one pass looks at; each such worker has one at a time.
const legacyPage = 1000

// ourWorkers and legacyWorkers keep their ids apart.
const (
	ourWorkers    = ""
	legacyWorkers = "legacy "
)

// surelyDead notes whose heartbeats are missing now, forgets those that are back, and judges. few: at most half seem dead.
func (g *sweepGroup) surelyDead(s *store, kind string, missing []string, few bool) (dead []string) {
	now := time.Now()
	since, ok := g.contact.unbroken()
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
			first = now // what was seen before the contact broke does not count
		}
		after[kind+w] = first
		if ok && (now.Sub(first) >= g.life || few && now.Sub(since) >= 2*g.life) {
			dead = append(dead, w)
		}
	}
	g.missed[s] = after
	return dead
}

// sweepLegacy takes the one claim of a dead legacy worker.
func (g *sweepGroup) sweepLegacy(ctx context.Context, s *store, worker string) error {
	page, _, err := s.claims(ctx, s.keys.legacy, []string{worker})
	if err != nil {
		return err
	}
	liveness := worker
	if liveness == "" || s.src.Slot(liveness) != s.slot() {
		// Another node of the cluster holds the key; legacyAlive has asked it. This one never exists.
		liveness = s.keys.heartbeat + "legacy"
	}
	requeued, archived, alive, err := s.sweep(ctx, liveness, s.keys.legacy, g.bounds, g.verdicts(s, page))
	if err != nil || alive {
		return err
	}
	if requeued+archived > 0 {
		g.log.with("queue", s.name).with("worker", worker).Warn("gave back the task of a dead legacy worker")
	}
	return nil
}

// verdicts decides for each claim of a dead worker: its deaths are counted in the message where that can carry them, and after
// maxDeaths of them it is archived.
func (g *sweepGroup) verdicts(s *store, page []claimed) []verdict {
	now := time.Now()
	verdicts := make([]verdict, len(page))
	for i, c := range page {
		if c.size > 0 {
			verdicts[i] = g.tooLarge(s, c, now)
			continue
		}
		v := verdict{claimed: c, action: "requeue", renewed: c.message}
		msg, err := wire.Parse(c.message, workerLimits)
		info := taskInfo{reason: "deaths", function: msg.Path, errText: "its worker died with this task in hand, again and again", at: now}
		if err == nil {
			v.id, v.awaited = msg.Meta.ID, keeps(msg.Meta.Extra)
		}
		if v.id == "" {
			v.id = newTaskID()
		}
		if err != nil || msg.Kind == wire.Py {
			// Not ours to change: the count stands beside it.
			sum := sha1.Sum(c.message) //nolint:gosec // see the import
			v.action, v.digest = "count", hex.EncodeToString(sum[:])
			info.deaths = maxDeaths
		} else {
			msg.Extend()
			m := &msg.Meta
			if now.UnixMilli()-m.DiedAt >= deathsLife.Milliseconds() {
				m.Deaths = 0
			}
			m.Deaths++
			m.DiedAt = now.UnixMilli()
			info.deaths = m.Deaths
			v.renewed = msg.Append(nil)
			if m.Deaths >= maxDeaths {
				v.action = "archive"
				g.log.with("queue", s.name).with("function", msg.Path).with("id", v.id).WithField("deaths", m.Deaths).
					Error("task archived: its worker died with it in hand too often")
				g.hooks.tellSwept(s, &msg, info.reason)
			}
		}
		v.info = info.encode()
		verdicts[i] = v
	}
	return verdicts
}

// tooLarge is the verdict on a claim whose message is too large for any worker: it is archived as it is.
func (g *sweepGroup) tooLarge(s *store, c claimed, now time.Time) verdict {
	v := verdict{claimed: c, action: "archive", id: newTaskID(), info: tooLargeInfo(c.size, now, "")}
	logTooLarge(g.log, g.lines, s, v.id, c.size)
	g.hooks.emit(Event{Kind: EventTaskArchived, Queue: s.name, Reason: reasonTooLarge, Err: tooLarge(c.size)})
	return v
}
