// Package redissentinel connects to the master of a Redis that Sentinel watches, and to its successor after a
// fail-over.
//
//	rdb, err := redissentinel.Dial("redis://user:password@s1:26379,s2:26379,s3:26379/0?master=mymaster")
//	if err != nil { … }
//	defer rdb.Close()
//	q := delayed.NewQueue("mail", rdb)
//
// The hosts are those of the Sentinels; user, password and database are those of the master. Sentinels that ask for a
// password of their own get the parameters sentinel_user and sentinel_password.
//
// When the Sentinels announce another master, all connections to the old one are closed, since it would accept commands
// for seconds that are lost when it becomes a replica. During a fail-over commands fail; workers carry on by themselves
// when the new master is known. What the old master had acknowledged but not yet sent to its replica is lost, as in
// every set-up with Sentinel: tasks among it, and acks, whose tasks then run again. delayed.QueueConfig.WaitReplicas
// makes each enqueueing wait for replicas.
package redissentinel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redisurl"
	"github.com/godelayed/delayed/internal/staleconn"
)

const (
	// dialTimeout bounds connecting to the master, unless the URL says otherwise. A master that takes longer counts as
	// gone, and the Sentinels are asked for another.
	dialTimeout  = 2 * time.Second
	writeTimeout = 5 * time.Second
	// readTimeout is for calls without a time-out of their own. redigo never waits longer, whatever the context allows,
	// so it is longer than any wait of delayed: a blocking command of 5 s and 5 s for its answer.
	readTimeout = 30 * time.Second
	// idleConns bounds the idle connections to the master, and the producers that use a handle at a time unless the URL
	// says otherwise.
	idleConns = 64
	// idleTimeout is shorter than the five minutes after which common proxies drop an idle connection.
	idleTimeout = 4 * time.Minute
	// roleAfter is how long a server's answer that it is the master is relied on.
	roleAfter = time.Second
	// listenPause is the pause between listening to one Sentinel and the next.
	listenPause = time.Second
)

// Dial returns a handle on the master. The URL names the Sentinels and, as a parameter, the name under which they know
// the master: redis://user:password@s1:26379,s2:26379/0?master=mymaster, or rediss://… for TLS with Sentinels and
// master alike. Name all Sentinels; port 26379 may be left out. It may have the parameters of delayed.Dial besides,
// which are for the master and, as to TLS, for the Sentinels too. Dial does not connect; call Ping to connect now.
func Dial(rawURL string) (*delayed.Store, error) {
	src, err := newSource(rawURL)
	if err != nil {
		return nil, fmt.Errorf("delayed: redissentinel: %w", err)
	}
	return delayed.FromSource(src), nil
}

// source hands out connections to the master. It is safe for concurrent use.
type source struct {
	sentinels *sentinels
	opts      []redis.DialOption
	limits    redisurl.Limits
	watch     *staleconn.Watch // does not ask: the Sentinels say which server is the master

	ctx  context.Context // the life of the goroutine that listens
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu        sync.Mutex // protects the following
	pool      *redis.Pool
	conns     map[*conn]bool // all that are open
	addr      string         // of the master; "" while unknown
	epoch     int64          // of the Sentinels' configuration that names addr; 0 while unknown
	listening bool
	closed    bool
}

func newSource(rawURL string) (*source, error) {
	u, err := redisurl.Parse(rawURL, "26379")
	if err != nil {
		return nil, err
	}
	if err := u.Only(redisurl.Known("master", "sentinel_user", "sentinel_password")...); err != nil {
		return nil, err
	}
	if err := redisurl.CheckLogin(u.Query.Get("sentinel_user"), u.Query.Get("sentinel_password")); err != nil {
		return nil, fmt.Errorf("sentinel_user and sentinel_password: %w", err)
	}
	secure, err := u.TLSConfig()
	if err != nil {
		return nil, err
	}
	limits, err := u.Limits(redisurl.Limits{DialTimeout: dialTimeout, PoolSize: idleConns})
	if err != nil {
		return nil, err
	}
	name := u.Query.Get("master")
	if name == "" {
		return nil, errors.New("the Redis URL has no parameter master: expected ?master= and the name that Sentinel " +
			"has for the master")
	}
	common := []redis.DialOption{redis.DialUseTLS(u.TLS), redis.DialTLSConfig(secure), redis.DialClientName("delayed")}
	s := &source{
		opts: append([]redis.DialOption{
			redis.DialReadTimeout(readTimeout), redis.DialWriteTimeout(writeTimeout),
			redis.DialTLSHandshakeTimeout(limits.DialTimeout),
			redis.DialUsername(u.User), redis.DialPassword(u.Password), redis.DialDatabase(u.DB),
		}, common...),
		sentinels: newSentinels(name, u.Hosts, append([]redis.DialOption{
			redis.DialUsername(u.Query.Get("sentinel_user")), redis.DialPassword(u.Query.Get("sentinel_password")),
		}, common...)),
		conns:  map[*conn]bool{},
		limits: limits,
		watch:  staleconn.New(false),
	}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.pool = s.newPool()
	return s, nil
}

// errClosed is the error of calls on a closed source.
var errClosed = fmt.Errorf("%w: the handle on the master", delayed.ErrClosed)

// Conn returns a connection to the master. The caller closes it.
func (s *source) Conn(ctx context.Context, _ string) (redis.Conn, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, errClosed
	}
	if !s.listening {
		s.listening = true
		s.wg.Go(s.listen)
	}
	pool := s.pool
	s.mu.Unlock()
	return pool.GetContext(ctx)
}

// FollowsFailovers says that nobody else needs to check connections.
func (s *source) FollowsFailovers() bool { return true }

// PoolSize returns how many producers may use the source at a time.
func (s *source) PoolSize() int { return s.limits.PoolSize }

// String returns the master's name and the Sentinels of the URL, for logs.
func (s *source) String() string {
	return fmt.Sprintf("master %q of Sentinel %s", s.sentinels.name, strings.Join(s.sentinels.all, ","))
}

// Slot returns 0: one server has all keys.
func (s *source) Slot(string) int { return 0 }

// Close closes the idle connections; those in use are closed when they are given back.
func (s *source) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.sentinels.close()
	s.stop()
	s.wg.Wait()
	return s.pool.Close()
}
