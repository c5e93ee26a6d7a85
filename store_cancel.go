package delayed

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

const (
	// revokedLife is how long a task that was cancelled, and that may be pending or active, must not run.
	revokedLife = 7 * 24 * time.Hour
	// pardonPage bounds the revocations that one script forgets.
	pardonPage = 500
)

// cancelled is what became of a task that was to be cancelled.
type cancelled uint8

const (
	cancelTooLate cancelled = iota // it has ended
	cancelRevoked                  // it may be pending or active, and must not run
	cancelTaken                    // it was taken out of where it waited
	cancelAgain                    // it has only now come where it waits; nothing was done
)

// cancel cancels a task. filed says whether it was found to wait; if so, keep is how long info says afterwards that it
// was cancelled; 0: not at all.
func (s *store) cancel(ctx context.Context, id string, filed bool, keep time.Duration, info []byte) (cancelled, error) {
	k := &s.keys
	keys := []string{
		k.revoked, k.control, k.scheduled, k.retry, k.parked, k.archived, k.completed, k.tasks, k.info, k.results,
		k.locks, k.locked, s.statsKey(),
	}
	n, err := redis.Int(s.eval(ctx, scriptCancel, keys, id, revokedLife.Milliseconds(), keep.Milliseconds(), info,
		k.endedOf(id), k.signals(),
		statsLife, pardonPage, flag(filed)))
	return cancelled(n), err //nolint:gosec // 0 to 3
}

// filedMessage returns the message of a task that is scheduled, retrying, parked or archived.
func (s *store) filedMessage(ctx context.Context, id string) (stored, error) {
	messages, err := s.someFields(ctx, s.keys.tasks, []string{id}, wire.WorkerLimits.Bytes)
	if err != nil {
		return stored{}, err
	}
	return messages[0], nil
}

// annulled is a claimed task that was cancelled.
type annulled struct {
	completed
	certain bool // it was cancelled, whatever Redis knows of it
}

// annul ends claims of tasks that were cancelled. again says for each whether the claim stands, because the task is not
// revoked any more.
func (s *store) annul(
	ctx context.Context, worker string, batches []uint64, tasks []annulled,
) (stood, again []bool, err error) {
	args := make([]any, 0, 2+len(batches)+6*len(tasks))
	args = append(args, statsLife)
	args = appendBatches(args, batches)
	for i := range tasks {
		t := &tasks[i]
		args = append(args, t.token, t.id, t.keep.Milliseconds(), t.value, flag(t.certain), s.channel(t.id, t.awaited))
	}
	keys := []string{
		s.keys.processing + worker, s.keys.claims + worker, s.keys.revoked, s.keys.completed, s.keys.results,
		s.keys.locks, s.keys.locked, s.statsKey(),
	}
	reply, err := s.eval(ctx, scriptAnnul, keys, args...)
	return answersAgain(reply, err, len(tasks))
}

// answersAgain converts a reply of n times one, zero, or two for a claim that stands still.
func answersAgain(reply any, err error, n int) (stood, again []bool, _ error) {
	stood, err = answers(reply, err, n)
	if err != nil {
		return nil, nil, err
	}
	values, _ := redis.Values(reply, nil)
	for i, v := range values {
		if v == int64(2) {
			if again == nil {
				again = make([]bool, n)
			}
			again[i] = true
		}
	}
	return stood, again, nil
}

// pardon forgets at most n revocations whose time is over, and the control hash if it says nothing.
func (s *store) pardon(ctx context.Context, n int) (int, error) {
	return redis.Int(s.eval(ctx, scriptPardon, []string{s.keys.revoked, s.keys.control}, n))
}

// revoked returns up to n ids of cancelled tasks. all is true if there are no more.
func (s *store) revoked(ctx context.Context, n int) (ids []string, all bool, err error) {
	if ids, err = redis.Strings(s.read(ctx, "ZRANGE", s.keys.revoked, 0, n)); err != nil {
		return nil, false, err
	}
	if len(ids) > n {
		return ids[:n], false, nil
	}
	return ids, true, nil
}

// areRevoked says which of the ids are those of cancelled tasks.
func (s *store) areRevoked(ctx context.Context, ids []string) ([]bool, error) {
	args := make([]any, 0, 1+len(ids))
	args = append(args, s.keys.revoked)
	for _, id := range ids {
		args = append(args, id)
	}
	values, err := redis.Values(s.read(ctx, "ZMSCORE", args...))
	if err != nil {
		return nil, err
	}
	if len(values) != len(ids) {
		return nil, fmt.Errorf("%w: ZMSCORE", errReply)
	}
	found := make([]bool, len(ids))
	for i, v := range values {
		found[i] = v != nil
	}
	return found, nil
}

// forgive forgets that tasks were cancelled: they have ended.
func (s *store) forgive(ctx context.Context, ids []string) error {
	args := make([]any, 0, 1+len(ids))
	args = append(args, s.keys.revoked)
	for _, id := range ids {
		args = append(args, id)
	}
	_, err := s.read(ctx, "ZREM", args...)
	return err
}
