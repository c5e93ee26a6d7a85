package delayed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// signalPing is the time between two signs of life on the connection; a connection that breaks off earlier makes it
	// shorter.
	signalPing = 10 * time.Second
	// signalLinger is how long the connection outlives the last subscription.
	signalLinger = 10 * time.Second
	// signalLife is how long a connection is used. A server that has left its cluster, or a master that was replaced,
	// may keep it open and never publish on it again.
	signalLife = 5 * time.Minute
	// signalRefused is the pause after Redis has refused to subscribe: its ACL must change first.
	signalRefused = 30 * time.Second
	// signalBuffer bounds the messages that wait for one subscriber. More are replaced by the demand to look again.
	signalBuffer = 64
)

// signals receives what is published for this process, over one connection for each handle. What it brings makes things
// fast, and nothing depends on it: a message may be lost with a connection, and then an empty one says that it is time
// to look at what is durable.
//
// The connection is made with the first subscription and closed a while after the last.
type signals struct {
	src    Source
	linger time.Duration   // signalLinger
	again  time.Duration   // lookEvery, of who waits for a task
	open   context.Context // ends when the handle is closed
	shut   context.CancelFunc

	mu       sync.Mutex // protects the following
	channels map[string]*channel
	touched  []string // channels whose subscriptions have changed
	stop     context.CancelFunc
	closed   bool
	change   chan struct{} // holds an element when touched has
}

// channel is one channel with those who listen to it.
type channel struct {
	listeners []chan string
	ready     bool // Redis has confirmed the subscription on the present connection
}

func newSignals(src Source) *signals {
	s := &signals{
		src: src, linger: signalLinger, again: lookEvery, channels: map[string]*channel{},
		change: make(chan struct{}, 1),
	}
	s.open, s.shut = context.WithCancel(context.Background())
	return s
}

// subscribe returns what is published on a channel from now on, until unsubscribe is called. An empty message means
// "look again": the subscription holds from now on, and messages may have been lost before. It comes first once Redis
// has confirmed the subscription, again after each break of the connection and when the subscriber was too slow, and
// once, last of all, when the handle is closed. It never comes while Redis is away, so who waits for something that
// matters looks now and then without being told. subscribe never blocks; unsubscribe may be called more than once.
func (s *signals) subscribe(name string) (messages <-chan string, unsubscribe func()) {
	c := make(chan string, signalBuffer)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c <- ""
		return c, func() {}
	}
	ch := s.channels[name]
	if ch == nil {
		ch = &channel{}
		s.channels[name] = ch
		s.touch(name)
	}
	ch.listeners = append(ch.listeners, c)
	if ch.ready {
		c <- ""
	}
	if s.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s.stop = cancel
		go s.run(ctx)
	}
	return c, sync.OnceFunc(func() { s.unsubscribe(name, c) })
}

func (s *signals) unsubscribe(name string, c chan string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := s.channels[name]
	if ch == nil {
		return
	}
	ch.listeners = slices.DeleteFunc(ch.listeners, func(other chan string) bool { return other == c })
	if len(ch.listeners) == 0 {
		delete(s.channels, name)
		s.touch(name)
	}
}

// touch has the subscription of a channel looked at. s.mu is held.
func (s *signals) touch(name string) {
	s.touched = append(s.touched, name)
	select {
	case s.change <- struct{}{}:
	default:
	}
}

// until returns a context that ends with ctx, or when the handle is closed, with the cause errHandleClosed then. It
// has no deadline, although ctx may have one: connections would break off just before it, as if Redis were away.
func (s *signals) until(ctx context.Context) (context.Context, context.CancelFunc) {
	until, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	stopped := context.AfterFunc(s.open, func() { cancel(errHandleClosed) })
	if s.open.Err() != nil {
		cancel(errHandleClosed) // before anything is tried
	}
	return until, func() {
		stop()
		stopped()
		cancel(nil)
	}
}

// closing is what a Run returns that has ended because of ctx, which until returned: errHandleClosed or nil.
func closing(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, errHandleClosed) {
		return err
	}
	return nil
}

// close ends the connection and tells all subscribers to look again: they find the handle closed.
func (s *signals) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.shut()
	if s.stop != nil {
		s.stop()
	}
	for _, ch := range s.channels {
		ch.send("")
	}
	clear(s.channels)
}

// send hands a message to all listeners. signals.mu is held, so nobody else sends.
func (ch *channel) send(message string) {
	for _, c := range ch.listeners {
		select {
		case c <- message:
			continue
		default:
		}
		for len(c) > 0 {
			select {
			case <-c:
			default:
			}
		}
		c <- "" // has lost the others
	}
}

// run keeps a connection as long as there are subscriptions.
func (s *signals) run(ctx context.Context) {
	var wait backoff
	ping := signalPing
	for {
		started := time.Now()
		err := s.session(ctx, &ping)
		if s.idle(ctx) {
			return
		}
		var answer redis.Error
		switch {
		case errors.Is(err, errSignalAge), errors.Is(err, errSignalIdle):
		case errors.As(err, &answer):
			sleep(ctx, signalRefused)
		default:
			if time.Since(started) > signalPing {
				wait.reset()
			}
			sleep(ctx, wait.next())
		}
	}
}

// idle says whether there is nothing to connect for, and lets the next subscription start anew then.
func (s *signals) idle(ctx context.Context) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.channels) > 0 && ctx.Err() == nil {
		return false
	}
	s.stop()
	s.stop, s.touched = nil, nil
	return true
}

// errSignalAge and errSignalIdle end connections that nothing is wrong with.
var (
	errSignalAge  = errors.New("delayed: the connection is old")
	errSignalIdle = errors.New("delayed: no subscriptions are left")
)

// session makes one connection and subscribes on it, until it breaks, is too old or not needed any more. This goroutine
// sends, another receives: redigo allows just that.
func (s *signals) session(ctx context.Context, ping *time.Duration) error {
	key, ok := s.begin()
	if !ok {
		return errSignalIdle
	}
	dialling, cancel := context.WithTimeout(ctx, callTimeout)
	conn, err := connect(dialling, s.src, key)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close()
	on := map[string]bool{}
	if wanted, err := s.settle(conn, on); err != nil || !wanted {
		return cmp.Or(err, errSignalIdle)
	}
	old := time.NewTimer(jitter(signalLife, 0.2))
	defer old.Stop()
	alive := time.NewTicker(*ping)
	defer alive.Stop()
	ctx, cancel = context.WithCancel(ctx)
	received := make(chan error, 1)
	over := false
	go func() { received <- s.receive(ctx, conn, ping) }()
	defer func() {
		cancel()
		if !over {
			<-received // before Close, which receives as well
		}
	}()
	var idle *time.Timer
	var abandoned <-chan time.Time
	defer func() {
		if idle != nil {
			idle.Stop()
		}
	}()
	for {
		wanted, err := s.settle(conn, on)
		if err != nil {
			return err
		}
		switch {
		case wanted:
			abandoned = nil
		case abandoned == nil:
			idle = time.NewTimer(s.linger)
			abandoned = idle.C
		}
		select {
		case <-s.change:
		case <-alive.C:
			if err := errors.Join(conn.Send("PING"), conn.Flush()); err != nil {
				return fmt.Errorf("delayed: PING: %w", err)
			}
		case err := <-received:
			over = true
			return err
		case <-abandoned:
			return errSignalIdle
		case <-old.C:
			return errSignalAge
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// begin prepares for a new connection. It returns one of the channels: in a cluster all nodes publish whatever one of
// them is told, so any node will do.
func (s *signals) begin() (key string, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.touched = s.touched[:0]
	for name, ch := range s.channels {
		ch.ready = false
		s.touched = append(s.touched, name)
		key, ok = name, true
	}
	return key, ok
}

// settle brings the connection's subscriptions, which on holds, to what is wanted, and says whether anything is.
func (s *signals) settle(conn redis.Conn, on map[string]bool) (wanted bool, err error) {
	var more, less []any
	s.mu.Lock()
	for _, name := range s.touched {
		_, want := s.channels[name]
		switch {
		case want: // again, if it was given up and is wanted anew: who came later waits for the answer
			on[name] = true
			more = append(more, name)
		case !want && on[name]:
			delete(on, name)
			less = append(less, name)
		}
	}
	s.touched = s.touched[:0]
	wanted = len(s.channels) > 0
	s.mu.Unlock()
	if len(less) > 0 {
		err = conn.Send("UNSUBSCRIBE", less...)
	}
	if len(more) > 0 && err == nil {
		err = conn.Send("SUBSCRIBE", more...)
	}
	if len(more)+len(less) > 0 && err == nil {
		err = conn.Flush()
	}
	if err != nil {
		return false, fmt.Errorf("delayed: SUBSCRIBE: %w", err)
	}
	return wanted, nil
}

// receive hands on what comes until the connection breaks or ctx ends.
func (s *signals) receive(ctx context.Context, conn redis.Conn, ping *time.Duration) error {
	for {
		start := time.Now()
		waiting, cancel := context.WithTimeout(ctx, 3*signalPing)
		reply, err := redis.Values(redis.ReceiveContext(conn, waiting))
		cancel()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
				// The connection's own timeout is shorter than the time between two signs of life.
				*ping = min(*ping, max(time.Since(start)/2, shortestWait))
			}
			return fmt.Errorf("delayed: waiting for signals: %w", err)
		}
		if len(reply) < 3 {
			continue // the answer to a PING
		}
		kind, _ := redis.String(reply[0], nil)
		name, _ := redis.String(reply[1], nil)
		switch kind {
		case "subscribe":
			s.deliver(name, "", true)
		case "message":
			if message, err := redis.String(reply[2], nil); err == nil && message != "" {
				s.deliver(name, message, false)
			}
		}
	}
}

func (s *signals) deliver(name, message string, confirmed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ch := s.channels[name]; ch != nil {
		ch.ready = ch.ready || confirmed
		ch.send(message)
	}
}
