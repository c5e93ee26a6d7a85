package delayed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/redisstore"
	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// Source hands out connections to a Redis server or cluster. Packages rediscluster and redissentinel provide sources;
// write one to connect in another way. Its methods are called concurrently.
type Source interface {
	// Conn returns a connection on which commands and scripts for key may be sent, or the error of dialling. The caller
	// closes it. It should implement redis.ConnWithTimeout and redis.ConnWithContext. One whose server is no longer the
	// master is not to be used again: if it has a method Discard() error, that is called before Close, else a call
	// whose context has ended, after which redigo's connections are broken.
	Conn(ctx context.Context, key string) (redis.Conn, error)
	// Slot returns a number that is the same for keys which one script may use together: the hash slot in a cluster, 0
	// otherwise.
	Slot(key string) int
	// Close closes the idle connections. Conn fails after it.
	Close() error

	// If it has a method String() string, that is what logs say of the address. It must not show a password.
}

// Store is a handle on a Redis server or cluster, safe for concurrent use. Create it with Dial, FromPool, FromSource,
// rediscluster.Dial or redissentinel.Dial, and Close it at the end.
type Store struct {
	calls  Source // producers
	loops  Source // workers and sweepers: never waits behind producers
	prefix string
	legacy bool   // legacy workers share the queues
	where  string // address for logs, without a password

	coalescers *redisstore.Coalescers // shared with the handles that WithPrefix returns, as is signals
	signals    *redisstore.Signals
	registry   *redisstore.Registry                              // of the queues with this prefix
	signatures *redisstore.Shared[string, redisstore.Signatures] // of queues with QueueConfig.Check, by prefix and name
}

// Dial returns a handle for a URL such as redis://user:password@host:6379/0, rediss://host:6380 (TLS) or
// unix:///path/redis.sock?db=1&password=…. It connects on first use; call Ping to connect now. At most 64 connections
// serve concurrent producers, more callers wait; workers have connections of their own. When another server has taken
// the place of the one behind the address, all connections are dialled anew.
//
// The URL may have these parameters, and so may those of rediscluster.Dial and redissentinel.Dial:
//
//	ca=/path/ca.pem                   with rediss: certificates of a private authority, in place of the system's
//	cert=/path/c.pem&key=/path/k.pem  with rediss: the certificate that the server asks the client for; read again for
//	                                  each connection
//	server_name=redis.example.com     with rediss: the name that certificates of servers must have, in place of the
//	                                  host
//	dial_timeout=2s                   for connecting; defaults to 5s, and to 2s with Sentinel
//	pool_size=200                     connections for concurrent producers; defaults to 64
//
// For other settings, make a pool of your own: see FromPool.
func Dial(rawURL string) (*Store, error) {
	calls, loops, addr, err := redisstore.DialSources(rawURL)
	if err != nil {
		return nil, err
	}
	r := newStore(calls, loops)
	r.where = addr
	return r, nil
}

// FromPool returns a handle on an existing pool of package github.com/gomodule/redigo/redis. For clients of go-redis
// and rueidis see contrib/goredis and contrib/rueidis. Close closes the pool. FromPool(nil) panics. The pool must
// allow:
//
//   - Connections in use for long. A worker keeps three: one that waits for tasks, one for its heartbeat, one of its
//     sweeper. The handle keeps one to hear of changes, for all its workers and for calls that wait for results.
//   - More for a short time. At its start and while it is busy, a worker takes up to eight more at a time, and each
//     concurrent call of a producer takes one. So MaxActive, unless it is 0, should be twelve for each worker and one
//     for each concurrent producer. With fewer, calls wait for each other if Wait is set, and fail if it is not. The
//     error names the pool.
//   - Waits. BLPOP blocks for five seconds, and its connection then waits five more for the answer. A read timeout of
//     less than ten seconds makes idle workers poll more often. Other calls have five seconds at most. A write timeout
//     keeps a call from hanging on a server that reads nothing.
//   - Contexts. Connections must implement redis.ConnWithTimeout and redis.ConnWithContext, as those of redigo do. A
//     canceled call closes its connection. Dial with DialContext, so that a canceled call does not wait for it.
//   - Restarts of Redis. Set TestOnBorrow to send PING on connections that have idled for a while: otherwise the first
//     call on each dead one fails, as ErrUnknown.
func FromPool(pool *redis.Pool) *Store {
	if pool == nil {
		panic(errors.New("delayed: FromPool(nil): expected a pool; Dial makes one of its own"))
	}
	src := redisstore.Watch(redisstore.PoolSource{Pool: pool})
	r := newStore(src, src)
	r.where = "an address that a pool of the program knows"
	return r
}

// FromSource returns a handle on any source of connections. At most 64 producers use it at a time, more wait; workers
// and sweepers are not bounded. Close closes the source. FromSource(nil) panics.
func FromSource(src Source) *Store {
	if wire.IsNil(src) {
		panic(errors.New("delayed: FromSource(nil): expected a source of connections; Dial makes one of its own"))
	}
	places := redisstore.CallerConns
	if sized, ok := src.(interface{ PoolSize() int }); ok { // of a URL
		places = sized.PoolSize()
	}
	watched := redisstore.Watch(src)
	r := newStore(&redisstore.BoundedSource{Source: watched, Places: make(chan struct{}, places)}, watched)
	if named, ok := src.(fmt.Stringer); ok {
		r.where = named.String()
	} else {
		r.where = fmt.Sprintf("an address that a %T knows", src)
	}
	return r
}

func newStore(calls, loops Source) *Store {
	return &Store{
		calls: calls, loops: loops, coalescers: new(redisstore.Coalescers),
		signals: redisstore.NewSignals(loops), registry: redisstore.NewRegistry(calls, ""),
		signatures: new(redisstore.Shared[string, redisstore.Signatures]),
	}
}

// WithPrefix returns a handle that shares r's connections and puts prefix before every key, in place of a prefix that r
// has. Queues and workers meet only if they use the same prefix.
func (r *Store) WithPrefix(prefix string) *Store {
	must(r.check())
	c := *r
	c.prefix, c.registry = prefix, r.registry.WithPrefix(prefix)
	return &c
}

// Ping connects to Redis and waits for its answer.
func (r *Store) Ping(ctx context.Context) error {
	if err := errors.Join(r.check(), checkContext(ctx)); err != nil {
		return err
	}
	conn, err := redisstore.Connect(ctx, r.calls, r.prefix)
	if err != nil {
		return redisstore.ConnError(err)
	}
	defer conn.Close()
	if _, err := redis.DoContext(conn, ctx, "PING"); err != nil {
		return fmt.Errorf("delayed: PING: %w", err)
	}
	return nil
}

// Close closes the connections. Stop the workers that use them first: a Run that goes on ends with ErrClosed, and
// cannot report to Redis how its tasks ended, which sweepers then give back.
func (r *Store) Close() error {
	if err := r.check(); err != nil {
		return err
	}
	r.signals.Close()
	if _, bounded := r.calls.(*redisstore.BoundedSource); bounded || r.loops == r.calls {
		return r.loops.Close() // one source for both
	}
	return errors.Join(r.calls.Close(), r.loops.Close())
}

// check returns an error if r was not made by a constructor.
func (r *Store) check() error {
	if r == nil || r.calls == nil || r.loops == nil {
		return errNoStore
	}
	return nil
}

var errNoStore = errors.New("delayed: the *Store is nil or zero: pass what Dial, FromPool or FromSource returned")

// checkQueue returns an error if a queue on r cannot have that name.
func (r *Store) checkQueue(name string) error {
	if err := redisstore.CheckQueueName(name); err != nil {
		return err
	}
	if r.legacy && r.prefix != "" {
		return fmt.Errorf("delayed: a handle of WithLegacy has the key prefix %q: expected none, because legacy "+
			"workers know no prefix", r.prefix)
	}
	if redisstore.OneSlot(r.loops, r.prefix, name) {
		return nil
	}
	found := fmt.Sprintf("delayed: queue name %q", name)
	if r.prefix != "" {
		found += fmt.Sprintf(" behind the key prefix %q", r.prefix)
	}
	const want = "all keys of a queue are in one slot of a Redis Cluster because of a {tag} in its name"
	tagged := "{" + strings.NewReplacer("{", "", "}", "").Replace(name) + "}"
	if len(tagged) > 2 && redisstore.OneSlot(r.loops, r.prefix, tagged) {
		return fmt.Errorf("%s has no tag: %s: name it %q", found, want, tagged)
	}
	return fmt.Errorf("%s has no tag: %s: choose another prefix", found, want)
}

// checkSlots is the part of checkQueue about slots, for well-formed names.
func (r *Store) checkSlots(names []string) error {
	for _, name := range names {
		if redisstore.CheckQueueName(name) != nil {
			continue // reported elsewhere
		}
		if err := r.checkQueue(name); err != nil {
			return err
		}
	}
	return nil
}

// listenerOf returns the source as the listener to tasks that are enqueued through it, nil if it is none.
func listenerOf(src Source) seam.Listener {
	l, _ := redisstore.Unwrap(src).(seam.Listener)
	return l
}

// SettingError explains why a Redis server must not, or cannot, hold tasks.
type SettingError struct {
	// Name is eviction (maxmemory-policy is not noeviction), replica (the server is a replica), scripts (it runs no
	// Lua scripts for this user) or version (it is older than Redis 6.2). WorkerConfig.Allow and Store.Check permit
	// the setting by this name.
	Name string
	// Text names the server, what was found, what was expected and what to do.
	Text string
}

// Error implements error.
func (e *SettingError) Error() string {
	return fmt.Sprintf("delayed: %s; to go on all the same, allow %q by name", e.Text, e.Name)
}

// Check asks Redis, in a cluster each of its masters, whether its settings are fit for tasks. The error joins a
// *SettingError for each setting that is not and whose name is not among the allowed ones, or says that Redis could not
// be asked. Warnings are sentences for the log: settings that were allowed, that Redis writes no append-only file, or
// what could not be found out because the user may not ask INFO or a service leaves it out.
//
// Worker.Run does the same for the servers of its queues.
func (r *Store) Check(ctx context.Context, allow ...string) (warnings []string, err error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	if err := errors.Join(checkContext(ctx), checkAllowed("Store.Check", allow)); err != nil {
		return nil, err
	}
	servers, err := redisstore.Servers(ctx, r.loops, r.prefix, r.where)
	if err != nil {
		return nil, err
	}
	return checkServers(ctx, r.loops, servers, allow)
}

// checkAllowed returns an error for a name that is not among those of SettingError.
func checkAllowed(where string, allow []string) error {
	for _, name := range allow {
		if !slices.Contains(redisstore.SettingNames, name) {
			return fmt.Errorf("delayed: %s: unknown name %q of a setting: expected %s", where, name,
				strings.Join(redisstore.SettingNames, ", "))
		}
	}
	return nil
}

// checkServers is Store.Check for the given servers.
func checkServers(
	ctx context.Context, src Source, servers []redisstore.Server, allow []string,
) (warnings []string, err error) {
	var errs []error
	for _, server := range servers {
		found, err := redisstore.Inspect(ctx, src, server)
		if err != nil {
			return nil, err
		}
		for _, unfit := range found.Unfit {
			if slices.Contains(allow, unfit.Name) {
				warnings = append(warnings, unfit.Text+" (allowed)")
			} else {
				errs = append(errs, &SettingError{Name: unfit.Name, Text: unfit.Text})
			}
		}
		warnings = append(warnings, found.Warnings...)
	}
	return warnings, errors.Join(errs...)
}
