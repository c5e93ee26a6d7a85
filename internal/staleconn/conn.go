package staleconn

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

// Conn is a connection that its Watch can give up. Like every connection of redigo, it is for one goroutine at a time;
// after SUBSCRIBE one may send while another receives.
type Conn struct {
	redis.Conn
	watch *Watch
	wire  net.Conn // nil: unknown
	epoch uint64
	lent  bool      // by a pool or source that does not know of the watch
	born  time.Time // when it was dialled by a watch that asks; zero: it was not
	// OnError is called with each error of a call, if it is not nil.
	OnError func(error)

	used   atomic.Int64          // when a reply came last, in ns since 1970
	pushed atomic.Bool           // it is subscribed: the server may send at any time
	broken atomic.Pointer[error] // why it is of no use; nil: it is
}

// infancy is how long a new connection is not given up because of an answer: while the address still leads to a
// replica, dialling again for each call would use up the ports of this machine.
const infancy = 100 * time.Millisecond

// heard looks at what a call returns, and returns it.
func (c *Conn) heard(reply any, err error) (any, error) {
	c.touch()
	if err != nil && answer.FromReplaced(err) && (c.born.IsZero() || time.Since(c.born) >= infancy) {
		c.broken.CompareAndSwap(nil, &err)
		c.watch.giveUp(c.epoch)
	}
	if err != nil && c.OnError != nil {
		c.OnError(err)
	}
	return reply, err
}

// Broken reports whether the server has answered that it cannot serve the connection any more, or has closed it.
func (c *Conn) Broken() bool { return c.broken.Load() != nil }

// Wire returns the network connection. Closing it ends calls under way.
func (c *Conn) Wire() net.Conn { return c.wire }

func (c *Conn) touch() { c.used.Store(time.Now().UnixNano()) }

// quiet is how long a connection must have idled before Err looks whether the server has closed it. Servers close
// connections after a second at the earliest.
const quiet = 200 * time.Millisecond

// Err implements redis.Conn. It also returns an error if the connection is given up, or closed by the server.
func (c *Conn) Err() error {
	if err := c.broken.Load(); err != nil {
		return *err
	}
	if c.epoch != c.watch.epoch.Load() {
		return ErrGivenUp
	}
	if err := c.Conn.Err(); err != nil {
		return err
	}
	if c.pushed.Load() || time.Now().UnixNano()-c.used.Load() <= int64(quiet) {
		return nil
	}
	err := closedByServer(c.wire)
	if err != nil {
		c.broken.CompareAndSwap(nil, &err)
	}
	return err
}

// Close implements redis.Conn.
func (c *Conn) Close() error {
	if c.lent && c.Err() != nil {
		discard(c.Conn)
	}
	return c.Conn.Close()
}

// discard makes a connection unusable, so that its pool does not keep it.
func discard(conn redis.Conn) {
	if d, ok := conn.(interface{ Discard() error }); ok {
		d.Discard() //nolint:errcheck // it is of no use any more
		return
	}
	// redigo closes the connection of a call that has no time left.
	ctx, cancel := context.WithDeadline(context.Background(), time.Unix(1, 0))
	defer cancel()
	redis.DoContext(conn, ctx, "PING") //nolint:errcheck // the context has ended
}

// blocks notes that a command waits in Redis, and unblocks that it does not any more.
func (c *Conn) blocks(cmd string) {
	if cmd == "BLPOP" {
		c.watch.blocked.Add(1)
	}
}

func (c *Conn) unblocks(cmd string) {
	if cmd == "BLPOP" {
		c.watch.blocked.Add(-1)
	}
}

// Do implements redis.Conn.
func (c *Conn) Do(cmd string, args ...any) (any, error) {
	c.blocks(cmd)
	defer c.unblocks(cmd)
	return c.heard(c.Conn.Do(cmd, args...))
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (c *Conn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	c.blocks(cmd)
	defer c.unblocks(cmd)
	return c.heard(redis.DoWithTimeout(c.Conn, timeout, cmd, args...))
}

// DoContext implements redis.ConnWithContext.
func (c *Conn) DoContext(ctx context.Context, cmd string, args ...any) (any, error) {
	c.blocks(cmd)
	defer c.unblocks(cmd)
	return c.heard(redis.DoContext(c.Conn, ctx, cmd, args...))
}

// Flush implements redis.Conn.
func (c *Conn) Flush() error {
	_, err := c.heard(nil, c.Conn.Flush())
	return err
}

// Send implements redis.Conn.
func (c *Conn) Send(cmd string, args ...any) error {
	if strings.EqualFold(cmd, "SUBSCRIBE") {
		c.pushed.Store(true)
	}
	return c.Conn.Send(cmd, args...)
}

// Receive implements redis.Conn.
func (c *Conn) Receive() (any, error) { return c.heard(c.Conn.Receive()) }

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (c *Conn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return c.heard(redis.ReceiveWithTimeout(c.Conn, timeout))
}

// ReceiveContext implements redis.ConnWithContext.
func (c *Conn) ReceiveContext(ctx context.Context) (any, error) {
	return c.heard(redis.ReceiveContext(c.Conn, ctx))
}
