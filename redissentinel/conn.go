package redissentinel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/FZambia/sentinel/v2"
	"github.com/gomodule/redigo/redis"
)

// conn is a connection to a server that was the master when it was dialled. When the server turns out to be no longer
// the master, all connections to it count as broken.
type conn struct {
	redis.Conn
	src     *source
	addr    string
	wire    net.Conn  // below Conn; closing it ends calls under way
	checked time.Time // when the server last said that it is the master
	broken  error
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

// checkError gives the connection up after an error that makes it useless. It returns its arguments.
func (c *conn) checkError(reply any, err error) (any, error) {
	var answer redis.Error
	var network net.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
	case errors.As(err, &answer):
		if demoted(string(answer)) {
			c.broken = err
			c.src.failed(c)
		}
	case errors.As(err, &network) && network.Timeout(): // other calls may have more time
	default:
		c.src.failed(c)
	}
	return reply, err
}

// demoted reports whether an error is that of a server that has become a replica. In scripts, older versions put other
// text in front.
func demoted(text string) bool {
	return strings.HasPrefix(text, "READONLY ") || strings.Contains(text, "-READONLY ") ||
		strings.HasPrefix(text, "UNBLOCKED ") ||
		strings.HasPrefix(text, "MASTERDOWN ")
}

// Err implements redis.Conn.
func (c *conn) Err() error {
	if c.broken != nil {
		return c.broken
	}
	return c.Conn.Err()
}

// Close implements redis.Conn.
func (c *conn) Close() error {
	c.src.forget(c)
	return c.Conn.Close()
}

// Do implements redis.Conn.
func (c *conn) Do(cmd string, args ...any) (any, error) { return c.checkError(c.Conn.Do(cmd, args...)) }

// DoWithTimeout implements redis.ConnWithTimeout.
func (c *conn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	return c.checkError(redis.DoWithTimeout(c.Conn, timeout, cmd, args...))
}

// DoContext implements redis.ConnWithContext.
func (c *conn) DoContext(ctx context.Context, cmd string, args ...any) (any, error) {
	return c.checkError(redis.DoContext(c.Conn, ctx, cmd, args...))
}

// Flush implements redis.Conn.
func (c *conn) Flush() error {
	_, err := c.checkError(nil, c.Conn.Flush())
	return err
}

// Receive implements redis.Conn.
func (c *conn) Receive() (any, error) { return c.checkError(c.Conn.Receive()) }

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (c *conn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return c.checkError(redis.ReceiveWithTimeout(c.Conn, timeout))
}

// ReceiveContext implements redis.ConnWithContext.
func (c *conn) ReceiveContext(ctx context.Context) (any, error) {
	return c.checkError(redis.ReceiveContext(c.Conn, ctx))
}
