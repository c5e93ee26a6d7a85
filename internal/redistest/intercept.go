package redistest

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Source hands out connections; it is a delayed.Source.
type Source interface {
	Conn(ctx context.Context, key string) (redis.Conn, error)
	Slot(key string) int
	Close() error
}

// Intercept returns a source whose connections hand each command to do, together with what sends it to Redis.
// Subscriptions and what is sent in a pipeline go past do.
func Intercept(src Source, do func(cmd string, args []any, send func() (any, error)) (any, error)) Source {
	return &intercepted{src, do}
}

type intercepted struct {
	Source
	do func(cmd string, args []any, send func() (any, error)) (any, error)
}

func (s *intercepted) Conn(ctx context.Context, key string) (redis.Conn, error) {
	c, err := s.Source.Conn(ctx, key)
	if err != nil {
		return nil, err
	}
	return &interceptedConn{c, s}, nil
}

type interceptedConn struct {
	redis.Conn
	s *intercepted
}

func (c *interceptedConn) Do(cmd string, args ...any) (any, error) {
	return c.s.do(cmd, args, func() (any, error) { return c.Conn.Do(cmd, args...) })
}

func (c *interceptedConn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	return c.s.do(cmd, args, func() (any, error) { return redis.DoWithTimeout(c.Conn, timeout, cmd, args...) })
}

func (c *interceptedConn) DoContext(ctx context.Context, cmd string, args ...any) (any, error) {
	return c.s.do(cmd, args, func() (any, error) { return redis.DoContext(c.Conn, ctx, cmd, args...) })
}

func (c *interceptedConn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, timeout)
}

func (c *interceptedConn) ReceiveContext(ctx context.Context) (any, error) {
	return redis.ReceiveContext(c.Conn, ctx)
}
