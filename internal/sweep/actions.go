package sweep

import (
	"crypto/sha1" //nolint:gosec // names equal messages; nothing secret depends on it
	"encoding/hex"
	"fmt"
	"time"

	"github.com/godelayed/delayed/internal/lifecycle"
	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/wire"
	"github.com/godelayed/delayed/state"
)

// actions decides what happens to the claims of a dead worker. Only deaths alone bring a task nearer to the archive.
func (g *Group) actions(s *redisstore.Store, page []redisstore.Claimed, d redisstore.Death) []redisstore.SweepAction {
	actions, now := make([]redisstore.SweepAction, len(page)), s.Now()
	for i, c := range page {
		actions[i] = g.action(s, c, d, now)
	}
	return actions
}

// action decides about one claim. It counts the death in the message if that can carry it, else in the deaths hash.
func (g *Group) action(
	s *redisstore.Store, c redisstore.Claimed, d redisstore.Death, now time.Time,
) redisstore.SweepAction {
	if c.Size > 0 {
		return g.archiveTooLarge(s, c, d, now)
	}
	a := redisstore.SweepAction{Claimed: c, Kind: "requeue", Renewed: c.Message}
	msg, err := wire.Parse(c.Message, wire.WorkerLimits)
	if err == nil {
		a.ID, a.Awaited = msg.Meta.ID, msg.Meta.Extra.Keeps()
		if x := msg.Meta.Extra; x != nil {
			a.Lock = x.Lock
		}
	}
	if a.ID == "" {
		a.ID = wire.NewTaskID()
	}
	info := wire.Info{
		Reason: state.ReasonDeaths, Function: msg.Path, At: now, Worker: d.Worker,
		Error: fmt.Sprintf("delayed: %d times its worker died while it had nothing but this task in hand",
			lifecycle.MaxDeaths),
	}
	alone := d.Legacy || d.Alone != ""
	switch {
	case d.Stopped, d.Alone != "" && d.Alone != c.Token:
		// The task has not died with this worker, which was stopping or had not started it.
	case err != nil || msg.Kind == wire.Py:
		// Such a message must not be changed. So it cannot say that the task is suspect, and no worker runs it alone
		// on purpose.
		sum := sha1.Sum(c.Message) //nolint:gosec // see the import
		a.Kind, a.Digest = "count", hex.EncodeToString(sum[:])
		if alone || d.Sole {
			a.Kind = "alone"
		}
		info.Deaths = lifecycle.MaxDeaths
	default:
		counted := CountDeath(&msg, alone, now)
		info.Deaths, a.Renewed = msg.Meta.Deaths, msg.Append(nil)
		if counted >= lifecycle.MaxDeaths {
			a.Kind = "archive"
			g.cfg.Log.With("queue", s.Name).With("function", msg.Path).With("id", a.ID).WithField("deaths",
				msg.Meta.Deaths).
				Error("task archived: its worker died too often with nothing else in hand")
			if g.cfg.OnArchive != nil {
				g.cfg.OnArchive(s.Name, &msg, info.Reason, nil)
			}
		}
	}
	a.Info = info.Encode()
	return a
}

// CountDeath counts the death of a worker in a message, and returns how many of its deaths were deaths alone.
func CountDeath(msg *wire.Message, alone bool, now time.Time) int {
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

// archiveTooLarge returns the action that archives a claim unchanged, because its message is too large for any worker.
func (g *Group) archiveTooLarge(
	s *redisstore.Store, c redisstore.Claimed, d redisstore.Death, now time.Time,
) redisstore.SweepAction {
	a := redisstore.SweepAction{
		Claimed: c, Kind: "archive", ID: wire.NewTaskID(),
		Info: redisstore.TooLargeInfo(c.Size, now, d.Worker),
	}
	redisstore.LogTooLarge(g.cfg.Log, g.lines, s.Name, a.ID, c.Size)
	if g.cfg.OnArchive != nil {
		g.cfg.OnArchive(s.Name, nil, state.ReasonTooLarge, redisstore.TooLarge(c.Size))
	}
	return a
}
