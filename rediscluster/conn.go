package rediscluster

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// conn is a connection for the keys of one slot, which it follows from node to node. A node that refuses a command
// because of its slot has carried out no part of it, so sending it to the next node does not run it twice; conn repeats
// no command for any other reason. A WAIT right behind a command goes with it, on the same connection. Transactions are
// not redirected. Only one goroutine may use a conn at a time; after SUBSCRIBE one may send while another receives.
type conn struct {
	src  *source
	slot int
	node *node

	sent []command // commands whose replies are still to come
	// waited is the answer to a WAIT that followed a redirected command. It replaces the meaningless one of the old
	// node.
	waited *answer
	multi  bool // within a transaction
	// pushed is set by SUBSCRIBE: from then on replies are messages, and one goroutine may send while another receives.
	pushed bool
}

type command struct {
	name string
	args []any
}

type answer struct {
	reply any
	err   error
}

// blocks reports whether the command waits on purpose, so that a late answer does not mean that the node is slow.
func (c command) blocks() bool { return strings.EqualFold(c.name, "BLPOP") }

// wait says how long to wait for a reply: until ctx ends, if it is not nil; else for limit, if that is not negative;
// else for readTimeout.
type wait struct {
	ctx   context.Context
	limit time.Duration
}

func (w wait) do(n *node, cmd command) (any, error) {
	switch {
	case w.ctx != nil:
		return redis.DoContext(n.Conn, w.ctx, cmd.name, cmd.args...)
	case w.limit >= 0:
		return redis.DoWithTimeout(n.Conn, w.limit, cmd.name, cmd.args...)
	}
	return n.Do(cmd.name, cmd.args...)
}

func (w wait) receive(n *node) (any, error) {
	switch {
	case w.ctx != nil:
		return redis.ReceiveContext(n.Conn, w.ctx)
	case w.limit >= 0:
		return redis.ReceiveWithTimeout(n.Conn, w.limit)
	}
	return n.Receive()
}

func (w wait) context() context.Context {
	if w.ctx != nil {
		return w.ctx
	}
	return context.Background()
}

// Do implements redis.Conn.
func (c *conn) Do(cmd string, args ...any) (any, error) { return c.do(wait{limit: -1}, cmd, args) }

// DoWithTimeout implements redis.ConnWithTimeout. The timeout starts again when the command is sent to another node.
func (c *conn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	return c.do(wait{limit: timeout}, cmd, args)
}

// DoContext implements redis.ConnWithContext.
//
//nolint:contextcheck // wait carries it; who watches the node does so for all
func (c *conn) DoContext(ctx context.Context, cmd string, args ...any) (any, error) {
	return c.do(wait{ctx: ctx}, cmd, args)
}

func (c *conn) do(w wait, name string, args []any) (any, error) {
	if name == "" || len(c.sent) > 0 {
		return c.drain(w, name, args)
	}
	cmd := command{name, args}
	reply, err := c.doOn(w, c.node, cmd)
	return c.redirect(w, cmd, reply, err)
}

// doOn sends one command to a node and returns the answer.
func (c *conn) doOn(w wait, n *node, cmd command) (any, error) {
	if !cmd.blocks() {
		defer c.src.watch(n.addr, n.pool)()
	}
	reply, err := w.do(n, cmd)
	return reply, n.pool.explain(err)
}

// drain sends the buffered commands, and one more unless its name is empty, and receives all replies. As redigo's Do,
// it returns the last reply and the first error, or all replies if the name is empty.
func (c *conn) drain(w wait, name string, args []any) (any, error) {
	if name != "" {
		if err := c.Send(name, args...); err != nil {
			return nil, err
		}
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	replies := make([]any, 0, len(c.sent))
	var first error
	for len(c.sent) > 0 {
		reply, err := c.receive(w)
		if err != nil {
			var answer redis.Error
			if !errors.As(err, &answer) {
				return nil, err
			}
			if reply = answer; first == nil {
				first = err
			}
		}
		replies = append(replies, reply)
	}
	if name == "" {
		return replies, nil
	}
	return replies[len(replies)-1], first
}

// Send implements redis.Conn.
func (c *conn) Send(cmd string, args ...any) error {
	if err := c.node.Send(cmd, args...); err != nil {
		c.failed(c.node, err)
		return err
	}
	if !c.pushed {
		if c.pushed = strings.EqualFold(cmd, "SUBSCRIBE"); !c.pushed {
			c.sent = append(c.sent, command{cmd, args})
		}
	}
	return nil
}

// Flush implements redis.Conn.
func (c *conn) Flush() error {
	err := c.node.Flush()
	if err != nil {
		c.failed(c.node, err)
	}
	return err
}

// Receive implements redis.Conn.
func (c *conn) Receive() (any, error) { return c.receive(wait{limit: -1}) }

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (c *conn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return c.receive(wait{limit: timeout})
}

// ReceiveContext implements redis.ConnWithContext.
//
//nolint:contextcheck // wait carries it; who watches the node does so for all
func (c *conn) ReceiveContext(ctx context.Context) (any, error) {
	return c.receive(wait{ctx: ctx})
}

func (c *conn) receive(w wait) (any, error) {
	if len(c.sent) > 0 && !c.sent[0].blocks() {
		defer c.src.watch(c.node.addr, c.node.pool)()
	}
	reply, err := w.receive(c.node)
	err = c.node.pool.explain(err)
	if len(c.sent) == 0 {
		// A message of a subscription: nothing was sent for it.
		if err != nil {
			c.failed(c.node, err)
		}
		return reply, err
	}
	cmd := c.sent[0]
	c.sent = c.sent[1:]
	if a := c.waited; a != nil {
		c.waited = nil
		return a.reply, a.err
	}
	return c.redirect(w, cmd, reply, err)
}

// Err implements redis.Conn.
func (c *conn) Err() error { return c.node.Err() }

// Close implements redis.Conn.
func (c *conn) Close() error { return c.node.Close() }
