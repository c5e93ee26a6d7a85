package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/staleconn"
)

// node is a connection to one node.
type node struct {
	redis.Conn
	addr string
	pool *nodePool
}

// nodePool holds the connections to one node.
type nodePool struct {
	*redis.Pool
	ctx     context.Context //nolint:containedctx // the life of the connections, those in use included
	abandon context.CancelCauseFunc
	served  atomic.Bool // the node has served slots; false for one that imports its first
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
	connect := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := dialer.DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(p.ctx, func() { c.Close() }) //nolint:contextcheck // outlives the call
		return &wire{c, stop}, nil
	}
	watch := staleconn.New(false) // the layout says which node is a master
	p.Pool = &redis.Pool{
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, s.limits.DialTimeout) // handshake included
			defer cancel()
			defer context.AfterFunc(p.ctx, cancel)() //nolint:contextcheck // either ends it
			c, err := watch.Dial(ctx, "tcp", addr, connect, s.opts...)
			if err != nil {
				return nil, err // not c, which is a nil *staleconn.Conn
			}
			return c, nil
		},
		MaxIdle:             max(idleConns, s.limits.PoolSize),
		IdleTimeout:         idleTimeout,
		TestOnBorrowContext: watch.Test(pingAfter, s.limits.DialTimeout),
	}
	return p
}

// wire is a network connection that is closed when its pool is abandoned.
type wire struct {
	net.Conn
	forget func() bool // makes the pool forget it
}

// NetConn returns the connection that w wraps.
func (w *wire) NetConn() net.Conn { return w.Conn }

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

// watch watches a call to a node until stop is called. Calls to a frozen or unreachable node do not end by themselves:
// when one takes long, watch asks the other nodes for the layout, and once the node serves no slot any more, all its
// connections are closed, which ends their calls.
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

// suspect handles a failed connection to a node: its idle connections may be dead as well, and the node may have lost
// its slots.
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
