package faultnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ErrPanic has a held call panic when it is its answer.
var ErrPanic = errors.New("injected panic")

// Source is that of the store.
type Source interface {
	Conn(ctx context.Context, key string) (redis.Conn, error)
	Slot(key string) int
	Close() error
}

// HoldSource holds each call of a script until the test lets it go on.
type HoldSource struct {
	Source                                   // nil: calls are answered without a server
	Calls    chan *HeldCall                  // those that are about to be sent
	OnDialed func(ctx context.Context) error // called for each connection; may be nil
}

// HeldCall is one call of a script.
type HeldCall struct {
	Messages []string   // its arguments
	Answer   chan error // nil lets it through to the server
}

// OK lets the call through.
func (c *HeldCall) OK() { c.Answer <- nil }

// Conn returns a connection whose calls are held.
func (s *HoldSource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	if s.OnDialed != nil {
		if err := s.OnDialed(ctx); err != nil {
			return nil, err
		}
	}
	if s.Source == nil {
		return &heldConn{nil, s}, nil
	}
	conn, err := s.Source.Conn(ctx, key)
	return &heldConn{conn, s}, err
}

// Slot is that of a single server.
func (s *HoldSource) Slot(string) int { return 0 }

type heldConn struct {
	redis.Conn
	src *HoldSource
}

func (c *heldConn) Close() error {
	if c.Conn == nil {
		return nil
	}
	return c.Conn.Close()
}

func (c *heldConn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	held := &HeldCall{Answer: make(chan error)}
	keys, _ := args[1].(int)
	for _, a := range args[2+keys:] {
		held.Messages = append(held.Messages, fmt.Sprintf("%s", a))
	}
	c.src.Calls <- held
	if err := <-held.Answer; err != nil || c.Conn == nil {
		if errors.Is(err, ErrPanic) {
			panic(err)
		}
		return int64(1), err
	}
	return redis.DoWithTimeout(c.Conn, timeout, cmd, args...)
}

func (c *heldConn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, timeout)
}
