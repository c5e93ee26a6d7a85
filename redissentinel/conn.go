package redissentinel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/FZambia/sentinel/v2"
	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/staleconn"
)

// conn is a connection to a server that was the master when it was dialled. When the server turns out to be no longer
// the master, all connections to it count as broken.
type conn struct {
	*staleconn.Conn
	src     *source
	addr    string
	checked time.Time // when the server last said that it is the master
}

// checkRole returns an error if the server is not the master.
func (c *conn) checkRole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.src.limits.DialTimeout)
	defer cancel()
	ok, err := sentinel.TestRole(withContext{c.Conn, ctx}, "master")
	if err != nil {
		return fmt.Errorf("ROLE: %w", err)
	}
	if !ok {
		return errors.New("this server is a replica now: a fail-over is under way, or the Sentinels do not agree")
	}
	c.checked = time.Now()
	return nil
}

// withContext is a connection whose Do ends with a context.
type withContext struct {
	redis.Conn
	ctx context.Context
}

func (c withContext) Do(cmd string, args ...any) (any, error) {
	return redis.DoContext(c.Conn, c.ctx, cmd, args...)
}

// failed gives up the connections to the server after an error that makes them useless.
func (c *conn) failed(err error) {
	var answer redis.Error
	var network net.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case errors.As(err, &answer):
		if c.Broken() {
			c.src.failed(c)
		}
	case errors.As(err, &network) && network.Timeout(): // other calls may have more time
	default:
		c.src.failed(c)
	}
}

// Close implements redis.Conn.
func (c *conn) Close() error {
	c.src.forget(c)
	return c.Conn.Close()
}
