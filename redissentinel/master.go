package redissentinel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/gomodule/redigo/redis"
)

// errSuperseded says that a connection leads to a server that is no longer the master.
var errSuperseded = errors.New("another server has become the master meanwhile")

// newPool returns a pool of connections to the master.
func (s *source) newPool() *redis.Pool {
	return &redis.Pool{
		DialContext: func(ctx context.Context) (redis.Conn, error) {
			c, err := s.connect(ctx)
			if errors.Is(err, errSuperseded) {
				c, err = s.connect(ctx)
			}
			if err != nil {
				return nil, err // not c, which is a nil *conn
			}
			return c, nil
		},
		MaxIdle:     max(idleConns, s.limits.PoolSize),
		IdleTimeout: idleTimeout,
		TestOnBorrowContext: func(ctx context.Context, c redis.Conn, _ time.Time) error {
			if c, ok := c.(*conn); ok && time.Since(c.checked) >= roleAfter {
				return c.checkRole(ctx)
			}
			return c.Err()
		},
	}
}

// connect connects to the last known master, or else to the one that the Sentinels name now.
func (s *source) connect(ctx context.Context) (*conn, error) {
	s.mu.Lock()
	believed := s.addr
	s.mu.Unlock()
	var gone error
	if believed != "" {
		c, err := s.dial(ctx, believed, believed, 0)
		if err == nil || ctx.Err() != nil || errors.Is(err, errSuperseded) {
			return c, err
		}
		gone = err
	}
	addr, err := s.sentinels.master(ctx)
	if err != nil {
		return nil, errors.Join(gone, err)
	}
	if addr == believed {
		s.sentinels.distrust()
		return nil, gone
	}
	c, err := s.dial(ctx, addr, believed, 0)
	if err != nil && ctx.Err() == nil {
		s.sentinels.distrust()
	}
	return c, err
}

// dial connects to a server. It returns an error unless that is the master, and if another master than believed has
// been found meanwhile.
func (s *source) dial(ctx context.Context, addr, believed string, epoch int64) (*conn, error) {
	c := &conn{src: s, addr: addr}
	dialer := &net.Dialer{Timeout: s.limits.DialTimeout}
	var err error
	if c.Conn, err = s.watch.Dial(ctx, "tcp", addr, dialer.DialContext, s.opts...); err == nil {
		c.OnError = c.failed
		if err = c.checkRole(ctx); err == nil {
			err = s.adopt(c, believed, epoch)
		}
		if err != nil {
			c.Conn.Close() //nolint:contextcheck // it sends nothing
		}
	}
	if err != nil {
		return nil, fmt.Errorf("master %s at %s: %w", s.sentinels.name, addr, err)
	}
	return c, nil
}

// adopt adds a connection, whose server becomes the master. If another server was the master before, adopt closes all
// connections to it, because it may still accept commands, which would be lost.
func (s *source) adopt(c *conn, believed string, epoch int64) error {
	s.mu.Lock()
	var old *redis.Pool
	switch {
	case s.closed:
		s.mu.Unlock()
		return errClosed
	case c.addr == s.addr:
		s.epoch = max(s.epoch, epoch)
	case s.addr != believed:
		s.mu.Unlock()
		return errSuperseded
	default:
		for before := range s.conns {
			before.Wire().Close()
		}
		if s.addr != "" {
			old, s.pool = s.pool, s.newPool()
		}
		s.addr, s.epoch = c.addr, epoch
	}
	s.conns[c] = true
	s.mu.Unlock()
	if old != nil {
		old.Close()
	}
	return nil
}

// failed handles a failed connection: it also gives up the idle connections, which lead to the same server.
func (s *source) failed(c *conn) {
	s.mu.Lock()
	if !s.conns[c] || c.addr != s.addr || s.closed {
		s.mu.Unlock()
		return // known before, or expected
	}
	delete(s.conns, c)
	old := s.pool
	s.pool = s.newPool()
	s.mu.Unlock()
	old.Close()
}

func (s *source) forget(c *conn) {
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
}

// listen listens for new masters until the source is closed.
func (s *source) listen() {
	for turn := 0; s.ctx.Err() == nil; turn++ {
		s.sentinels.listen(s.ctx, turn, s.heard)
		select {
		case <-time.After(listenPause):
		case <-s.ctx.Done():
		}
	}
}

// heard handles a Sentinel's message about the master. It believes the message if its epoch is newer than that of the
// present master, since a Sentinel may have lost contact with the others, and if the server says that it is the master.
func (s *source) heard(addr string, epoch int64) {
	s.mu.Lock()
	believed := s.addr
	if addr == believed {
		s.epoch = max(s.epoch, epoch)
	}
	news := believed != "" && addr != believed && epoch > s.epoch
	s.mu.Unlock()
	if !news {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, s.limits.DialTimeout)
	defer cancel()
	if c, err := s.dial(ctx, addr, believed, epoch); err == nil {
		c.Close()
	}
}
