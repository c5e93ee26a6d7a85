package delayed

import (
	"context"
	"crypto/sha1" //nolint:gosec // names equal messages; nothing secret depends on it
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
)

// sweepBounds are those of a sweep, unless the configuration says otherwise.
var sweepBounds = redisstore.SweepLimits{
	MaxDeaths: lifecycle.MaxDeaths, DeathsLife: lifecycle.DeathLife,
	ArchiveKeep: lifecycle.ArchivedLife, ArchiveMost: lifecycle.MaxArchived,
}

// findDead returns those of the workers that are dead beyond doubt: their heartbeats were missing at two looks, so far
// apart that a living worker would have registered again, and contact with Redis was unbroken from before the first to
// the second.
func (g *sweepGroup) findDead(ctx context.Context, s *redisstore.Store, workers []string) (dead []string, err error) {
	var others, missing []string
	for _, w := range workers {
		if w != g.own {
			others = append(others, w)
		}
	}
	if len(others) > 0 {
		done := g.contact.call()
		left, err := s.Lifetimes(ctx, &g.link, others)
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
func (g *sweepGroup) findDeadLegacy(ctx context.Context, s *redisstore.Store, total int) (dead []string, err error) {
	if total == 0 {
		g.surelyDead(s, legacyWorkers, nil)
		return nil, nil
	}
	ids, _, err := s.ClaimTokens(ctx, s.Keys.Legacy, legacyPage)
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
func (g *sweepGroup) surelyDead(s *redisstore.Store, kind string, missing []string) (dead []string) {
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
func (g *sweepGroup) sweepLegacy(ctx context.Context, s *redisstore.Store, worker string) error {
	page, _, err := s.Claims(ctx, s.Keys.Legacy, []string{worker})
	if err != nil {
		return err
	}
	liveness := worker
	if liveness == "" || s.Src.Slot(liveness) != s.Slot() {
		// Another node of the cluster holds the key; LegacyAlive has asked it. This one never exists.
		liveness = s.Keys.Heartbeat + "legacy"
	}
	verdicts := g.verdicts(s, page, redisstore.Death{Legacy: true})
	requeued, archived, alive, err := s.Sweep(ctx, liveness, s.Keys.Legacy, g.bounds, verdicts)
	if err != nil || alive {
		return err
	}
	if requeued+archived > 0 {
		g.lines.Log(loop.LineKey{Queue: s.Name, Reason: "legacy"}, func(n int) {
			g.log.With("queue", s.Name).With("worker",
				worker).Counted(n).Warn("gave back the task of a dead legacy worker")
		})
	}
	return nil
}

// verdicts decides what becomes of the claims of a dead worker. Only what died alone gets nearer to the archive.
func (g *sweepGroup) verdicts(s *redisstore.Store, page []redisstore.Claimed, d redisstore.Death) []redisstore.Verdict {
	verdicts, now := make([]redisstore.Verdict, len(page)), s.Now()
	for i, c := range page {
		verdicts[i] = g.verdict(s, c, d, now)
	}
	return verdicts
}

// verdict decides about one claim. Its death is counted in the message where that can carry it, and beside it where
// not.
func (g *sweepGroup) verdict(
	s *redisstore.Store, c redisstore.Claimed, d redisstore.Death, now time.Time,
) redisstore.Verdict {
	if c.Size > 0 {
		return g.tooLarge(s, c, now)
	}
	v := redisstore.Verdict{Claimed: c, Action: "requeue", Renewed: c.Message}
	msg, err := wire.Parse(c.Message, wire.WorkerLimits)
	if err == nil {
		v.ID, v.Awaited = msg.Meta.ID, msg.Meta.Extra.Keeps()
	}
	if v.ID == "" {
		v.ID = wire.NewTaskID()
	}
	info := wire.Info{
		Reason: lifecycle.ReasonDeaths, Function: msg.Path, At: now,
		Error: fmt.Sprintf("delayed: %d times its worker died while it had nothing but this task in hand",
			lifecycle.MaxDeaths),
	}
	alone := d.Legacy || d.Alone != ""
	switch {
	case d.Stopped, d.Alone != "" && d.Alone != c.Token:
		// It has not died with this worker: that stopped, or had not started it.
	case err != nil || msg.Kind == wire.Py:
		// Not ours to change. Nobody can know that it is suspect either, so that no worker runs it alone on purpose.
		sum := sha1.Sum(c.Message) //nolint:gosec // see the import
		v.Action, v.Digest = "count", hex.EncodeToString(sum[:])
		if alone || d.Sole {
			v.Action = "alone"
		}
		info.Deaths = lifecycle.MaxDeaths
	default:
		counted := countDeath(&msg, alone, now)
		info.Deaths, v.Renewed = msg.Meta.Deaths, msg.Append(nil)
		if counted >= lifecycle.MaxDeaths {
			v.Action = "archive"
			g.log.With("queue", s.Name).With("function", msg.Path).With("id", v.ID).WithField("deaths",
				msg.Meta.Deaths).
				Error("task archived: its worker died too often with nothing else in hand")
			if g.onArchive != nil {
				g.onArchive(s.Name, &msg, info.Reason, nil)
			}
		}
	}
	v.Info = info.Encode()
	return v
}

// countDeath counts the death of a worker in a message, and returns how many of its deaths were deaths alone.
func countDeath(msg *wire.Message, alone bool, now time.Time) int {
	msg.Extend()
	m, x := &msg.Meta, wire.Extra{}
	if m.Extra != nil {
		x = *m.Extra
	}
	if now.UnixMilli()-m.DiedAt >= lifecycle.DeathLife.Milliseconds() {
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
func (g *sweepGroup) tooLarge(s *redisstore.Store, c redisstore.Claimed, now time.Time) redisstore.Verdict {
	v := redisstore.Verdict{
		Claimed: c, Action: "archive", ID: wire.NewTaskID(),
		Info: redisstore.TooLargeInfo(c.Size, now, ""),
	}
	redisstore.LogTooLarge(g.log, g.lines, s.Name, v.ID, c.Size)
	if g.onArchive != nil {
		g.onArchive(s.Name, nil, lifecycle.ReasonTooLarge, redisstore.TooLarge(c.Size))
	}
	return v
}
