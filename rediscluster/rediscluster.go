// Package rediscluster connects to a Redis Cluster.
//
//	rdb, err := rediscluster.Dial("redis://user:password@a:6379,b:6379")
//	if err != nil { … }
//	defer rdb.Close()
//	q := delayed.NewQueue("{mail}", rdb)
//
// All keys of a queue must be in one hash slot, so the name of a queue carries a tag in braces: "{mail}", or
// "{mail}:low" and "{mail}:high" for two queues in one slot. A queue lives on one node; a worker uses one connection
// more for each slot among its queues.
//
// Commands follow a slot that moves to another node. While a slot is on its way, scripts wait for it for up to five
// seconds. When a node fails, commands on its slots fail until a replica has taken over; what a replica had not
// received by then is lost, as in every cluster; delayed.QueueConfig.WaitReplicas makes each enqueueing wait for
// replicas. A node that freezes fails as well: the calls that wait for it end within a second after its replica serves,
// or after five seconds.
package rediscluster

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/mna/redisc"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisurl"
)

const (
	// dialTimeout bounds connecting to a node, unless the URL says otherwise.
	dialTimeout  = 5 * time.Second
	writeTimeout = 5 * time.Second
	// readTimeout is for calls without a time-out of their own. redigo never waits longer, whatever the context allows,
	// so it is longer than any wait of delayed: a blocking command of 5 s and 5 s for its answer.
	readTimeout = 30 * time.Second
	// idleConns bounds the idle connections to each node, and the producers that use a handle at a time unless the URL
	// says otherwise.
	idleConns = 64
	// idleTimeout is shorter than the five minutes after which common proxies drop an idle connection.
	idleTimeout = 4 * time.Minute
	// pingAfter is how long a pooled connection may idle before a PING tests it: a restarted server has closed it.
	pingAfter = 10 * time.Second
	// slowAfter is how long a node may take to answer before the others are asked, every askAgain, whether another one
	// has taken over.
	slowAfter = time.Second
	askAgain  = 500 * time.Millisecond
)

// Dial returns a handle on a cluster. The URL names one or more of its nodes, such as
// redis://user:password@a:6379,b:6379, or rediss://… for TLS; the other nodes are learnt from them. Name several, so
// that one may be away. It may have the parameters of delayed.Dial. Dial does not connect; call Ping to connect now.
func Dial(rawURL string) (*delayed.Store, error) {
	src, err := newSource(rawURL)
	if err != nil {
		return nil, fmt.Errorf("delayed: rediscluster: %w", err)
	}
	return delayed.FromSource(src), nil
}

// source hands out connections to the nodes of a cluster. It is safe for concurrent use.
type source struct {
	layout *layout
	opts   []redis.DialOption
	limits redisurl.Limits

	mu     sync.Mutex           // protects the following
	pools  map[string]*nodePool // by address
	closed bool
}

func newSource(rawURL string) (*source, error) {
	u, err := redisurl.Parse(rawURL, "6379")
	if err != nil {
		return nil, err
	}
	if err := u.Only(redisurl.Options...); err != nil {
		return nil, err
	}
	secure, err := u.TLSConfig()
	if err != nil {
		return nil, err
	}
	limits, err := u.Limits(redisurl.Limits{DialTimeout: dialTimeout, PoolSize: idleConns})
	if err != nil {
		return nil, err
	}
	if u.DB != 0 {
		return nil, fmt.Errorf("database %d in the Redis URL: expected none, a cluster has database 0 only", u.DB)
	}
	s := &source{
		opts: []redis.DialOption{
			redis.DialReadTimeout(readTimeout), redis.DialWriteTimeout(writeTimeout),
			redis.DialUsername(u.User), redis.DialPassword(u.Password), redis.DialClientName("delayed"),
			redis.DialUseTLS(u.TLS), redis.DialTLSConfig(secure), redis.DialTLSHandshakeTimeout(limits.DialTimeout),
		},
		limits: limits,
		pools:  map[string]*nodePool{},
	}
	s.layout = newLayout(u.Hosts, s.opts, s.retain)
	return s, nil
}

// errClosed is the error of calls on a closed source.
var errClosed = fmt.Errorf("%w: the handle on the cluster", delayed.ErrClosed)

// Conn returns a connection to the node that serves key. The caller closes it.
func (s *source) Conn(ctx context.Context, key string) (redis.Conn, error) {
	// The time-out includes the test of an idle connection, and dialling a successor.
	ctx, cancel := context.WithTimeout(ctx, s.limits.DialTimeout)
	defer cancel()
	slot := redisc.Slot(key)
	addr, err := s.layout.node(ctx, slot)
	if err != nil {
		return nil, err
	}
	n, err := s.dial(ctx, addr)
	if err != nil && ctx.Err() == nil {
		n, err = s.dialSuccessor(ctx, slot, addr, err)
	}
	if err != nil {
		return nil, err
	}
	return &conn{src: s, slot: slot, node: n}, nil
}

// dialSuccessor dials the node that now serves the slot of a node which cannot be reached.
func (s *source) dialSuccessor(ctx context.Context, slot int, addr string, cause error) (*node, error) {
	if err := s.layout.refresh(ctx); err != nil {
		return nil, fmt.Errorf("%w; %w", cause, err)
	}
	now, err := s.layout.node(ctx, slot)
	if err != nil {
		return nil, err
	}
	if now == addr {
		return nil, cause
	}
	return s.dial(ctx, now)
}

// PoolSize returns how many producers may use the source at a time.
func (s *source) PoolSize() int { return s.limits.PoolSize }

// String returns the nodes of the URL, for logs.
func (s *source) String() string { return strings.Join(s.layout.startup, ",") + " (cluster)" }

// Slot returns the hash slot of key.
func (s *source) Slot(key string) int { return redisc.Slot(key) }

// Close closes the idle connections; those in use are closed when they are given back.
func (s *source) Close() error {
	s.layout.close()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, p := range s.pools {
		p.Close()
	}
	clear(s.pools)
	return nil
}
