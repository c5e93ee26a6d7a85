// Package clientconn makes connections of another Redis library, out of the pool that a program has of it, look like
// those of redigo, which package redisstore uses.
package clientconn

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

// Client is the program's own client of another library. It is called concurrently.
type Client interface {
	// Node returns the server that has key.
	Node(ctx context.Context, key string) (Node, error)
	// NodeAt returns the node of a cluster at addr, which another one has named for key.
	NodeAt(ctx context.Context, key, addr string) (Node, error)
	// Moved is called when the node at addr has the slot of key now.
	Moved(ctx context.Context, key, addr string)
	// Cluster reports whether the client follows a cluster.
	Cluster() bool
}

// Node is one server of a Client. It is called concurrently.
type Node interface {
	// Addr is as the nodes of a cluster write it.
	Addr() string
	// Take takes a connection out of the program's pool.
	Take(ctx context.Context) (Wire, error)
	// Wait returns a connection for commands that block.
	Wait(ctx context.Context) (Wire, error)
	// Subscribe returns a connection for messages.
	Subscribe(ctx context.Context) (Subscription, error)
}

// Subscription is a connection of redigo for SUBSCRIBE, UNSUBSCRIBE and PING, on which one goroutine may send while
// another receives.
type Subscription interface {
	Send(cmd string, args ...any) error
	Flush() error
	// ReceiveWithTimeout waits without a limit if timeout is 0.
	ReceiveWithTimeout(timeout time.Duration) (any, error)
	ReceiveContext(ctx context.Context) (any, error)
	Err() error
	Close() error
}

// Wire is a connection of the other library that one caller has for itself.
type Wire interface {
	// Do sends the commands in one request, never a second time, and returns their replies as redigo has them, with
	// a redis.Error where Redis refused one. It returns an error when ctx ends, or after limit unless that is 0, or
	// when the connection breaks: then the caller discards the Wire.
	Do(ctx context.Context, limit time.Duration, cmds []Command) (replies []any, err error)
	// Release gives the connection back to the pool.
	Release()
	// Discard closes the connection, also while a Do is under way.
	Discard()
}

// Command is a command with its arguments, each a string or a []byte.
type Command struct {
	Name string
	Args []any
}

// is reports whether the command has this name, which is given in upper case.
func (c Command) is(name string) bool { return strings.EqualFold(c.Name, name) }

func (c Command) blocks() bool {
	switch strings.ToUpper(c.Name) {
	case "BLPOP", "BRPOP", "BLMOVE", "BZPOPMIN", "BZPOPMAX":
		return true
	}
	return false
}

// callTimeout bounds calls that bring no time-out of their own. It is longer than any wait of the store: a blocking
// command of 5 s and 5 s for its answer.
const callTimeout = 30 * time.Second

// dialTimeout bounds taking or making the connection that a command needs in place of the present one.
const dialTimeout = 5 * time.Second

// Conn is a redigo connection over connections of another library. A command that blocks moves it to a connection
// outside of the pool, SUBSCRIBE to one for messages; there it stays. Commands that a node of a cluster refuses because
// of their slot go on to the node that has the slot; no command is repeated for any other reason, and none within a
// transaction. Only one goroutine may use a Conn at a time; after SUBSCRIBE one may send while another receives.
type Conn struct {
	client  Client
	key     string
	node    Node
	wire    Wire
	waiting bool         // wire is one of Node.Wait
	sub     Subscription // nil before SUBSCRIBE

	sent    []Command // commands that wait for Flush
	flushed []Command // commands that the next Receive sends
	replies []any     // to flushed commands that were sent
	multi   bool      // within a transaction
	err     error
}

// wait is how long to wait for a reply: until ctx ends, if it is not nil; else for limit, if that is not negative;
// else for callTimeout.
type wait struct {
	ctx   context.Context
	limit time.Duration
}

func (w wait) bounds() (context.Context, time.Duration) {
	switch {
	case w.ctx != nil:
		return w.ctx, callTimeout
	case w.limit >= 0:
		return context.Background(), w.limit
	}
	return context.Background(), callTimeout
}

// Do implements redis.Conn.
func (c *Conn) Do(cmd string, args ...any) (any, error) { return c.do(wait{limit: -1}, cmd, args) }

// DoWithTimeout implements redis.ConnWithTimeout. The timeout starts again when the command is sent to another node.
func (c *Conn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	return c.do(wait{limit: timeout}, cmd, args)
}

// DoContext implements redis.ConnWithContext.
//
//nolint:contextcheck // wait carries it
func (c *Conn) DoContext(ctx context.Context, cmd string, args ...any) (any, error) {
	return c.do(wait{ctx: ctx}, cmd, args)
}

// do sends what is buffered, and one command more unless its name is empty. As redigo's Do, it returns the last reply
// and the first error, or all replies if the name is empty.
func (c *Conn) do(w wait, name string, args []any) (any, error) {
	if c.sub != nil {
		return nil, errMessageOnly
	}
	if name != "" {
		if err := c.Send(name, args...); err != nil {
			return nil, err
		}
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	if err := c.exchange(w); err != nil {
		return nil, err
	}
	replies := c.replies
	c.replies = nil
	if name == "" {
		return replies, nil
	}
	for _, reply := range replies {
		if err := asError(reply); err != nil {
			return replies[len(replies)-1], err
		}
	}
	return replies[len(replies)-1], nil
}

// Send implements redis.Conn.
func (c *Conn) Send(cmd string, args ...any) error {
	if c.err != nil {
		return c.err
	}
	if c.sub == nil && strings.EqualFold(cmd, "SUBSCRIBE") {
		if err := c.subscribe(); err != nil {
			return err
		}
	}
	if c.sub != nil {
		return c.sub.Send(cmd, args...)
	}
	c.sent = append(c.sent, Command{cmd, plain(args)})
	return nil
}

// Flush implements redis.Conn. The commands are sent by the next call that waits for replies, as it knows for how long.
func (c *Conn) Flush() error {
	if c.err != nil {
		return c.err
	}
	if c.sub != nil {
		return c.sub.Flush()
	}
	c.flushed = append(c.flushed, c.sent...)
	c.sent = nil
	return nil
}

// Receive implements redis.Conn.
func (c *Conn) Receive() (any, error) { return c.receive(wait{limit: -1}) }

// ReceiveWithTimeout implements redis.ConnWithTimeout.
func (c *Conn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return c.receive(wait{limit: timeout})
}

// ReceiveContext implements redis.ConnWithContext.
//
//nolint:contextcheck // wait carries it
func (c *Conn) ReceiveContext(ctx context.Context) (any, error) { return c.receive(wait{ctx: ctx}) }

func (c *Conn) receive(w wait) (any, error) {
	if c.sub != nil {
		if w.ctx != nil {
			return c.sub.ReceiveContext(w.ctx)
		}
		return c.sub.ReceiveWithTimeout(max(w.limit, 0))
	}
	if len(c.replies) == 0 {
		if len(c.flushed) == 0 && c.err == nil {
			return nil, errors.New("clientconn: Receive without a command that was sent")
		}
		if err := c.exchange(w); err != nil {
			return nil, err
		}
	}
	reply := c.replies[0]
	c.replies = c.replies[1:]
	if err := asError(reply); err != nil {
		return nil, err
	}
	return reply, nil
}

// errMessageOnly is the error of a command that waits for its reply, after SUBSCRIBE.
var errMessageOnly = errors.New("clientconn: expected Send and Receive: the connection is for messages")

// asError returns a reply that is an error.
func asError(reply any) error {
	err, _ := reply.(error)
	return err
}

// exchange sends the flushed commands and appends their replies.
func (c *Conn) exchange(w wait) error {
	if c.err != nil {
		return c.err
	}
	cmds := c.flushed
	c.flushed = nil
	if len(cmds) == 0 {
		return nil
	}
	ctx, limit := w.bounds()
	if err := ctx.Err(); err != nil {
		return c.fatal(err)
	}
	if !c.waiting && cmds[len(cmds)-1].blocks() {
		if err := c.moveToWait(ctx); err != nil {
			return err
		}
	}
	replies, err := c.wire.Do(ctx, limit, cmds)
	if err != nil {
		return c.fatal(err)
	}
	for i, cmd := range cmds {
		refused, _ := replies[i].(redis.Error)
		c.heed(refused)
		if refused == "" || c.multi || !c.client.Cluster() {
			c.track(cmd.Name, refused == "")
			continue
		}
		if err := c.follow(w, cmds[i:], replies[i:]); err != nil {
			return err
		}
	}
	c.replies = append(c.replies, replies...)
	return nil
}

// moveToWait exchanges the connection of the pool for one on which commands may block.
func (c *Conn) moveToWait(ctx context.Context) error {
	c.leavePool()
	wire, err := c.node.Wait(ctx)
	if err != nil {
		c.err = err
		return err
	}
	c.wire, c.waiting = wire, true
	return nil
}

// subscribe exchanges the connection of the pool for one that receives messages.
func (c *Conn) subscribe() error {
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	c.leavePool()
	sub, err := c.node.Subscribe(ctx)
	if err != nil {
		c.err = err
		return err
	}
	c.sub = sub
	return nil
}

// leavePool gives the connection back.
func (c *Conn) leavePool() {
	if c.multi {
		c.wire.Discard() // its next user would be in the transaction
	} else {
		c.wire.Release()
	}
	c.wire, c.multi = nil, false
}

// track notes whether the connection is within a transaction.
func (c *Conn) track(name string, ok bool) {
	switch strings.ToUpper(name) {
	case "MULTI":
		c.multi = ok
	case "EXEC", "DISCARD":
		c.multi = false
	}
}

// heed gives the connection up when Redis answers that it leads to a replica: a master that was replaced. The pool must
// not hand it out again.
func (c *Conn) heed(err redis.Error) {
	if answer.FromReplaced(err) {
		c.err = err
	}
}

// fatal closes the connection after an error, and returns that.
func (c *Conn) fatal(err error) error {
	c.err = err
	c.wire.Discard()
	c.wire = nil
	return err
}

// Err implements redis.Conn.
func (c *Conn) Err() error {
	if c.err == nil && c.sub != nil {
		return c.sub.Err()
	}
	return c.err
}

// errClosed is the error of a connection that was closed.
var errClosed = errors.New("clientconn: the connection is closed")

// Close gives the connection back to the program's pool, unless it is broken or within a transaction.
func (c *Conn) Close() error {
	if c.sub == nil && c.err == nil {
		c.sent, c.flushed = nil, append(c.flushed, c.sent...)
		c.exchange(wait{limit: dialTimeout}) //nolint:errcheck // redigo's Close sends what is buffered too
	}
	if c.err != nil || c.sub != nil {
		return c.Discard()
	}
	c.leavePool()
	c.err = errClosed
	return nil
}

// Discard closes the network connection in place of giving it back to the program's pool. It does nothing on a
// connection that is closed.
func (c *Conn) Discard() error {
	if c.err == nil {
		c.err = errClosed
	}
	if c.wire != nil {
		c.wire.Discard()
		c.wire = nil
	}
	if sub := c.sub; sub != nil {
		return sub.Close()
	}
	return nil
}
