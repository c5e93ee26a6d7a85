package delayed

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// statsLife is how long the counters of a day are kept, in seconds.
	statsLife = 90 * 24 * 60 * 60
	// maxTokens bounds the claims that one script ends or gives back.
	maxTokens = 500
	// maxShelved bounds the tasks that one script files.
	maxShelved = 100
)

// store is one queue as Redis holds it: each method is one script or one read, and nothing above it knows Redis.
// Methods may be called concurrently.
type store struct {
	src  Source
	name string
	keys queueKeys
	now  func() time.Time // by Redis's clock, as far as skew is known
	skew atomic.Int64     // Redis's clock less ours, ns
	wait int              // replicas that must have a task before it counts as accepted
}

func newStore(src Source, prefix, name string) *store {
	s := &store{src: src, name: name, keys: newQueueKeys(prefix, name)}
	s.now = func() time.Time { return time.Now().Add(time.Duration(s.skew.Load())) }
	return s
}

// redisTime notes what time it is by Redis's clock.
func (s *store) redisTime(now time.Time) { s.skew.Store(int64(time.Until(now))) }

// slot tells which stores may share a script.
func (s *store) slot() int { return s.src.Slot(s.keys.list) }

// statsKey is the counter hash of today, by Redis's clock.
func (s *store) statsKey() string { return s.keys.statsOf(s.now()) }

// eval runs a script on a connection of the pool. An error that wraps ErrUnknown leaves open whether the script ran.
func (s *store) eval(ctx context.Context, sc *script, keys []string, args ...any) (any, error) {
	return evalOn(ctx, s.src, sc, keys, args)
}

// accept runs a script that enqueues, and waits for the replicas that must have it.
func (s *store) accept(ctx context.Context, sc *script, keys []string, args ...any) (any, error) {
	return evalWaiting(ctx, s.src, s.wait, sc, keys, args)
}

func evalOn(ctx context.Context, src Source, sc *script, keys []string, args []any) (any, error) {
	return evalWaiting(ctx, src, 0, sc, keys, args)
}

func evalWaiting(ctx context.Context, src Source, replicas int, sc *script, keys []string, args []any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("delayed: %s: %w", sc.name, context.Cause(ctx))
	}
	if bounded, ok := src.(*boundedSource); ok {
		if err := bounded.enter(ctx); err != nil {
			return nil, err
		}
		defer bounded.leave()
	}
	conn, err := connect(ctx, src, keys[0])
	if err != nil {
		return nil, connError(err)
	}
	defer conn.Close()
	if replicas == 0 {
		return sc.run(ctx, conn, callTimeout, keys, args)
	}
	return sc.sendWaiting(ctx, conn, waitOf(ctx), replicas, sc.call(keys, args))
}

// errHandleClosed says why nothing can be asked of Redis any more.
var errHandleClosed = fmt.Errorf("%w: the handle on Redis is closed", ErrClosed)

// connError explains why there is no connection. Nothing was sent.
func connError(err error) error {
	if err.Error() == "redigo: get on closed pool" {
		return errHandleClosed
	}
	return fmt.Errorf("delayed: connecting to Redis: %w", err)
}

// read sends one reading command.
func (s *store) read(ctx context.Context, cmd string, args ...any) (any, error) {
	conn, err := connect(ctx, s.src, s.keys.list)
	if err != nil {
		return nil, connError(err)
	}
	defer conn.Close()
	reply, err := do(ctx, conn, callTimeout, cmd, args...)
	if err != nil {
		return nil, fmt.Errorf("delayed: %s: %w", cmd, err)
	}
	return reply, nil
}

// length returns the number of pending tasks, suspects included.
func (s *store) length(ctx context.Context) (int, error) {
	n, err := redis.Int(s.read(ctx, "LLEN", s.keys.list))
	if err != nil {
		return 0, err
	}
	suspects, err := redis.Int(s.read(ctx, "LLEN", s.keys.suspects))
	return n + suspects, err
}

// suspects returns the store whose pending list is that of the queue's suspects. Everything else it shares with s.
func (s *store) suspects() *store {
	other := &store{src: s.src, name: s.name, keys: s.keys, now: s.now, wait: s.wait}
	other.keys.list, other.keys.noti = s.keys.suspects, s.keys.suspectsNoti
	return other
}

// used reports whether Redis knows of a task that was ever on the queue. The counters of a day are kept for 90.
func (s *store) used(ctx context.Context) (bool, error) {
	k := &s.keys
	keys := []any{k.list, k.legacy, k.scheduled, k.retry, k.archived, k.parked, k.completed, k.groups, k.periodic}
	for day := range statsLife / (24 * 60 * 60) {
		keys = append(keys, k.statsOf(s.now().AddDate(0, 0, -day)))
	}
	n, err := redis.Int(s.read(ctx, "EXISTS", keys...))
	return n > 0, err
}

// settleMode makes sure that Python tasks of this queue have one form, for all producers, and returns the form that
// holds.
func (s *store) settleMode(ctx context.Context, want string) (string, error) {
	return redis.String(s.eval(ctx, scriptMode, []string{s.keys.mode}, want))
}

// reform replaces the form of Python tasks that was found, if no task is in one of the places that the script looks at,
// and returns the form that holds. Whether tasks are active is for holdsNone to say, before.
func (s *store) reform(ctx context.Context, found, want string) (string, error) {
	return redis.String(s.eval(ctx, scriptReform, []string{
		s.keys.mode, s.keys.list, s.keys.scheduled, s.keys.retry, s.keys.parked, s.keys.archived, s.keys.legacy,
		s.keys.periodic,
		s.keys.suspects,
	}, found, want))
}

// holdsNone says whether no task is pending and none is active. In this order: one that becomes active after the first
// look is found there.
func (s *store) holdsNone(ctx context.Context) (bool, error) {
	if n, err := s.length(ctx); n > 0 || err != nil {
		return false, err
	}
	workers, err := s.workers(ctx)
	if err != nil {
		return false, err
	}
	for _, w := range workers {
		if n, err := redis.Int(s.read(ctx, "HLEN", s.keys.processing+w)); n > 0 || err != nil {
			return false, err
		}
	}
	return true, nil
}

// mode returns the form that was settled, "" if none was yet.
func (s *store) mode(ctx context.Context) (string, error) {
	form, err := redis.String(s.read(ctx, "GET", s.keys.mode))
	if errors.Is(err, redis.ErrNil) {
		return "", nil
	}
	return form, err
}

// errReply says that Redis answered a script in a form that the script does not have.
var errReply = errors.New("delayed: unexpected reply of a script; another version of the scripts may be in use")

// ints converts a reply of n integers.
func ints(reply any, err error, n int) ([]int64, error) {
	values, err := redis.Int64s(reply, err)
	if err != nil {
		return nil, err
	}
	if len(values) != n {
		return nil, fmt.Errorf("%w: %d values, expected %d", errReply, len(values), n)
	}
	return values, nil
}
