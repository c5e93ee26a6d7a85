package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/staleconn"
	"github.com/godelayed/delayed/internal/wire"
)

// Source has the methods of delayed.Source, which documents them.
type Source interface {
	Conn(ctx context.Context, key string) (redis.Conn, error)
	Slot(key string) int
	Close() error
}

// Connect takes a connection out of a source.
func Connect(ctx context.Context, src Source, key string) (redis.Conn, error) {
	conn, err := src.Conn(ctx, key)
	if err == nil && wire.IsNil(conn) {
		return nil, fmt.Errorf("the Conn of a %T has returned neither a connection nor an error: expected one of them",
			Unwrap(src))
	}
	return conn, err
}

// WatchedSource gives up the connections of a source that does not follow a fail-over by itself.
type WatchedSource struct {
	Source
	watch *staleconn.Watch
}

// follower is a source that follows a fail-over by itself: what it hands out leads to a server that accepts writes.
type follower interface{ FollowsFailovers() bool }

// Watch returns src as one whose connections are given up when their server cannot serve them any more.
func Watch(src Source) Source {
	f, ok := src.(follower)
	if ok && f.FollowsFailovers() || src.Slot("0") != src.Slot("1") {
		return src
	}
	return &WatchedSource{src, staleconn.New(true)}
}

// Unwrap returns the source that a program has given.
func Unwrap(src Source) Source {
	for {
		switch s := src.(type) {
		case *BoundedSource:
			src = s.Source
		case *WatchedSource:
			src = s.Source
		default:
			return src
		}
	}
}

// staleTries bounds how many connections are given up for one call. A pool may hold some that lead to an old master;
// but while the address itself leads to a replica, each try dials.
const staleTries = 30

// Conn takes a connection out of the source.
func (s *WatchedSource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	for try := 1; ; try++ {
		conn, err := Connect(ctx, s.Source, key)
		if err != nil {
			return nil, err
		}
		lent, err := s.watch.Lend(ctx, conn, CallTimeout)
		if err == nil {
			return lent, nil
		}
		var network net.Error
		if late := errors.As(err, &network) && network.Timeout(); late || try == staleTries || ctx.Err() != nil {
			return nil, err
		}
	}
}

// Watched reports whether a change of the server would be noticed without borrowing connections.
func (s *WatchedSource) Watched() bool { return s.watch.Watched() }

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
