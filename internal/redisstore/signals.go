package redisstore

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

	"github.com/godelayed/delayed/internal/loop"
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
	// SignalBuffer bounds the messages that wait for one subscriber. More are replaced by the demand to look again.
	SignalBuffer = 64
)

// Signals receives what is published for this process, over one connection for each handle. What it brings makes things
// fast, and nothing depends on it: a message may be lost with a connection, and then an empty one says that it is time
// to look at what is durable.
//
// The connection is made with the first subscription and closed a while after the last.
type Signals struct {
	src    Source
	Linger time.Duration   // signalLinger
	Again  time.Duration   // lookEvery, of who waits for a task
	Open   context.Context // ends when the handle is closed
	shut   context.CancelFunc

	Mu       sync.Mutex // protects the following
	Channels map[string]*Channel
	touched  []string // channels whose subscriptions have changed
	stop     context.CancelFunc
	closed   bool
	change   chan struct{} // holds an element when touched has
}

// Channel is one channel with those who listen to it.
type Channel struct {
	Listeners []chan string
	ready     bool // Redis has confirmed the subscription on the present connection
}

// NewSignals returns the signals of one handle. It connects with the first subscription.
func NewSignals(src Source) *Signals {
	s := &Signals{
		src: src, Linger: signalLinger, Again: lookEvery, Channels: map[string]*Channel{},
		change: make(chan struct{}, 1),
	}
	s.Open, s.shut = context.WithCancel(context.Background())
	return s
}

// Subscribe returns what is published on a channel from now on, until unsubscribe is called. An empty message means
// "look again": the subscription holds from now on, and messages may have been lost before. It comes first once Redis
// has confirmed the subscription, again after each break of the connection and when the subscriber was too slow, and
// once, last of all, when the handle is closed. It never comes while Redis is away, so who waits for something that
// matters looks now and then without being told. subscribe never blocks; unsubscribe may be called more than once.
func (s *Signals) Subscribe(name string) (messages <-chan string, unsubscribe func()) {
	c := make(chan string, SignalBuffer)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		c <- ""
		return c, func() {}
	}
	ch := s.Channels[name]
	if ch == nil {
		ch = &Channel{}
		s.Channels[name] = ch
		s.touch(name)
	}
	ch.Listeners = append(ch.Listeners, c)
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

func (s *Signals) unsubscribe(name string, c chan string) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	ch := s.Channels[name]
	if ch == nil {
		return
	}
	ch.Listeners = slices.DeleteFunc(ch.Listeners, func(other chan string) bool { return other == c })
	if len(ch.Listeners) == 0 {
		delete(s.Channels, name)
		s.touch(name)
	}
}

// touch has the subscription of a channel looked at. s.mu is held.
func (s *Signals) touch(name string) {
	s.touched = append(s.touched, name)
	select {
	case s.change <- struct{}{}:
	default:
	}
}

// Until returns a context that ends with ctx, or when the handle is closed, with the cause ErrHandleClosed then. It
// has no deadline, although ctx may have one: connections would break off just before it, as if Redis were away.
func (s *Signals) Until(ctx context.Context) (context.Context, context.CancelFunc) {
	until, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	stopped := context.AfterFunc(s.Open, func() { cancel(ErrHandleClosed) })
	if s.Open.Err() != nil {
		cancel(ErrHandleClosed) // before anything is tried
	}
	return until, func() {
		stop()
		stopped()
		cancel(nil)
	}
}

// Closing is what a Run returns that has ended because of ctx, which until returned: ErrHandleClosed or nil.
func Closing(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrHandleClosed) {
		return err
	}
	return nil
}

// Close ends the connection and tells all subscribers to look again: they find the handle closed.
func (s *Signals) Close() {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		return
	}
	s.closed = true
	s.shut()
	if s.stop != nil {
		s.stop()
	}
	for _, ch := range s.Channels {
		ch.Send("")
	}
	clear(s.Channels)
}

// Send hands a message to all listeners. Signals.Mu is held, so nobody else sends.
func (ch *Channel) Send(message string) {
	for _, c := range ch.Listeners {
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
func (s *Signals) run(ctx context.Context) {
	var wait loop.Backoff
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
			loop.Sleep(ctx, signalRefused)
		default:
			if time.Since(started) > signalPing {
				wait.Reset()
			}
			loop.Sleep(ctx, wait.Next())
		}
	}
}

// idle reports whether there is nothing to connect for, and lets the next subscription start anew then.
func (s *Signals) idle(ctx context.Context) bool {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if len(s.Channels) > 0 && ctx.Err() == nil {
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
func (s *Signals) session(ctx context.Context, ping *time.Duration) error {
	key, ok := s.begin()
	if !ok {
		return errSignalIdle
	}
	dialling, cancel := context.WithTimeout(ctx, CallTimeout)
	conn, err := Connect(dialling, s.src, key)
	cancel()
	if err != nil {
		return err
	}
	defer conn.Close()
	on := map[string]bool{}
	if wanted, err := s.settle(conn, on); err != nil || !wanted {
		return cmp.Or(err, errSignalIdle)
	}
	old := time.NewTimer(loop.Jitter(signalLife, 0.2))
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
			idle = time.NewTimer(s.Linger)
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
func (s *Signals) begin() (key string, ok bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.touched = s.touched[:0]
	for name, ch := range s.Channels {
		ch.ready = false
		s.touched = append(s.touched, name)
		key, ok = name, true
	}
	return key, ok
}

// settle brings the connection's subscriptions, which on holds, to what is wanted, and reports whether anything is.
func (s *Signals) settle(conn redis.Conn, on map[string]bool) (wanted bool, err error) {
	var more, less []any
	s.Mu.Lock()
	for _, name := range s.touched {
		_, want := s.Channels[name]
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
	wanted = len(s.Channels) > 0
	s.Mu.Unlock()
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
func (s *Signals) receive(ctx context.Context, conn redis.Conn, ping *time.Duration) error {
	for {
		start := time.Now()
		waiting, cancel := context.WithTimeout(ctx, 3*signalPing)
		reply, err := redis.Values(redis.ReceiveContext(conn, waiting))
		cancel()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
				// The connection's own timeout is shorter than the time between two signs of life.
				*ping = min(*ping, max(time.Since(start)/2, ShortestWait))
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

func (s *Signals) deliver(name, message string, confirmed bool) {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if ch := s.Channels[name]; ch != nil {
		ch.ready = ch.ready || confirmed
		ch.Send(message)
	}
}

// SubscribeQueue subscribes to what the workers and schedulers of a queue are told.
func (s *Signals) SubscribeQueue(queue *Store) (messages <-chan string, unsubscribe func()) {
	return s.Subscribe(queue.Keys.Signals())
}

// SubscribeEnd subscribes to how a task ends.
func (s *Signals) SubscribeEnd(queue *Store, id string) (messages <-chan string, unsubscribe func()) {
	return s.Subscribe(queue.Keys.endedOf(id))
}

// Signal tells the workers and schedulers of the queue something that they find out by themselves, but later.
func (s *Store) Signal(ctx context.Context, message string) error {
	_, err := s.do(ctx, "PUBLISH", s.Keys.Signals(), message)
	return err
}

// EndGathered is the end of a call that was left out of the call of its group.
const EndGathered = "canceled"

// SignalEnd tells who waits for a task how it has ended, where no script does.
func (s *Store) SignalEnd(ctx context.Context, id, how string) error {
	_, err := s.do(ctx, "PUBLISH", s.Keys.endedOf(id), how)
	return err
}

// SignalParked is published with the path of a function behind it, when tasks of it were parked.
const SignalParked = "parked"
