package delayed

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Source hands out connections to a Redis server or cluster. Packages rediscluster and redissentinel provide sources;
// write one to connect in another way. Its methods are called concurrently.
type Source interface {
	// Conn returns a connection on which commands and scripts for key may be sent, or the error of dialling. The caller
	// closes it. It should implement redis.ConnWithTimeout and redis.ConnWithContext.
	Conn(ctx context.Context, key string) (redis.Conn, error)
	// Slot returns a number that is the same for keys which one script may use together: the hash slot in a cluster, 0
	// otherwise.
	Slot(key string) int
	// Close closes the idle connections. Conn fails after it.
	Close() error

	// If it has a method String() string, that is what logs say of the address. It must not show a password.
}

// boundedSource bounds the calls that use a source at a time.
type boundedSource struct {
	Source
	places chan struct{}
}

// enter waits for a place.
func (s *boundedSource) enter(ctx context.Context) error {
	select {
	case s.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("delayed: waiting for a connection to Redis: %w", context.Cause(ctx))
	}
}

func (s *boundedSource) leave() { <-s.places }

const (
	// callTimeout bounds one ordinary command. A Redis that stalls for longer is treated as away.
	callTimeout = 5 * time.Second
	// callerConns bounds the connections that enqueueing goroutines share; further callers wait for a free one.
	callerConns = 64
)
