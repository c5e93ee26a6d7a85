package delayed

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/idleconn"
	"github.com/godelayed/delayed/internal/redisurl"
)

const (
	dialTimeout = 5 * time.Second

	// readTimeout is the connection's own bound. Every call brings a shorter one, but redigo cuts those of calls with a
	// context to it, so it must not be shorter than that of the longest call, a BLPOP.
	readTimeout = callTimeout + 2*waitTime

	// idleTimeout is shorter than the five minutes after which common proxies drop an idle connection.
	idleTimeout = 4 * time.Minute
	// pingAfter is how long a pooled connection may idle before it is tried out: a restarted server has closed it.
	pingAfter = 10 * time.Second
)

// Redis is a handle on a Redis server or cluster, safe for concurrent use. Create it with Dial, FromPool, FromSource,
// rediscluster.Dial or redissentinel.Dial, and Close it at the end.
type Redis struct {
	calls  Source // producers
	loops  Source // workers and sweepers: never waits behind producers
	prefix string
	where  string // address for logs, without a password

	coalescers *coalescers // this and the next are shared with the handles that WithPrefix returns
	signals    *signals
}

// Dial returns a handle for a URL such as redis://user:password@host:6379/0, rediss://host:6380 (TLS) or
// unix:///path/redis.sock?db=1&password=…. It connects on first use; call Ping to connect now. At most 64 connections
// serve concurrent producers, more callers wait; workers have connections of their own.
//
// The URL may have parameters, and those of rediscluster.Dial and redissentinel.Dial too:
//
//	ca=/path/ca.pem                   with rediss: certificates of a private authority, in place of the system's
//	cert=/path/c.pem&key=/path/k.pem  with rediss: the certificate that the server asks the client for; read again for each connection
//	server_name=redis.example.com     with rediss: the name that certificates of servers must have, in place of the host
//	dial_timeout=2s                   for connecting; defaults to 5s, and to 2s with Sentinel
//	pool_size=200                     connections for concurrent producers; defaults to 64
//
// What they cannot say, a pool of your own can: see FromPool.
func Dial(rawURL string) (*Redis, error) {
	network, addr, opts, limits, err := parseURL(rawURL)
	if err != nil {
		return nil, err
	}
	dial := func(ctx context.Context) (redis.Conn, error) {
		// All of it: a frozen server accepts connections, and then does not answer to what introduces them.
		ctx, cancel := context.WithTimeout(ctx, limits.DialTimeout)
		defer cancel()
		conn, err := redis.DialContext(ctx, network, addr, opts...)
		return conn, ofOtherKind(ctx, nil, 0, err)
	}
	calls := newPool(dial)
	calls.MaxActive, calls.MaxIdle, calls.Wait = limits.PoolSize, limits.PoolSize, true
	r := newRedis(poolSource{calls}, poolSource{newPool(dial)})
	r.where = addr
	return r, nil
}

// FromPool returns a handle on an existing pool. A worker takes three connections out of it for long (three for each
// slot, in a cluster), and the handle takes one to be told of changes, so MaxActive, if set, should leave room for
// them. A read timeout of less than ten seconds makes idle workers look more often. Close closes the pool.
// FromPool(nil) panics.
func FromPool(pool *redis.Pool) *Redis {
	if pool == nil {
		panic(errors.New("delayed: FromPool(nil): expected a pool; Dial makes one of its own"))
	}
	r := newRedis(poolSource{pool}, poolSource{pool})
	r.where = "an address that a pool of the program knows"
	return r
}

// FromSource returns a handle on any source of connections. At most 64 producers use it at a time, more wait; workers
// and sweepers are not bounded. Close closes the source. FromSource(nil) panics.
func FromSource(src Source) *Redis {
	if isNil(src) {
		panic(errors.New("delayed: FromSource(nil): expected a source of connections; Dial makes one of its own"))
	}
	places := callerConns
	if sized, ok := src.(interface{ PoolSize() int }); ok { // of a URL
		places = sized.PoolSize()
	}
	r := newRedis(&boundedSource{Source: src, places: make(chan struct{}, places)}, src)
	if named, ok := src.(fmt.Stringer); ok {
		r.where = named.String()
	} else {
		r.where = fmt.Sprintf("an address that a %T knows", src)
	}
	return r
}

func newRedis(calls, loops Source) *Redis {
	return &Redis{calls: calls, loops: loops, coalescers: new(coalescers), signals: newSignals(loops)}
}

// WithPrefix returns a handle that shares r's connections and puts prefix before every key, in place of a prefix that r
// has. Queues and workers meet only if they use the same prefix. Python's package delayed knows no prefix.
func (r *Redis) WithPrefix(prefix string) *Redis {
	must(r.check())
	c := *r
	c.prefix = prefix
	return &c
}

// Ping connects to Redis and waits for its answer.
func (r *Redis) Ping(ctx context.Context) error {
	if err := errors.Join(r.check(), checkContext(ctx)); err != nil {
		return err
	}
	conn, err := connect(ctx, r.calls, r.prefix)
	if err != nil {
		return connError(err)
	}
	defer conn.Close()
	if _, err := redis.DoContext(conn, ctx, "PING"); err != nil {
		return fmt.Errorf("delayed: PING: %w", err)
	}
	return nil
}

// Close closes the connections. Stop the workers that use them first: a Run that goes on ends with ErrClosed, and
// what became of its tasks is not told.
func (r *Redis) Close() error {
	if err := r.check(); err != nil {
		return err
	}
	r.signals.close()
	if _, bounded := r.calls.(*boundedSource); bounded || r.loops == r.calls {
		return r.loops.Close() // one source for both
	}
	return errors.Join(r.calls.Close(), r.loops.Close())
}

func newPool(dial func(context.Context) (redis.Conn, error)) *redis.Pool {
	return &redis.Pool{
		DialContext:         dial,
		MaxIdle:             callerConns,
		IdleTimeout:         idleTimeout,
		TestOnBorrowContext: idleconn.Check(pingAfter, callTimeout),
	}
}

// poolSource is the source of one server.
type poolSource struct{ pool *redis.Pool }

func (s poolSource) Conn(ctx context.Context, _ string) (redis.Conn, error) {
	conn, err := s.pool.GetContext(ctx)
	if err == nil {
		err = checkDialled(conn)
	}
	if err != nil {
		return nil, err
	}
	return conn, nil
}

// checkDialled returns an error if there is nothing in a connection of a pool, because the pool's Dial has returned
// nil. Only the panic of a call tells.
func checkDialled(conn redis.Conn) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the pool's Dial has returned neither a connection nor an error: expected one of them")
		}
	}()
	_ = conn.Err() // what has broken it shows with the first command
	return nil
}

func (s poolSource) Slot(string) int { return 0 }

func (s poolSource) Close() error { return s.pool.Close() }

// parseURL turns a URL into what redigo dials. Passwords never appear in its errors.
func parseURL(rawURL string) (network, addr string, opts []redis.DialOption, limits redisurl.Limits, err error) {
	limits = redisurl.Limits{DialTimeout: dialTimeout, PoolSize: callerConns}
	opts = []redis.DialOption{
		redis.DialReadTimeout(readTimeout), redis.DialWriteTimeout(callTimeout),
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
		redis.DialTLSHandshakeTimeout(limits.DialTimeout), redis.DialConnectTimeout(limits.DialTimeout))
	return "tcp", u.Hosts[0], opts, limits, nil
}

// parseUnix reads what stands behind unix://, as in /run/redis.sock?db=1.
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
