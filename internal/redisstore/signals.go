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
	"github.com/godelayed/delayed/internal/staleconn"
)

const (
	// signalPing is the time between two PINGs on the connection. It becomes shorter on connections that time out
	// earlier.
	signalPing = 10 * time.Second
	// signalCheck is the time between two looks whether the server is still the master. A replica keeps subscriptions,
	// and nothing is published on it.
	signalCheck = time.Second
	// signalLinger is how long the connection outlives the last subscription.
	signalLinger = 10 * time.Second
	// signalLife is how long a connection is used. A server that has left its cluster, or a master that was replaced,
	// may keep it open and never publish on it again.
	signalLife = 5 * time.Minute
	// signalRefused is the pause after Redis has refused to subscribe: its ACL must change first.
	signalRefused = 30 * time.Second
	// signalBuffer bounds the messages that wait for one subscriber. When it is full, an empty message replaces them.
	signalBuffer = 64
)

// Signals receives what is published for this process, over one connection for each handle. Its messages only make
// things faster: one may be lost with a connection, and then an empty message makes subscribers look at the durable
// state.
//
// It connects with the first subscription and closes the connection a while after the last.
type Signals struct {
	src    Source
	linger time.Duration   // signalLinger
	Again  time.Duration   // lookEvery
	Open   context.Context // ends when the handle is closed
	shut   context.CancelFunc

	Mu       sync.Mutex // protects the following
	Channels map[string]*channel
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

// NewSignals returns the signals of one handle. It connects with the first subscription.
func NewSignals(src Source) *Signals {
	s := &Signals{
		src: src, linger: signalLinger, Again: lookEvery, Channels: map[string]*channel{},
		change: make(chan struct{}, 1),
	}
	s.Open, s.shut = context.WithCancel(context.Background())
	return s
}

// Subscribe returns what is published on a channel from now on, until unsubscribe is called. An empty message means
// "look again": the subscription holds from now on, and messages may have been lost before. An empty message comes
// when Redis has confirmed the subscription, after each break of the connection, when the subscriber was too slow, and,
// as the last one, when the handle is closed. None comes while Redis is away, so a subscriber must also look from time
// to time. Subscribe never blocks; unsubscribe may be called more than once.
func (s *Signals) Subscribe(name string) (messages <-chan string, unsubscribe func()) {
	c := make(chan string, signalBuffer)
	s.Mu.Lock()
	defer s.Mu.Unlock()
	if s.closed {
		c <- ""
		return c, func() {}
	}
	ch := s.Channels[name]
	if ch == nil {
		ch = &channel{}
		s.Channels[name] = ch
		s.markChanged(name)
	}
	ch.listeners = append(ch.listeners, c)
	if ch.ready {
		c <- ""
	}
	if s.stop == nil {
		ctx, cancel := context.WithCancel(context.Background())
		s.stop = cancel
		go s.keepConnected(ctx)
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
	ch.listeners = slices.DeleteFunc(ch.listeners, func(other chan string) bool { return other == c })
	if len(ch.listeners) == 0 {
		delete(s.Channels, name)
		s.markChanged(name)
	}
}

// markChanged makes keepConnected subscribe to a channel, or unsubscribe, as needed. s.Mu is held.
func (s *Signals) markChanged(name string) {
	s.touched = append(s.touched, name)
	select {
	case s.change <- struct{}{}:
	default:
	}
}

// Until returns a context that ends with ctx, or with the cause ErrHandleClosed when the handle is closed. It has no
// deadline even if ctx has one: connections would time out just before it, as if Redis were away.
func (s *Signals) Until(ctx context.Context) (context.Context, context.CancelFunc) {
	until, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	stopped := context.AfterFunc(s.Open, func() { cancel(ErrHandleClosed) })
	if s.Open.Err() != nil {
		cancel(ErrHandleClosed) // AfterFunc would do it only later
	}
	return until, func() {
		stop()
		stopped()
		cancel(nil)
	}
}

// Closing returns ErrHandleClosed if a context of Until ended because the handle was closed, else nil. It is what Run
// of a worker or scheduler returns.
func Closing(ctx context.Context) error {
	if err := context.Cause(ctx); errors.Is(err, ErrHandleClosed) {
		return err
	}
	return nil
}

// Close ends the connection and sends an empty message to all subscribers, who then find the handle closed.
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
func (ch *channel) Send(message string) {
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
		c <- "" // messages were lost
	}
}

// keepConnected keeps a connection while there are subscriptions.
func (s *Signals) keepConnected(ctx context.Context) {
	var wait loop.Backoff
	ping := signalPing
	for {
		started := time.Now()
		err := s.session(ctx, &ping)
		if s.idle(ctx) {
			return
		}
		switch {
		case errors.Is(err, errSignalAge), errors.Is(err, errSignalIdle), errors.Is(err, staleconn.ErrGivenUp):
		case Refused(err):
			loop.Sleep(ctx, signalRefused)
		default:
			if time.Since(started) > signalPing {
				wait.Reset()
			}
			loop.Sleep(ctx, wait.Next())
		}
	}
}

// idle reports whether nothing needs a connection. If so, the next subscription starts keepConnected again.
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

// errSignalAge and errSignalIdle end connections that still work.
var (
	errSignalAge  = errors.New("delayed: the connection is old")
	errSignalIdle = errors.New("delayed: no subscriptions are left")
)

// session makes one connection and subscribes on it, until it breaks, is too old or not needed any more. This goroutine
// sends and another one receives; redigo allows one of each.
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
	if wanted, err := s.syncSubscriptions(conn, on); err != nil || !wanted {
		return cmp.Or(err, errSignalIdle)
	}
	old := time.NewTimer(loop.Jitter(signalLife, 0.2))
	defer old.Stop()
	alive, check := time.NewTicker(*ping), time.NewTicker(signalCheck)
	defer alive.Stop()
	defer check.Stop()
	ctx, cancel = context.WithCancel(ctx)
	received := make(chan error, 1)
	over := false
	go func() { received <- s.receive(ctx, conn, ping) }()
	defer func() {
		cancel()
		if !over {
			<-received // Close receives too, so wait for the goroutine first
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
		wanted, err := s.syncSubscriptions(conn, on)
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
		case <-check.C:
			s.borrow(ctx, key)
			if err := conn.Err(); err != nil {
				return err //nolint:wrapcheck // ours
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

// borrow takes a connection out of the source and gives it back, if only that shows a change of the server.
func (s *Signals) borrow(ctx context.Context, key string) {
	src, ok := s.src.(interface{ Watched() bool })
	if !ok || src.Watched() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	if conn, err := Connect(ctx, s.src, key); err == nil {
		conn.Close()
	}
}

// begin prepares for a new connection. It returns one of the channels as the key to connect for: in a cluster every
// node publishes every message, so any node will do.
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

// syncSubscriptions subscribes and unsubscribes until on, the connection's subscriptions, matches the wanted channels.
// It reports whether any channel is wanted.
func (s *Signals) syncSubscriptions(conn redis.Conn, on map[string]bool) (wanted bool, err error) {
	var more, less []any
	s.Mu.Lock()
	for _, name := range s.touched {
		_, want := s.Channels[name]
		switch {
		case want: // even if on has it: a later subscriber waits for the confirmation
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

// receive delivers messages until the connection breaks or ctx ends.
func (s *Signals) receive(ctx context.Context, conn redis.Conn, ping *time.Duration) error {
	for {
		start := time.Now()
		waiting, cancel := context.WithTimeout(ctx, 3*signalPing)
		reply, err := redis.Values(redis.ReceiveContext(conn, waiting))
		cancel()
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) && ctx.Err() == nil {
				// The connection's own time-out is shorter than the time between two PINGs.
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

// SubscribeQueue subscribes to the messages for the workers and schedulers of a queue.
func (s *Signals) SubscribeQueue(queue *Store) (messages <-chan string, unsubscribe func()) {
	return s.Subscribe(queue.keys.signals())
}

// SubscribeEnd subscribes to the end of a task.
func (s *Signals) SubscribeEnd(queue *Store, id string) (messages <-chan string, unsubscribe func()) {
	return s.Subscribe(queue.keys.endedOf(id))
}

// SubscribeWatch subscribes to requests to publish the events of a queue: each is for how long, in ms.
func (s *Signals) SubscribeWatch(queue *Store) (messages <-chan string, unsubscribe func()) {
	return s.Subscribe(queue.keys.watch())
}

// SubscribeEvents subscribes to the events of a queue, which workers publish after RequestEvents.
func (s *Signals) SubscribeEvents(queue *Store) (messages <-chan string, unsubscribe func()) {
	return s.Subscribe(queue.keys.events())
}

func (s *Store) publish(ctx context.Context, channel string, message any) error {
	_, err := s.do(ctx, "PUBLISH", channel, message)
	return err
}

// RequestEvents asks the workers of the queue to publish their events for some time.
func (s *Store) RequestEvents(ctx context.Context, life time.Duration) error {
	return s.publish(ctx, s.keys.watch(), life.Milliseconds())
}

// Broadcast publishes events of the queue.
func (s *Store) Broadcast(ctx context.Context, events []byte) error {
	return s.publish(ctx, s.keys.events(), events)
}

// Signal publishes a message for the workers and schedulers of the queue. Without it they would notice the change only
// later.
func (s *Store) Signal(ctx context.Context, message string) error {
	return s.publish(ctx, s.keys.signals(), message)
}

// EndGathered is the end of a canceled call that was left out of the combined call of its group.
const EndGathered = "canceled"

// SignalEnd publishes how a task has ended, for ends that no script publishes.
func (s *Store) SignalEnd(ctx context.Context, id, how string) error {
	return s.publish(ctx, s.keys.endedOf(id), how)
}

// SignalParked is published, followed by the path of a function, when tasks of that function were parked.
const SignalParked = "parked"

// lookEvery is how often a caller that waits for a task looks by itself whether it has ended.
const lookEvery = 5 * time.Second
