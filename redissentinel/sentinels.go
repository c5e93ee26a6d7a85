package redissentinel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/FZambia/sentinel/v2"
	"github.com/gomodule/redigo/redis"
)

const (
	// askTimeout bounds asking one Sentinel, so that one behind a dead network does not delay asking the others.
	askTimeout = 2 * time.Second
	// listenTime is how long to listen to one Sentinel before the next one, in case it has lost contact with the rest.
	listenTime = 15 * time.Second
)

// sentinels asks the Sentinels for the address of the master. It is safe for concurrent use.
type sentinels struct {
	name string
	all  []string // in the order of the URL
	opts []redis.DialOption

	ctx  context.Context // the life of the goroutine that asks
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu     sync.Mutex // protects the following
	addrs  []string   // the Sentinel that answered last comes first; never changed in place
	asking *asking    // not nil while a goroutine asks
	closed bool
}

// asking is one round of asking the Sentinels. Its other fields may be read after done is closed.
type asking struct {
	done chan struct{}
	addr string
	err  error
}

func newSentinels(name string, addrs []string, opts []redis.DialOption) *sentinels {
	s := &sentinels{name: name, all: addrs, addrs: addrs, opts: opts}
	s.ctx, s.stop = context.WithCancel(context.Background())
	return s
}

// master returns the address of the master. Concurrent calls share one answer.
func (s *sentinels) master(ctx context.Context) (string, error) {
	s.mu.Lock()
	a := s.asking
	if s.closed {
		s.mu.Unlock()
		return "", errClosed
	}
	if a == nil {
		a = &asking{done: make(chan struct{})}
		s.asking = a
		addrs := s.addrs
		s.wg.Go(func() { s.ask(a, addrs) }) //nolint:contextcheck // the question may outlive who asked it first
	}
	s.mu.Unlock()
	select {
	case <-a.done:
		return a.addr, a.err
	case <-ctx.Done():
		return "", fmt.Errorf("asking the Sentinels: %w", context.Cause(ctx))
	}
}

// ask asks one Sentinel after the other until one knows the master.
func (s *sentinels) ask(a *asking, addrs []string) {
	defer close(a.done)
	var errs []error
	for i, from := range addrs {
		addr, err := s.askOne(from)
		if err == nil {
			a.addr = addr
			addrs = slices.Concat(addrs[i:], addrs[:i])
			break
		}
		errs = append(errs, fmt.Errorf("%s: %w", from, err))
	}
	switch {
	case a.addr != "":
	case s.ctx.Err() != nil:
		a.err = errClosed
	default:
		a.err = fmt.Errorf("no Sentinel names the master %s: %w", s.name, errors.Join(errs...))
	}
	s.mu.Lock()
	s.addrs = addrs
	s.asking = nil
	s.mu.Unlock()
}

// askOne asks one Sentinel. The client gets only this address: of a list it would skip every other Sentinel when one
// does not answer.
func (s *sentinels) askOne(addr string) (string, error) {
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	var refused error
	client := &sentinel.Sentinel{
		Addrs:      []string{addr},
		MasterName: s.name,
		// Questions are rare: no connection is kept.
		Pool: func(addr string) *redis.Pool {
			return &redis.Pool{Dial: func() (c redis.Conn, err error) {
				c, refused = s.dial(ctx, addr)
				return c, refused
			}}
		},
	}
	defer client.Close()
	master, err := client.MasterAddr()
	switch {
	case err == nil:
		return master, nil
	case refused != nil:
		return "", refused
	case strings.HasSuffix(err.Error(), redis.ErrNil.Error()):
		return "", errors.New("it knows no such master: see SENTINEL MASTERS for those it knows")
	}
	return "", err
}

// listen listens to one of the Sentinels for a while. It calls heard with the master and the epoch of the configuration
// that named it: first with what the Sentinel knows now, then after each of its messages.
func (s *sentinels) listen(ctx context.Context, turn int, heard func(addr string, epoch int64)) {
	ctx, cancel := context.WithTimeout(ctx, listenTime+2*askTimeout)
	defer cancel()
	from := s.all[turn%len(s.all)]
	c, err := s.dial(ctx, from)
	if err != nil {
		return
	}
	defer c.Close()
	sub := redis.PubSubConn{Conn: c}
	if sub.Subscribe("+switch-master") != nil {
		return
	}
	for {
		// Once subscribed, no message is missed. Each message, and the confirmation of the subscription, leads to a
		// question, because messages lack the epoch.
		if _, failed := sub.ReceiveWithTimeout(listenTime).(error); failed {
			return // the time is over, or the connection is broken
		}
		if addr, epoch, err := s.configuration(ctx, from); err == nil {
			heard(addr, epoch)
		}
	}
}

// configuration asks one Sentinel for the master and for the epoch of the configuration that made it the master.
func (s *sentinels) configuration(ctx context.Context, from string) (addr string, epoch int64, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, err := s.dial(ctx, from)
	if err != nil {
		return "", 0, err
	}
	defer c.Close()
	fields, err := redis.StringMap(c.Do("SENTINEL", "MASTER", s.name))
	if err != nil {
		return "", 0, err
	}
	epoch, err = strconv.ParseInt(fields["config-epoch"], 10, 64)
	return net.JoinHostPort(fields["ip"], fields["port"]), epoch, err
}

// distrust makes the next question go to another Sentinel first, because this one's address was wrong.
func (s *sentinels) distrust() {
	s.mu.Lock()
	s.addrs = slices.Concat(s.addrs[1:], s.addrs[:1])
	s.mu.Unlock()
}

// dial connects to a Sentinel. The connection ends with ctx.
func (s *sentinels) dial(ctx context.Context, addr string) (redis.Conn, error) {
	dialer := &net.Dialer{Timeout: askTimeout}
	opts := slices.Concat(s.opts, []redis.DialOption{
		redis.DialReadTimeout(askTimeout), redis.DialWriteTimeout(askTimeout),
		redis.DialTLSHandshakeTimeout(askTimeout),
		redis.DialContextFunc(func(_ context.Context, network, addr string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, network, addr)
			if err == nil {
				context.AfterFunc(ctx, func() { c.Close() })
			}
			return c, err
		}),
	})
	return redis.DialContext(ctx, "tcp", addr, opts...)
}

// close cancels asking and waits for its end.
func (s *sentinels) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
}
