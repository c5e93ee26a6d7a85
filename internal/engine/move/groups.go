package move

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/answer"
	"github.com/godelayed/delayed/internal/engine/lane"
	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

const (
	// groupLoan is how long Redis lends a due group to one mover. If the worker dies, another one fires the group after
	// that.
	groupLoan = 3 * time.Second
	// fireRounds bounds how many calls a mover makes for groups before it checks other tasks again.
	fireRounds = 100
)

// Fire replaces each due group of queue i by its combined calls. It returns the time until the next group is due;
// negative: there is none. Movers need no leader, because the script does nothing if another one was faster.
func (m *Mover) Fire(ctx context.Context, i int) (next time.Duration, err error) {
	s := m.Stores[i]
	for range fireRounds {
		next = -1
		for len(m.Lent[i]) > 0 {
			due, err := m.fireGroup(ctx, s, m.Lent[i][0])
			if err != nil && !answer.Is(err) {
				return 0, err // keep the group, and try again
			}
			if err != nil {
				m.cannotFire(s, m.Lent[i][0], err) // go on with the other groups
			} else {
				next = sooner(next, due)
			}
			m.Lent[i] = m.Lent[i][1:]
		}
		var wait time.Duration
		if m.Lent[i], wait, err = s.Ripe(ctx, redisstore.MaxRipe, m.Loan); err != nil {
			return 0, err
		}
		next = sooner(next, wait)
		if (len(m.Lent[i]) > 0 || next == 0) && ctx.Err() == nil {
			continue
		}
		return next, nil
	}
	return 0, nil
}

// cannotFire logs that a key of a group or of its queue has the wrong type. Each call that joins the group lets a mover
// try again.
func (m *Mover) cannotFire(s *redisstore.Store, key string, err error) {
	m.lines.Log(loop.LineKey{Queue: s.Name, Reason: "group"}, func(n int) {
		m.log.With("queue", s.Name).With("group",
			key).Counted(n).WithError(err).Error("the calls of a group cannot be put together; trying again")
	})
}

// sooner returns the shorter of two times until something is due; negative: never.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// fireGroup fires one group until it is not due any more. It returns the time until it is due again; negative: it is
// empty.
func (m *Mover) fireGroup(ctx context.Context, s *redisstore.Store, key string) (due time.Duration, err error) {
	for range fireRounds {
		size, version, raws, large, err := s.Peek(ctx, key, redisstore.MaxCallBytes)
		if err != nil {
			return 0, err
		}
		var canceled map[string]bool
		if version != 0 {
			if canceled, err = canceledMembers(ctx, s, raws); err != nil {
				return 0, err
			}
		}
		calls, members := group.Compose(raws, size, s.Now().UnixMilli(), canceled)
		if large > 0 {
			members = []group.Member{{Bytes: large}} // the worker that claims it archives it
		}
		next := int64(0)
		if len(members) < len(raws) {
			if follower, err := group.NewMember(raws[len(members)]); err == nil {
				next = follower.Msg.Meta.EnqueuedAt
			}
		}
		fired, due, err := s.Fire(ctx, key, members, next, version, calls)
		switch {
		case err != nil:
			return 0, err
		case fired == redisstore.FiredNot:
			continue
		case fired != redisstore.FiredHere:
			return -1, nil // another worker was faster; if the group is still due, Redis lends it again
		}
		m.forgive(ctx, s, members, canceled)
		m.log.With("queue", s.Name).WithField("calls", len(members)).WithField("tasks",
			len(calls)).Debug("combined the calls of a group")
		if due == 0 && ctx.Err() == nil {
			continue
		}
		return due, nil
	}
	return 0, nil
}

// canceledMembers returns the ids of those members that were canceled.
func canceledMembers(ctx context.Context, s *redisstore.Store, raws [][]byte) (canceled map[string]bool, err error) {
	ids := make([]string, 0, len(raws))
	for _, raw := range raws {
		if m, err := group.NewMember(raw); err == nil && m.Msg.Meta.ID != "" {
			ids = append(ids, m.Msg.Meta.ID)
		}
	}
	err = lane.EachRevoked(ctx, s, ids, func(id string) {
		if canceled == nil {
			canceled = map[string]bool{}
		}
		canceled[id] = true
	})
	return canceled, err
}

// forgive removes cancellations from Redis of members that have left their group because of them. If that fails, the
// cancellations expire.
func (m *Mover) forgive(ctx context.Context, s *redisstore.Store, members []group.Member, canceled map[string]bool) {
	var ids []string
	for i := range members {
		if id := members[i].Msg.Meta.ID; canceled[id] {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	log := m.log.With("queue", s.Name).WithField("calls", len(ids))
	if err := s.Forgive(ctx, ids); err != nil {
		log.WithError(err).Debug("cannot remove the cancellations of calls that have left their group")
		return
	}
	for _, id := range ids {
		_ = s.SignalEnd(ctx, id, redisstore.EndGathered) // a caller may wait for it by its id
	}
	log.Info("canceled calls have left their group")
}
