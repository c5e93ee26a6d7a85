package redisstore

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

var scriptAcquire = newScript("acquire")

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
	return redis.Bool(evalOn(ctx, s.src, scriptAcquire, []string{s.key}, []any{holder, places, lease.Milliseconds()}))
}

// Release gives a holder's place back.
func (s *Semaphore) Release(ctx context.Context, holder string) error {
	return s.with(ctx, func(conn redis.Conn) error {
		_, err := do(ctx, conn, CallTimeout, "ZREM", s.key, holder)
		return err
	})
}

// Holders returns who has a place now.
func (s *Semaphore) Holders(ctx context.Context) (holders []string, err error) {
	err = s.with(ctx, func(conn redis.Conn) error {
		time, err := redis.Int64s(do(ctx, conn, CallTimeout, "TIME"))
		if err != nil {
			return err
		}
		holders, err = redis.Strings(do(ctx, conn, CallTimeout, "ZRANGEBYSCORE", s.key, time[0]*1000+time[1]/1000,
			"+inf", "LIMIT", 0, MaxPlaces))
		return err
	})
	return holders, err
}

// MaxPlaces bounds the places of a semaphore.
const MaxPlaces = 10_000

// with calls f with a connection to the semaphore.
func (s *Semaphore) with(ctx context.Context, f func(redis.Conn) error) error {
	conn, err := Connect(ctx, s.src, s.key)
	if err != nil {
		return ConnError(err)
	}
	defer conn.Close()
	return f(conn)
}
