package redisstore

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"weak"

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
func (s *Store) eval(ctx context.Context, script string, keys []string, args ...any) (any, error) {
	return evalOn(ctx, s.Src, script, keys, args...)
}

// evalOn is Store.eval for a source.
func evalOn(ctx context.Context, src Source, script string, keys []string, args ...any) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("delayed: %s: %w", script, context.Cause(ctx))
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
	sc := Scripts[script]
	return sc.send(ctx, conn, CallTimeout, sc.evalshaArgs(keys, args))
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
	return doOn(ctx, s.Src, s.keys.list, cmd, args...)
}

// doOn sends one command to the node of a key.
func doOn(ctx context.Context, src Source, key, cmd string, args ...any) (any, error) {
	conn, err := Connect(ctx, src, key)
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

// inSet reports for each member whether it is in a sorted set.
func (s *Store) inSet(ctx context.Context, set string, members []string) ([]bool, error) {
	reply, err := s.do(ctx, "ZMSCORE", argsOf(members, set)...)
	scores, err := values(reply, err, len(members))
	if err != nil {
		return nil, err
	}
	found := make([]bool, len(scores))
	for i, score := range scores {
		found[i] = score != nil
	}
	return found, nil
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

// NewLink returns a link to the node of a queue. It does not connect.
func (s *Store) NewLink() Link { return Link{Src: s.Src, Key: s.keys.list} }

// Workers returns the ids in the worker set.
func (s *Store) Workers(ctx context.Context) ([]string, error) {
	return redis.Strings(s.do(ctx, "SMEMBERS", s.keys.workers))
}

// Shared holds values by key for as long as somebody uses them. The zero value is empty. It is safe for concurrent use.
type Shared[K comparable, V any] struct {
	Mu    sync.Mutex
	ByKey map[K]weak.Pointer[V]
}

// Get returns the value of a key, which is made if there is none.
func (s *Shared[K, V]) Get(key K, made func() *V) *V {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if v := s.ByKey[key].Value(); v != nil {
		return v
	}
	if s.ByKey == nil {
		s.ByKey = map[K]weak.Pointer[V]{}
	}
	v := made()
	s.ByKey[key] = weak.Make(v)
	runtime.AddCleanup(v, s.forget, key)
	return v
}

// forget drops a value that nobody uses any more, unless another has taken its place.
func (s *Shared[K, V]) forget(key K) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.ByKey[key].Value() == nil {
		delete(s.ByKey, key)
	}
}
