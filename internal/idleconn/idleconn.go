// Package idleconn tests connections of a pool that have idled for a while.
package idleconn

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

// errDead says that a connection is discarded without a test.
var errDead = errors.New("delayed: idle connections are dead")

// Check returns a TestOnBorrowContext for one pool: a connection that has idled for longer than after must answer a
// PING within limit. If it does not, all connections that were put into the pool before are discarded untested: testing
// each for seconds would take minutes while a server or a network does not answer. It may be called concurrently.
func Check(after, limit time.Duration) func(context.Context, redis.Conn, time.Time) error {
	var swallowed atomic.Int64
	return func(ctx context.Context, c redis.Conn, used time.Time) error {
		if dead := time.Unix(0, swallowed.Load()); used.Before(dead) {
			return errDead
		}
		if time.Since(used) < after {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err := redis.DoContext(c, ctx, "PING")
		if err != nil {
			swallowed.Store(time.Now().UnixNano())
		}
		return err
	}
}
