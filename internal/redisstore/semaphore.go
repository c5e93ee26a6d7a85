package redisstore

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Semaphore is a number of places that holders in many processes share: a sorted set in Redis that maps a holder to
// when its place is free again, in ms, unless the holder acquires it anew before.
type Semaphore struct {
	src Source
	key string
}

// NewSemaphore returns the semaphore of a name, of handles with a prefix.
func NewSemaphore(src Source, prefix, name string) *Semaphore {
	return &Semaphore{src, prefix + semaphoreInfix + name}
}

// Acquire takes one of so many places for a holder, or keeps the place that it has. It reports false if all are taken.
func (s *Semaphore) Acquire(ctx context.Context, holder string, places int, lease time.Duration) (bool, error) {
	return redis.Bool(evalOn(ctx, s.src, "acquire", []string{s.key}, holder, places, lease.Milliseconds()))
}

// Release gives a holder's place back.
func (s *Semaphore) Release(ctx context.Context, holder string) error {
	_, err := doOn(ctx, s.src, s.key, "ZREM", s.key, holder)
	return err
}

// Holders returns who has a place now.
func (s *Semaphore) Holders(ctx context.Context) ([]string, error) {
	now, err := clock(doOn(ctx, s.src, s.key, "TIME"))
	if err != nil {
		return nil, err
	}
	return redis.Strings(doOn(ctx, s.src, s.key, "ZRANGEBYSCORE", s.key, now.UnixMilli(), "+inf",
		"LIMIT", 0, MaxPlaces))
}

// MaxPlaces bounds the places of a semaphore.
const MaxPlaces = 10_000
