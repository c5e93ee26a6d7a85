package rueidis

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"

	"github.com/godelayed/delayed/internal/clientconn"
)

// subscription is a connection for messages. One goroutine may send while another receives.
type subscription struct {
	wire   *wire
	lost   <-chan error // the connection has ended
	in     chan any     // what was received
	closed chan struct{}
	once   sync.Once

	out []clientconn.Command // of the sender: what waits for Flush
}

// buffered bounds what waits for Receive. The connection is not read while it is full.
const buffered = 64

var (
	errClosed      = errors.New("delayed: the connection is closed")
	errMessageOnly = errors.New("delayed: expected SUBSCRIBE, UNSUBSCRIBE or PING: the connection is for messages")
)

func newSubscription(w *wire) *subscription {
	s := &subscription{wire: w, in: make(chan any, buffered), closed: make(chan struct{})}
	s.lost = w.client.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage: func(m rueidis.PubSubMessage) {
			s.received([]any{[]byte("message"), []byte(m.Channel), []byte(m.Message)})
		},
		OnSubscription: func(m rueidis.PubSubSubscription) {
			s.received([]any{[]byte(m.Kind), []byte(m.Channel), m.Count})
		},
	})
	return s
}

func (s *subscription) received(message []any) {
	select {
	case s.in <- message:
	case <-s.closed:
	}
}

// Send implements clientconn.Subscription.
func (s *subscription) Send(cmd string, args ...any) error {
	switch strings.ToUpper(cmd) {
	case "SUBSCRIBE", "UNSUBSCRIBE", "PING":
		s.out = append(s.out, clientconn.Command{Name: strings.ToUpper(cmd), Args: args})
		return nil
	}
	return errMessageOnly
}

// Flush implements clientconn.Subscription. It waits until Redis has confirmed what is sent.
func (s *subscription) Flush() error {
	ctx, cancel := context.WithTimeout(context.Background(), takeTimeout)
	defer cancel()
	for _, cmd := range s.out {
		names := make([]string, len(cmd.Args))
		for i, arg := range cmd.Args {
			names[i], _ = redis.String(arg, nil)
		}
		var sent rueidis.Completed
		switch b := s.wire.client.B(); cmd.Name {
		case "SUBSCRIBE":
			sent = b.Subscribe().Channel(names...).Build()
		case "UNSUBSCRIBE":
			sent = b.Unsubscribe().Channel(names...).Build()
		default:
			sent = b.Ping().Build()
		}
		if err := s.wire.client.Do(ctx, sent).Error(); err != nil {
			s.Close()
			if err := new(rueidis.RedisError); errors.As(err, &err) {
				return refusal(err)
			}
			return err
		}
		if cmd.Name == "PING" {
			s.received([]any{[]byte("pong"), []byte("")})
		}
	}
	s.out = nil
	return nil
}

// ReceiveWithTimeout implements clientconn.Subscription.
func (s *subscription) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	if timeout <= 0 {
		return s.receive(context.Background(), nil)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	return s.receive(context.Background(), timer.C)
}

// ReceiveContext implements clientconn.Subscription.
func (s *subscription) ReceiveContext(ctx context.Context) (any, error) { return s.receive(ctx, nil) }

func (s *subscription) receive(ctx context.Context, late <-chan time.Time) (any, error) {
	select {
	case message := <-s.in:
		return message, nil
	default:
	}
	var err error
	select {
	case message := <-s.in:
		return message, nil
	case err = <-s.lost:
		if err == nil {
			err = errClosed
		}
	case <-s.closed:
		err = errClosed
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
		err = os.ErrDeadlineExceeded
	}
	s.Close()
	return nil, err
}

// Err implements clientconn.Subscription.
func (s *subscription) Err() error {
	select {
	case <-s.closed:
		return errClosed
	default:
		return nil
	}
}

// Close closes the network connection, which has subscriptions that nobody else wants.
func (s *subscription) Close() error {
	s.once.Do(func() {
		close(s.closed)
		s.wire.Discard()
	})
	return nil
}
