package delayed

import (
	"context"
	"crypto/sha1" //nolint:gosec // names equal messages; nothing secret depends on it
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/wire"
)

// sweepBounds are those of a sweep, unless the configuration says otherwise.
var sweepBounds = sweepLimits{
	maxDeaths: maxDeaths, deathsLife: deathsLife, archiveKeep: archivedLife, archiveMost: archivedMost,
}

// findDead returns those of the workers that are dead beyond doubt: their heartbeats were missing at two looks, so far
// apart that a living worker would have registered again, and contact with Redis was unbroken from before the first to
// the second.
func (g *sweepGroup) findDead(ctx context.Context, s *store, workers []string) (dead []string, err error) {
	var others, missing []string
	for _, w := range workers {
		if w != g.own {
			others = append(others, w)
		}
	}
	if len(others) > 0 {
		done := g.contact.call()
		left, err := s.lifetimes(ctx, &g.link, others)
		done(err)
		if err != nil {
			return nil, err
		}
		for i, w := range others {
			if left[i] < 0 {
				missing = append(missing, w)
			} else {
				g.lookIn(left[i] + expiryMargin)
			}
		}
	}
	return g.surelyDead(s, ourWorkers, missing), nil
}

// expiryMargin is added to the time that a heartbeat has left, so that it is over at the next look.
const expiryMargin = 20 * time.Millisecond

// lookIn asks for another look after d at the latest.
func (g *sweepGroup) lookIn(d time.Duration) { g.next = min(g.next, max(d, expiryMargin)) }

// findDeadLegacy returns the ids of legacy workers with claims whose liveness keys are missing beyond doubt.
func (g *sweepGroup) findDeadLegacy(ctx context.Context, s *store, total int) (dead []string, err error) {
	if total == 0 {
		g.surelyDead(s, legacyWorkers, nil)
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
	return g.surelyDead(s, legacyWorkers, missing), nil
}

// legacyPage bounds the claims of legacy workers that one pass looks at; each such worker has one at a time.
const legacyPage = 1000

// ourWorkers and legacyWorkers keep their ids apart.
const (
	ourWorkers    = ""
	legacyWorkers = "legacy "
)

// surelyDead notes whose heartbeats are missing now, forgets those that are back, and returns those that have been
// missing for long enough.
func (g *sweepGroup) surelyDead(s *store, kind string, missing []string) (dead []string) {
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
		if wait := g.certain - now.Sub(first); wait > 0 || !ok {
			g.lookIn(wait)
		} else {
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
	verdicts := g.verdicts(s, page, death{legacy: true})
	requeued, archived, alive, err := s.sweep(ctx, liveness, s.keys.legacy, g.bounds, verdicts)
	if err != nil || alive {
		return err
	}
	if requeued+archived > 0 {
		g.lines.log(lineKey{queue: s.name, reason: "legacy"}, func(n int) {
			g.log.with("queue", s.name).with("worker",
				worker).counted(n).Warn("gave back the task of a dead legacy worker")
		})
	}
	return nil
}

// verdicts decides what becomes of the claims of a dead worker. Only what died alone gets nearer to the archive.
func (g *sweepGroup) verdicts(s *store, page []claimed, d death) []verdict {
	verdicts, now := make([]verdict, len(page)), s.now()
	for i, c := range page {
		verdicts[i] = g.verdict(s, c, d, now)
	}
	return verdicts
}

// verdict decides about one claim. Its death is counted in the message where that can carry it, and beside it where
// not.
func (g *sweepGroup) verdict(s *store, c claimed, d death, now time.Time) verdict {
	if c.size > 0 {
		return g.tooLarge(s, c, now)
	}
	v := verdict{claimed: c, action: "requeue", renewed: c.message}
	msg, err := wire.Parse(c.message, wire.WorkerLimits)
	if err == nil {
		v.id, v.awaited = msg.Meta.ID, keeps(msg.Meta.Extra)
	}
	if v.id == "" {
		v.id = newTaskID()
	}
	info := wire.Info{
		Reason: "deaths", Function: msg.Path, At: now,
		Error: fmt.Sprintf("delayed: %d times its worker died while it had nothing but this task in hand", maxDeaths),
	}
	alone := d.legacy || d.alone != ""
	switch {
	case d.stopped, d.alone != "" && d.alone != c.token:
		// It has not died with this worker: that stopped, or had not started it.
	case err != nil || msg.Kind == wire.Py:
		// Not ours to change. Nobody can know that it is suspect either, so that no worker runs it alone on purpose.
		sum := sha1.Sum(c.message) //nolint:gosec // see the import
		v.action, v.digest = "count", hex.EncodeToString(sum[:])
		if alone || d.sole {
			v.action = "alone"
		}
		info.Deaths = maxDeaths
	default:
		counted := countDeath(&msg, alone, now)
		info.Deaths, v.renewed = msg.Meta.Deaths, msg.Append(nil)
		if counted >= maxDeaths {
			v.action = "archive"
			g.log.with("queue", s.name).with("function", msg.Path).with("id", v.id).WithField("deaths",
				msg.Meta.Deaths).
				Error("task archived: its worker died too often with nothing else in hand")
			g.hooks.tellSwept(s, &msg, info.Reason)
		}
	}
	v.info = info.Encode()
	return v
}

// countDeath counts the death of a worker in a message, and returns how many of its deaths were deaths alone.
func countDeath(msg *wire.Message, alone bool, now time.Time) int {
	msg.Extend()
	m, x := &msg.Meta, wire.Extra{}
	if m.Extra != nil {
		x = *m.Extra
	}
	if now.UnixMilli()-m.DiedAt >= deathsLife.Milliseconds() {
		m.Deaths, x.AloneDeaths = 0, 0
	}
	m.Deaths++
	m.DiedAt = now.UnixMilli()
	if alone {
		x.AloneDeaths++
	}
	if x.AloneDeaths > 0 || m.Extra != nil {
		m.Extra = &x
	}
	return int(x.AloneDeaths)
}

// tooLarge is the verdict on a claim whose message is too large for any worker: it is archived as it is.
func (g *sweepGroup) tooLarge(s *store, c claimed, now time.Time) verdict {
	v := verdict{claimed: c, action: "archive", id: newTaskID(), info: tooLargeInfo(c.size, now, "")}
	logTooLarge(g.log, g.lines, s, v.id, c.size)
	g.hooks.emit(Event{Kind: EventTaskArchived, Queue: s.name, Reason: reasonTooLarge, Err: tooLarge(c.size)})
	return v
}
