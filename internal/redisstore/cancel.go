package redisstore

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

const (
	// revokedLife is how long Redis remembers that a canceled task, which may be pending or active, must not run.
	revokedLife = 7 * 24 * time.Hour
	// PardonPage bounds the revocations that one script forgets.
	PardonPage = 500
)

// Cancellation is what cancelling a task did.
type Cancellation uint8

// Outcomes of cancelling a task.
const (
	CancelTooLate Cancellation = iota // it has ended
	cancelRevoked                     // it may be pending or active, and must not run
	cancelTaken                       // it was filed, and was removed
	CancelAgain                       // it was filed only after the caller looked; nothing was done
)

// Cancel cancels a task. filed reports that the caller has found it scheduled, in retry or parked. Then info, which
// says that it was canceled, is kept for the time keep; 0: not at all. lock is the one that its message names.
func (s *Store) Cancel(
	ctx context.Context, id, lock string, filed bool, keep time.Duration, info []byte,
) (Cancellation, error) {
	k := &s.keys
	keys := []string{
		k.revoked, k.control, k.scheduled, k.retry, k.parked, k.archived, k.completed, k.tasks, k.info, k.results,
		k.locks, s.StatsKey(),
	}
	n, err := redis.Int(s.eval(ctx, "cancel", keys, id, revokedLife.Milliseconds(), keep.Milliseconds(), info,
		k.endedOf(id), k.signals(),
		statsLife, PardonPage, flag(filed), lock))
	return Cancellation(n), err //nolint:gosec // 0 to 3
}

// FiledMessage returns the message of a task that is scheduled, retrying, parked or archived.
func (s *Store) FiledMessage(ctx context.Context, id string) (Stored, error) {
	messages, err := s.someFields(ctx, s.keys.tasks, []string{id}, wire.WorkerLimits.Bytes)
	if err != nil {
		return Stored{}, err
	}
	return messages[0], nil
}

// Pardon forgets at most n expired revocations; after the last one, also a control hash that only holds a version of
// the past.
func (s *Store) Pardon(ctx context.Context, n int) (int, error) {
	return redis.Int(s.eval(ctx, "pardon", []string{s.keys.revoked, s.keys.control}, n))
}

// Revoked returns up to n ids of canceled tasks. all is true if there are no more.
func (s *Store) Revoked(ctx context.Context, n int) (ids []string, all bool, err error) {
	if ids, err = redis.Strings(s.do(ctx, "ZRANGE", s.keys.revoked, 0, n)); err != nil {
		return nil, false, err
	}
	if len(ids) > n {
		return ids[:n], false, nil
	}
	return ids, true, nil
}

// AreRevoked reports for each id whether its task is revoked.
func (s *Store) AreRevoked(ctx context.Context, ids []string) ([]bool, error) {
	return s.inSet(ctx, s.keys.revoked, ids)
}

// Forgive forgets the revocations of tasks that have ended.
func (s *Store) Forgive(ctx context.Context, ids []string) error {
	_, err := s.do(ctx, "ZREM", argsOf(ids, s.keys.revoked)...)
	return err
}
