// Package staleconn gives up connections whose server cannot serve any more.
//
// An address may stay while the server behind it changes: a managed Redis, a proxy, a virtual IP. The connections that
// are open then still lead to the old server, which has become a replica, or a master that nobody else uses. It answers
// PING and every read, and refuses writes for ever. A subscription on it is silent. So connections are given up:
//
//   - all of a Watch, when one of them gets an answer that only such a server gives (answer.FromReplaced);
//   - all of a Watch, when a server reports that it is not in the role, or has not the data, that it had: each new
//     connection asks, and so do pooled ones when they are taken out and nobody has asked for a while;
//   - all that were dialled before, when one that has idled for long does not answer a PING;
//   - one, when its server has closed it while it idled.
//
// Given up means that Err returns an error. A pool closes such a connection instead of keeping it, and who holds one
// for long looks at Err before each use. Calls under way are not cut off: they have time-outs.
package staleconn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

const (
	// askEvery is how long a server's answer about its role and data is relied on. Only programs that do nothing but
	// read depend on it: Redis refuses writes on a replica, and ends a BLPOP when it becomes one.
	askEvery = time.Second
	// Life is how long a pool keeps a connection. That another server is behind the address shows when a connection is
	// dialled, even if the old server goes on as a master.
	Life = time.Minute
	// doubtFor is how long every connection of a program's pool is asked for its server after some were given up: the
	// pool may have kept others.
	doubtFor = time.Minute
)

// ErrGivenUp is why a connection is not used any more although it has not failed itself.
var ErrGivenUp = errors.New("delayed: the connection leads to a server that does not answer or is no longer the master")

// Watch gives up the connections to one address together. It is safe for concurrent use.
type Watch struct {
	asks    bool          // servers are asked for role and data
	epoch   atomic.Uint64 // connections of an earlier epoch are given up
	blocked atomic.Int64  // connections that wait in BLPOP
	asked   atomic.Int64  // when a server was last asked, in ns since 1970
	doubt   atomic.Int64  // until when lent connections are asked, in ns since 1970
	mute    atomic.Bool   // servers refuse to say

	mu     sync.Mutex // protects server
	server identity
}

// New returns a Watch. If asks is true, it asks servers for their role and data.
func New(asks bool) *Watch { return &Watch{asks: asks} }

// Dial connects to an address, by way of connect. It asks the server who it is, and gives up all earlier connections if
// that is another one than before.
func (w *Watch) Dial(
	ctx context.Context, network, addr string, connect func(context.Context, string, string) (net.Conn, error),
	opts ...redis.DialOption,
) (*Conn, error) {
	c := &Conn{watch: w}
	keep := redis.DialContextFunc(func(ctx context.Context, network, addr string) (_ net.Conn, err error) {
		c.wire, err = connect(ctx, network, addr)
		return c.wire, err
	})
	var err error
	opts = slices.Concat(opts, []redis.DialOption{keep})
	c.Conn, err = redis.DialContext(ctx, network, addr, opts...)
	if answer.Forbidden(err) { // CLIENT, with which the connection gets a name for CLIENT LIST
		c.Conn, err = redis.DialContext(ctx, network, addr, append(opts, redis.DialClientName(""))...)
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // redigo's own text
	}
	if err := w.admit(ctx, c); err != nil {
		c.Conn.Close()
		return nil, err
	}
	return c, nil
}

// admit adds a new connection.
func (w *Watch) admit(ctx context.Context, c *Conn) error {
	if w.asks {
		who, err := w.ask(ctx, c.Conn)
		if err != nil {
			return err
		}
		w.mu.Lock()
		if w.server.differs(who) {
			w.epoch.Add(1)
		}
		w.server = w.server.update(who)
		w.mu.Unlock()
		c.born = time.Now()
	}
	c.epoch = w.epoch.Load()
	c.touch()
	return nil
}

// Test is for the TestOnBorrowContext of a pool of such connections. One that has idled for longer than after must
// answer within limit. If it does not, all that were dialled before are given up as well: testing each for seconds
// would take minutes while a server or a network does not answer.
func (w *Watch) Test(after, limit time.Duration) func(context.Context, redis.Conn, time.Time) error {
	return func(ctx context.Context, conn redis.Conn, used time.Time) error {
		if err := conn.Err(); err != nil {
			return err
		}
		idle, most := time.Since(used), after
		if c, ok := conn.(*Conn); ok && !canPeek(c.wire) {
			most = min(after, askEvery) // only a PING shows that the server has closed it
		}
		ask := w.due()
		if !ask && idle < most {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if ask {
			return w.check(ctx, conn)
		}
		epoch := w.epoch.Load()
		_, err := redis.DoContext(conn, ctx, "PING")
		if err != nil {
			w.giveUp(epoch)
		}
		return err
	}
}

// Lend returns a connection that a pool or source of the program has handed out. It is closed instead of handed back
// if it is given up meanwhile. If that is due, Lend asks the server who it is, which must answer within limit. If the
// connection must not be used, Lend closes it and returns an error.
func (w *Watch) Lend(ctx context.Context, conn redis.Conn, limit time.Duration) (*Conn, error) {
	c := &Conn{Conn: conn, watch: w, epoch: w.epoch.Load(), lent: true}
	c.touch()
	if w.due() || w.asks && time.Now().UnixNano() < w.doubt.Load() {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if err := w.check(ctx, conn); err != nil {
			discard(conn) //nolint:contextcheck // its context has ended
			conn.Close()
			return nil, err
		}
		c.epoch = w.epoch.Load()
	}
	return c, nil
}

// Watched reports whether a change of the server's role would be noticed without asking: whoever waits in BLPOP hears
// of it.
func (w *Watch) Watched() bool { return !w.asks || w.blocked.Load() > 0 }

// due reports whether the caller should ask a server who it is.
func (w *Watch) due() bool {
	if w.Watched() || w.mute.Load() {
		return false
	}
	now, last := time.Now().UnixNano(), w.asked.Load()
	return now-last >= int64(askEvery) && w.asked.CompareAndSwap(last, now)
}

// check asks the server of a connection who it is. If it does not answer, or is another one than before, the
// connections of this epoch are given up.
func (w *Watch) check(ctx context.Context, conn redis.Conn) error {
	epoch := w.epoch.Load()
	who, err := w.ask(ctx, conn)
	if err == nil {
		w.mu.Lock()
		if before := w.server; before.differs(who) {
			err = fmt.Errorf("%w: it was %v, and is %v", ErrGivenUp, before, who)
		} else {
			w.server = before.update(who)
		}
		w.mu.Unlock()
	}
	if err != nil {
		w.giveUp(epoch)
	}
	return err
}

// giveUp gives up the connections of an epoch, unless that was done before. The role stays known: the next server is
// expected to have it.
func (w *Watch) giveUp(epoch uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.epoch.CompareAndSwap(epoch, epoch+1) {
		w.server.data = ""
		w.doubt.Store(time.Now().Add(doubtFor).UnixNano())
	}
}
