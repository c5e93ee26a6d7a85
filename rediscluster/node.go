package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/idleconn"
)

// node is a connection to one node.
type node struct {
	redis.Conn
	addr string
	pool *nodePool
}

// nodePool is the connections to one node.
type nodePool struct {
	*redis.Pool
	ctx     context.Context //nolint:containedctx // the life of the connections, those in use included
	abandon context.CancelCauseFunc
	served  atomic.Bool // the node has served slots; one that imports its first ones has not
}

// errReplaced says why the connections to a node were closed.
var errReplaced = errors.New("it has not answered, and other nodes serve its slots now")

// dial takes a connection to a node out of its pool.
func (s *source) dial(ctx context.Context, addr string) (*node, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	pool := s.pools[addr]
	if pool == nil {
		pool = s.newPool(addr)
		pool.served.Store(s.layout.serves(addr))
		s.pools[addr] = pool
	}
	s.mu.Unlock()
	defer s.watch(addr, pool)() //nolint:contextcheck // it watches the node for all
	rc, err := pool.GetContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("node %s of the cluster: %w", addr, pool.explain(err))
	}
	return &node{rc, addr, pool}, nil
}

func (s *source) newPool(addr string) *nodePool {
	p := &nodePool{}
	p.ctx, p.abandon = context.WithCancelCause(context.Background())
	dialer := &net.Dialer{Timeout: s.limits.DialTimeout}
	opts := slices.Concat(s.opts, []redis.DialOption{redis.DialContextFunc(
		func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &wire{c, context.AfterFunc(p.ctx, func() { c.Close() })}, nil //nolint:contextcheck // outlives the call
		})})
	p.Pool = &redis.Pool{
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, s.limits.DialTimeout) // with what introduces it
			defer cancel()
			defer context.AfterFunc(p.ctx, cancel)() //nolint:contextcheck // either ends it
			return redis.DialContext(ctx, "tcp", addr, opts...)
		},
		MaxIdle:             max(idleConns, s.limits.PoolSize),
		IdleTimeout:         idleTimeout,
		TestOnBorrowContext: idleconn.Check(pingAfter, s.limits.DialTimeout),
	}
	return p
}

// wire is a network connection that is closed when its pool is abandoned.
type wire struct {
	net.Conn
	forget func() bool // makes the pool forget it
}

func (w *wire) Close() error {
	w.forget()
	return w.Conn.Close()
}

// explain returns err, with the reason if it came because the pool was abandoned.
func (p *nodePool) explain(err error) error {
	if err == nil || p.ctx.Err() == nil {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(p.ctx), err)
}

// watch looks after a call to a node until the function that it returns is called. A frozen node does not end calls,
// nor do nodes that cannot be reached: when the call takes long, the other nodes are asked for the layout, and once the
// node serves no slot any more all its connections are closed, which ends their calls.
func (s *source) watch(addr string, p *nodePool) (stop func()) {
	over := make(chan struct{})
	timer := time.AfterFunc(slowAfter, func() {
		for {
			s.layout.doubt(addr)
			if s.layout.refresh(context.Background()) == nil && p.served.Load() && !s.layout.serves(addr) {
				p.abandon(errReplaced)
				return
			}
			select {
			case <-time.After(askAgain):
			case <-over:
				return
			}
		}
	})
	return func() {
		if !timer.Stop() {
			close(over)
		}
	}
}

// suspect is told that a connection to a node has failed: the others that idle may be dead as well, and the node may
// have lost its slots.
func (s *source) suspect(n *node) {
	s.mu.Lock()
	if s.pools[n.addr] == n.pool {
		delete(s.pools, n.addr)
	}
	s.mu.Unlock()
	n.pool.Close()
	s.layout.refreshSoon()
}

// retain closes the pools of the nodes that do not serve slots any more.
func (s *source) retain(serving map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for addr, pool := range s.pools {
		if serving[addr] {
			pool.served.Store(true)
			continue
		}
		delete(s.pools, addr)
		pool.Close()
	}
}
