package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Source has the methods of delayed.Source, which documents them.
type Source interface {
	Conn(ctx context.Context, key string) (redis.Conn, error)
	Slot(key string) int
	Close() error
}

// BoundedSource bounds how many calls use a source at a time.
type BoundedSource struct {
	Source
	Places chan struct{}
}

// acquire waits for a free place.
func (s *BoundedSource) acquire(ctx context.Context) error {
	select {
	case s.Places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("delayed: waiting for a connection to Redis: %w", context.Cause(ctx))
	}
}

func (s *BoundedSource) release() { <-s.Places }

const (
	// CallTimeout bounds one ordinary command. A Redis that stalls for longer is treated as away.
	CallTimeout = 5 * time.Second
	// CallerConns bounds the connections that enqueueing goroutines share; further callers wait for a free one.
	CallerConns = 64
)
