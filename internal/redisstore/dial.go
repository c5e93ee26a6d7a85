package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisurl"
	"github.com/godelayed/delayed/internal/staleconn"
)

// DialSources returns a source for producers, one for loops, and the address. They connect when needed.
func DialSources(rawURL string) (calls, loops Source, addr string, err error) {
	network, addr, opts, limits, err := ParseURL(rawURL)
	if err != nil {
		return nil, nil, "", err
	}
	watch := staleconn.New(true)
	dialer := &net.Dialer{Timeout: limits.DialTimeout} // it resolves the name anew for each connection
	dial := func(ctx context.Context) (redis.Conn, error) {
		// The time-out covers the handshake too: a frozen server accepts connections, but does not answer on them.
		ctx, cancel := context.WithTimeout(ctx, limits.DialTimeout)
		defer cancel()
		conn, err := watch.Dial(ctx, network, addr, dialer.DialContext, opts...)
		if err != nil {
			return nil, ofOtherKind(ctx, nil, 0, err)
		}
		return conn, nil
	}
	pool := newPool(dial, watch)
	pool.MaxActive, pool.MaxIdle, pool.Wait = limits.PoolSize, limits.PoolSize, true
	initPool(pool)
	return PoolSource{pool, watch}, PoolSource{newPool(dial, watch), watch}, addr, nil
}

func newPool(dial func(context.Context) (redis.Conn, error), watch *staleconn.Watch) *redis.Pool {
	return &redis.Pool{
		DialContext:         dial,
		MaxIdle:             CallerConns,
		IdleTimeout:         idleTimeout,
		MaxConnLifetime:     staleconn.Life,
		TestOnBorrowContext: watch.Test(PingAfter, CallTimeout),
	}
}

// initPool has redigo (v1.9.3) make the channel of a pool, which its first use does otherwise, and panics if the pool
// is closed at the same time. With a context that has ended, the pool does no more than that.
//
//nolint:contextcheck,nolintlint // it waits for nothing; nolintlint misses that contextcheck itself reads this line
func initPool(pool *redis.Pool) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	pool.GetContext(ctx) //nolint:errcheck // that of ctx
}

// PoolSource is the source of one server.
type PoolSource struct {
	Pool  *redis.Pool
	watch *staleconn.Watch // nil: the pool is one of the program
}

// FollowsFailovers reports whether connections are given up when their server cannot serve them any more.
func (s PoolSource) FollowsFailovers() bool { return s.watch != nil }

// Watched reports whether a change of the server would be noticed without borrowing connections.
func (s PoolSource) Watched() bool { return s.watch == nil || s.watch.Watched() }

// closedPool is what redigo says of a pool that is closed.
const closedPool = "redigo: get on closed pool"

// Conn takes a connection out of the pool.
func (s PoolSource) Conn(ctx context.Context, _ string) (_ redis.Conn, err error) {
	defer func() {
		p := recover()
		if e, ok := p.(runtime.Error); ok && e.Error() == "send on closed channel" {
			err = errors.New(closedPool) // it was closed while ctx ended, where redigo v1.9.3 panics
		} else if p != nil {
			panic(p)
		}
	}()
	conn, err := s.Pool.GetContext(ctx)
	if err == nil {
		err = checkDialled(conn)
	}
	if err != nil {
		return nil, s.explain(err)
	}
	return conn, nil
}

// explain adds to the error of taking a connection that the pool is the reason, if it is: either it does not wait, or
// the caller has waited as long as it wanted.
func (s PoolSource) explain(err error) error {
	ended := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
	if stats := s.Pool.Stats(); !errors.Is(err, redis.ErrPoolExhausted) &&
		(!ended || s.Pool.MaxActive == 0 || stats.ActiveCount < s.Pool.MaxActive || stats.IdleCount > 0) {
		return err
	}
	return fmt.Errorf("delayed: the pool has all its %d connections in use: expected a free one: raise its MaxActive, "+
		"or end other uses of it sooner: %w", s.Pool.MaxActive, err)
}

// Slot returns 0: all keys are on one server.
func (s PoolSource) Slot(string) int { return 0 }

// Close closes the pool.
func (s PoolSource) Close() error { return s.Pool.Close() }

// checkDialled returns an error if a pooled connection is empty, because the pool's Dial has returned nil. Only the
// panic of a call shows that.
func checkDialled(conn redis.Conn) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the pool's Dial has returned neither a connection nor an error: expected one of them")
		}
	}()
	_ = conn.Err() // the first command reports it
	return nil
}

// ParseURL turns a URL into the arguments of redigo's Dial. Passwords never appear in its errors.
func ParseURL(rawURL string) (network, addr string, opts []redis.DialOption, limits redisurl.Limits, err error) {
	limits = redisurl.Limits{DialTimeout: dialTimeout, PoolSize: CallerConns}
	opts = []redis.DialOption{
		redis.DialReadTimeout(readTimeout), redis.DialWriteTimeout(CallTimeout),
		redis.DialClientName("delayed"),
	}
	if path, ok := strings.CutPrefix(rawURL, "unix://"); ok {
		network, addr, opts, err = parseUnix(path, opts)
		return network, addr, opts, limits, err
	}
	u, err := redisurl.Parse(rawURL, "6379")
	if errors.Is(err, redisurl.ErrScheme) {
		err = fmt.Errorf("%w, or unix as in unix:///path/redis.sock", err)
	}
	if err != nil {
		return "", "", nil, limits, fmt.Errorf("delayed: %w", err)
	}
	if len(u.Hosts) > 1 || u.Query.Has("master") {
		return "", "", nil, limits,
			errors.New("delayed: the Redis URL does not name one server: use rediscluster.Dial for a cluster, " +
				"redissentinel.Dial for Sentinel")
	}
	if err := u.Only(redisurl.Options...); err != nil {
		return "", "", nil, limits, fmt.Errorf("delayed: %w", err)
	}
	secure, err := u.TLSConfig()
	if err == nil {
		limits, err = u.Limits(limits)
	}
	if err != nil {
		return "", "", nil, limits, fmt.Errorf("delayed: %w", err)
	}
	if u.Password != "" {
		opts = append(opts, redis.DialUsername(u.User), redis.DialPassword(u.Password))
	}
	opts = append(opts, redis.DialDatabase(u.DB), redis.DialUseTLS(u.TLS), redis.DialTLSConfig(secure),
		redis.DialTLSHandshakeTimeout(limits.DialTimeout))
	return "tcp", u.Hosts[0], opts, limits, nil
}

// parseUnix parses the part of a URL after unix://, such as /run/redis.sock?db=1.
func parseUnix(rest string, opts []redis.DialOption) (network, addr string, _ []redis.DialOption, err error) {
	path, query, _ := strings.Cut(rest, "?")
	values, err := url.ParseQuery(query)
	if err != nil || path == "" {
		return "", "", nil, errors.New("delayed: malformed Redis URL: expected unix:///path or unix:///path?db=1")
	}
	if err := (&redisurl.URL{Query: values}).Only("db", "password", "user"); err != nil {
		return "", "", nil, fmt.Errorf("delayed: %w", err)
	}
	user, password := values.Get("user"), values.Get("password")
	if err := redisurl.CheckLogin(user, password); err != nil {
		return "", "", nil, fmt.Errorf("delayed: %w", err)
	}
	if password != "" {
		opts = append(opts, redis.DialUsername(user), redis.DialPassword(password))
	}
	if db := values.Get("db"); db != "" {
		n, err := strconv.ParseUint(db, 10, 31)
		if err != nil {
			return "", "", nil, errors.New("delayed: db of the Redis URL: expected the number of a database, from 0")
		}
		opts = append(opts, redis.DialDatabase(int(n)))
	}
	return "unix", path, opts, nil
}

const (
	// dialTimeout bounds connecting to a server, unless the URL says otherwise.
	dialTimeout = 5 * time.Second

	// readTimeout is the connection's own time-out. Every call has a shorter one, but for calls with a context redigo
	// uses this one if it is less, so it must not be shorter than the time-out of the longest call, a BLPOP.
	readTimeout = CallTimeout + 2*WaitTime

	// idleTimeout is shorter than the five minutes after which common proxies drop an idle connection.
	idleTimeout = 4 * time.Minute
	// PingAfter is how long a pooled connection may idle before a PING tests it: a restarted server has closed it.
	PingAfter = 10 * time.Second
)

// WaitTime bounds one BLPOP.
const WaitTime = 5 * time.Second
