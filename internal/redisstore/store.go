package redisstore

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
	// MaxTokens bounds the claims that one script ends or gives back.
	MaxTokens = 500
	// MaxShelved bounds the tasks that one script files.
	MaxShelved = 100
)

// Store is one queue as Redis holds it. Each method is one script or one read. Methods may be called concurrently.
type Store struct {
	Src  Source
	Name string
	keys keys
	Now  func() time.Time // by Redis's clock, once RedisTime was called
	skew atomic.Int64     // Redis's clock less ours, ns
	Wait int              // replicas that must have a task before it counts as accepted
}

// NewStore returns the store of a queue.
func NewStore(src Source, prefix, name string) *Store {
	s := &Store{Src: src, Name: name, keys: newQueueKeys(prefix, name)}
	s.Now = func() time.Time { return time.Now().Add(time.Duration(s.skew.Load())) }
	return s
}

// String returns the queue's name behind the key prefix, which is also the key of its pending list.
func (s *Store) String() string { return s.keys.list }

// RedisTime notes the present time of Redis's clock.
func (s *Store) RedisTime(now time.Time) { s.skew.Store(int64(time.Until(now))) }

// Skew returns how far Redis's clock is ahead of this process's.
func (s *Store) Skew() time.Duration { return time.Duration(s.skew.Load()) }

// SameQueue reports whether both stores are of the same queue.
func (s *Store) SameQueue(other *Store) bool { return s.keys.list == other.keys.list }

// Slot returns the queue's hash slot. Stores of one slot may share a script.
func (s *Store) Slot() int { return s.Src.Slot(s.keys.list) }

// StatsKey is the counter hash of today, by Redis's clock.
func (s *Store) StatsKey() string { return s.keys.statsOf(s.Now()) }

// eval runs a script on a connection of the pool. An error that wraps ErrUnknown leaves open whether the script ran.
func (s *Store) eval(ctx context.Context, sc *Script, keys []string, args ...any) (any, error) {
	return evalOn(ctx, s.Src, sc, keys, args)
}

func evalOn(ctx context.Context, src Source, sc *Script, keys []string, args []any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("delayed: %s: %w", sc.Name, context.Cause(ctx))
	}
	if bounded, ok := src.(*BoundedSource); ok {
		if err := bounded.acquire(ctx); err != nil {
			return nil, err
		}
		defer bounded.release()
	}
	conn, err := Connect(ctx, src, keys[0])
	if err != nil {
		return nil, ConnError(err)
	}
	defer conn.Close()
	return sc.eval(ctx, conn, CallTimeout, keys, args)
}

// ConnError explains why there is no connection. Nothing was sent.
func ConnError(err error) error {
	if err.Error() == closedPool {
		return ErrHandleClosed
	}
	return fmt.Errorf("delayed: connecting to Redis: %w", err)
}

// do sends one command.
func (s *Store) do(ctx context.Context, cmd string, args ...any) (any, error) {
	conn, err := Connect(ctx, s.Src, s.keys.list)
	if err != nil {
		return nil, ConnError(err)
	}
	defer conn.Close()
	reply, err := do(ctx, conn, CallTimeout, cmd, args...)
	if err != nil {
		return nil, fmt.Errorf("delayed: %s: %w", cmd, err)
	}
	return reply, nil
}

// Length returns the number of pending tasks, suspects included.
func (s *Store) Length(ctx context.Context) (int, error) {
	n, err := redis.Int(s.do(ctx, "LLEN", s.keys.list))
	if err != nil {
		return 0, err
	}
	suspects, err := redis.Int(s.do(ctx, "LLEN", s.keys.suspects))
	return n + suspects, err
}

// Suspects returns a store whose pending list holds the queue's suspects. All else it shares with s.
func (s *Store) Suspects() *Store {
	other := &Store{Src: s.Src, Name: s.Name, keys: s.keys, Now: s.Now, Wait: s.Wait}
	other.keys.list, other.keys.noti = s.keys.suspects, s.keys.suspectsNoti
	return other
}

// Used reports whether Redis knows of any task of the queue: filed, pending, claimed by the given worker or by a legacy
// one, or counted within the last 90 days.
func (s *Store) Used(ctx context.Context, worker string) (bool, error) {
	k := &s.keys
	keys := []any{
		k.list, k.suspects, k.processing + worker, k.legacy, k.scheduled, k.retry, k.archived, k.parked, k.completed,
		k.groups, k.periodic,
	}
	for day := range statsLife / (24 * 60 * 60) {
		keys = append(keys, k.statsOf(s.Now().AddDate(0, 0, -day)))
	}
	n, err := redis.Int(s.do(ctx, "EXISTS", keys...))
	return n > 0, err
}

// The forms of Python tasks, as Redis records them. All Python tasks of a queue have the same form.
const (
	PlainForm    = "plain"    // what keakon's package delayed reads: path, arguments and retry count, without an id
	ExtendedForm = "extended" // with an id and options; workers of keakon's package break on it
)

// SettleMode settles the form of the queue's Python tasks, unless that was done before, and returns it.
func (s *Store) SettleMode(ctx context.Context, want string) (string, error) {
	return redis.String(s.eval(ctx, ScriptMode, []string{s.keys.mode}, want))
}

// Reform replaces the form of Python tasks if it is still the one found and the script finds no task, and returns the
// form that holds. Call HoldsNone before: the script does not look for active tasks.
func (s *Store) Reform(ctx context.Context, found, want string) (string, error) {
	return redis.String(s.eval(ctx, scriptReform, []string{
		s.keys.mode, s.keys.list, s.keys.scheduled, s.keys.retry, s.keys.parked, s.keys.archived, s.keys.legacy,
		s.keys.periodic,
		s.keys.suspects,
	}, found, want))
}

// HoldsNone reports whether no task is pending and none is active. It looks for pending ones first, so that it misses
// no task that becomes active between the looks.
func (s *Store) HoldsNone(ctx context.Context) (bool, error) {
	if n, err := s.Length(ctx); n > 0 || err != nil {
		return false, err
	}
	workers, err := s.Workers(ctx)
	if err != nil {
		return false, err
	}
	for _, w := range workers {
		if n, err := redis.Int(s.do(ctx, "HLEN", s.keys.processing+w)); n > 0 || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Mode returns the settled form of Python tasks, "" for none yet.
func (s *Store) Mode(ctx context.Context) (string, error) {
	form, err := redis.String(s.do(ctx, "GET", s.keys.mode))
	if errors.Is(err, redis.ErrNil) {
		return "", nil
	}
	return form, err
}

// ints converts a reply of n integers.
func ints(reply any, err error, n int) ([]int64, error) {
	values, err := redis.Int64s(reply, err)
	if err != nil {
		return nil, err
	}
	if len(values) != n {
		return nil, fmt.Errorf("%w: %d values, expected %d", ErrReply, len(values), n)
	}
	return values, nil
}

// NewLink returns a link to the node of a queue. It does not connect.
func (s *Store) NewLink() Link { return Link{Src: s.Src, Key: s.keys.list} }

// Workers returns the ids in the worker set.
func (s *Store) Workers(ctx context.Context) ([]string, error) {
	return redis.Strings(s.do(ctx, "SMEMBERS", s.keys.workers))
}
