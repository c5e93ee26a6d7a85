package rueidis

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/godelayed/delayed/internal/clientconn"
)

const (
	// takeTimeout bounds the wait for a connection of the pool.
	takeTimeout = 5 * time.Second
	// pingAfter is how long after the last reply of a server a connection to it must first answer a PING.
	pingAfter = 10 * time.Second
)

// node is one server.
type node struct {
	addr   string
	client rueidis.Client
	// answered is when the server last answered, in Unix ns; 0 after a failure. rueidis reports that it cannot connect
	// only as the error of a command, which then may have been sent as far as anybody knows. A PING finds it out.
	answered atomic.Int64
	failed   func() // called when the server does not answer; may be nil
}

func newNode(addr string, client rueidis.Client) *node { return &node{addr: addr, client: client} }

// Addr implements clientconn.Node.
func (n *node) Addr() string { return n.addr }

// Take implements clientconn.Node.
func (n *node) Take(ctx context.Context) (clientconn.Wire, error) {
	w, err := n.dedicate(ctx)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Wait implements clientconn.Node.
func (n *node) Wait(ctx context.Context) (clientconn.Wire, error) { return n.Take(ctx) }

// Subscribe implements clientconn.Node.
func (n *node) Subscribe(ctx context.Context) (clientconn.Subscription, error) {
	w, err := n.dedicate(ctx)
	if err != nil {
		return nil, err
	}
	return newSubscription(w), nil
}

func (n *node) dedicate(ctx context.Context) (*wire, error) {
	ctx, cancel := context.WithTimeout(ctx, takeTimeout)
	defer cancel()
	taken := make(chan *wire)
	go func() { // rueidis waits for a free connection without a context
		client, release := n.client.Dedicate()
		w := &wire{node: n, client: client, release: release}
		select {
		case taken <- w:
		case <-ctx.Done():
			release()
		}
	}()
	var w *wire
	select {
	case w = <-taken:
	case <-ctx.Done():
		return nil, fmt.Errorf("delayed: the pool of the program's rueidis client has all its connections in use, or "+
			"its server does not answer: expected a free one: raise BlockingPoolSize, or end other uses sooner: %w",
			ctx.Err())
	}
	if time.Since(time.Unix(0, n.answered.Load())) > pingAfter {
		replies, err := w.Do(ctx, takeTimeout, []clientconn.Command{{Name: "PING"}})
		if err == nil {
			if refused, ok := replies[0].(redis.Error); ok {
				err = refused // such as a wrong password
			}
		}
		if err != nil {
			w.Discard()
			return nil, err
		}
	}
	return w, nil
}

// wire is a connection of the client's pool.
type wire struct {
	node    *node
	client  rueidis.DedicatedClient
	release func()
}

// untilDeadline is a context that only has a deadline: with it, rueidis uses the connection without goroutines of its
// own. Discard ends the call when the context is canceled.
type untilDeadline struct {
	context.Context //nolint:containedctx // it is one
	deadline        time.Time
}

// Deadline implements context.Context.
func (c untilDeadline) Deadline() (time.Time, bool) { return c.deadline, !c.deadline.IsZero() }

// Done implements context.Context.
func (untilDeadline) Done() <-chan struct{} { return nil }

// Err implements context.Context.
func (untilDeadline) Err() error { return nil }

// Do implements clientconn.Wire.
func (w *wire) Do(ctx context.Context, limit time.Duration, cmds []clientconn.Command) ([]any, error) {
	until := untilDeadline{Context: context.WithoutCancel(ctx)}
	if limit > 0 {
		until.deadline = time.Now().Add(limit)
	}
	if deadline, ok := ctx.Deadline(); ok && (until.deadline.IsZero() || deadline.Before(until.deadline)) {
		until.deadline = deadline
	}
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, w.Discard)()
	}
	replies := make([]any, len(cmds))
	var err error
	if len(cmds) == 1 {
		replies[0], err = value(w.client.Do(until, w.build(cmds[0]))) //nolint:contextcheck // it has a limit of its own
	} else {
		sent := make([]rueidis.Completed, len(cmds))
		for i, cmd := range cmds {
			sent[i] = w.build(cmd)
		}
		for i, result := range w.client.DoMulti(until, sent...) { //nolint:contextcheck // see above
			if replies[i], err = value(result); err != nil {
				break
			}
		}
	}
	if err != nil {
		if w.node.answered.Store(0); w.node.failed != nil && ctx.Err() == nil {
			w.node.failed()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	w.node.answered.Store(time.Now().UnixNano())
	return replies, nil
}

// build makes a command of rueidis. It counts as one that blocks, so that only our deadlines end it and Discard does
// not wait for replies.
func (w *wire) build(cmd clientconn.Command) rueidis.Completed {
	return w.client.B().Arbitrary(cmd.Name).Args(texts(cmd.Args)...).Blocking()
}

func texts(args []any) []string {
	out := make([]string, len(args))
	for i, arg := range args {
		if text, ok := arg.([]byte); ok {
			out[i] = rueidis.BinaryString(text)
		} else {
			out[i], _ = arg.(string)
		}
	}
	return out
}

// Release implements clientconn.Wire.
func (w *wire) Release() { w.release() }

// Discard implements clientconn.Wire. It waits for nothing: with RESP2, rueidis connects anew before it has closed a
// connection.
func (w *wire) Discard() { go w.client.Close() }
