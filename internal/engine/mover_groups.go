package engine

import (
	"context"
	"time"

	"github.com/godelayed/delayed/internal/group"
	"github.com/godelayed/delayed/internal/loop"
	"github.com/godelayed/delayed/internal/redisstore"
)

const (
	// groupLoan is how long a mover that was told of a group has it for itself. Should it die, another one fires the
	// group after that.
	groupLoan = 3 * time.Second
	// fireRounds bounds what a mover does for groups before it looks at other tasks again.
	fireRounds = 100
)

// fire makes the calls of groups of queue i that are due, and returns the time until the next group is due, negative
// for none. No leader is needed: a script replaces the members by their call, and does nothing if another worker was
// faster.
func (m *mover) fire(ctx context.Context, i int) (next time.Duration, err error) {
	s := m.stores[i]
	for range fireRounds {
		next = -1
		for len(m.lent[i]) > 0 {
			due, err := m.fireGroup(ctx, s, m.lent[i][0])
			if err != nil && !redisstore.Answered(err) {
				return 0, err // the loan is not over
			}
			if err != nil {
				m.cannotFire(s, m.lent[i][0], err) // it keeps no other group waiting
			} else {
				next = sooner(next, due)
			}
			m.lent[i] = m.lent[i][1:]
		}
		var wait time.Duration
		if m.lent[i], wait, err = s.Ripe(ctx, redisstore.MaxRipe, m.loan); err != nil {
			return 0, err
		}
		next = sooner(next, wait)
		if (len(m.lent[i]) > 0 || next == 0) && ctx.Err() == nil {
			continue
		}
		return next, nil
	}
	return 0, nil
}

// cannotFire logs that a key of a group, or of its queue, is not what it should be. Each call that joins a group has it
// tried again.
func (m *mover) cannotFire(s *redisstore.Store, key string, err error) {
	m.lines.Log(loop.LineKey{Queue: s.Name, Reason: "group"}, func(n int) {
		m.log.With("queue", s.Name).With("group",
			key).Counted(n).WithError(err).Error("the calls of a group cannot be put together; trying again")
	})
}

// sooner returns the earlier of two times until something is due; negative ones stand for never.
func sooner(a, b time.Duration) time.Duration {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// fireGroup makes the calls of one group until it is no longer due, and returns the time until it is, negative if it is
// gone.
func (m *mover) fireGroup(ctx context.Context, s *redisstore.Store, key string) (due time.Duration, err error) {
	for range fireRounds {
		size, version, raws, large, err := s.Peek(ctx, key, redisstore.MaxClaimBytes)
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
			members = []group.Member{{Bytes: large}} // whoever claims it archives it
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
			return -1, nil // another worker was faster; if that leaves the group due, it is lent again
		}
		m.forgive(ctx, s, members, canceled)
		m.log.With("queue", s.Name).WithField("calls", len(members)).WithField("tasks",
			len(calls)).Debug("calls of a group are pending as one")
		if due == 0 && ctx.Err() == nil {
			continue
		}
		return due, nil
	}
	return 0, nil
}

// canceledMembers returns the ids of those members that were cancelled.
func canceledMembers(ctx context.Context, s *redisstore.Store, raws [][]byte) (canceled map[string]bool, err error) {
	ids := make([]string, 0, len(raws))
	for _, raw := range raws {
		if m, err := group.NewMember(raw); err == nil && m.Msg.Meta.ID != "" {
			ids = append(ids, m.Msg.Meta.ID)
		}
	}
	for len(ids) > 0 {
		n := min(len(ids), maxRevoked)
		revoked, err := s.AreRevoked(ctx, ids[:n])
		if err != nil {
			return nil, err
		}
		for i, id := range ids[:n] {
			if !revoked[i] {
				continue
			}
			if canceled == nil {
				canceled = map[string]bool{}
			}
			canceled[id] = true
		}
		ids = ids[n:]
	}
	return canceled, nil
}

// forgive has Redis forget that members were cancelled, which are in no call now. If it does not, they are forgotten in
// time.
func (m *mover) forgive(ctx context.Context, s *redisstore.Store, members []group.Member, canceled map[string]bool) {
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
		log.WithError(err).Debug("Redis was not told that cancelled calls have left their group")
		return
	}
	for _, id := range ids {
		_ = s.SignalEnd(ctx, id, redisstore.EndGathered) // somebody may wait for it who has only the id
	}
	log.Info("cancelled calls have left their group")
}
