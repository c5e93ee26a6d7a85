package delayed

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// holdSource holds each call until the test lets it go on.
type holdSource struct {
	Source                                 // nil: calls are answered without a server
	calls  chan *heldCall                  // those that are about to be sent
	conn   func(ctx context.Context) error // called for each connection; may be nil
}

// heldCall is one call of the script enqueue.
type heldCall struct {
	messages []string
	answer   chan error // nil lets it through to the server
}

// ok lets the call through.
func (c *heldCall) ok() { c.answer <- nil }

func (s *holdSource) Conn(ctx context.Context, key string) (redis.Conn, error) {
	if s.conn != nil {
		if err := s.conn(ctx); err != nil {
			return nil, err
		}
	}
	if s.Source == nil {
		return &heldConn{nil, s}, nil
	}
	conn, err := s.Source.Conn(ctx, key)
	return &heldConn{conn, s}, err
}

func (s *holdSource) Slot(string) int { return 0 }

type heldConn struct {
	redis.Conn
	src *holdSource
}

func (c *heldConn) Close() error {
	if c.Conn == nil {
		return nil
	}
	return c.Conn.Close()
}

func (c *heldConn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	held := &heldCall{answer: make(chan error)}
	for _, a := range args[4:] {
		held.messages = append(held.messages, fmt.Sprintf("%s", a))
	}
	c.src.calls <- held
	if err := <-held.answer; err != nil || c.Conn == nil {
		if errors.Is(err, errPlanted) {
			panic(err)
		}
		return int64(1), err
	}
	return redis.DoWithTimeout(c.Conn, timeout, cmd, args...)
}

func (c *heldConn) ReceiveWithTimeout(time.Duration) (any, error) { panic("not used") }

var errPlanted = errors.New("planted panic")

// held is a coalescer whose calls are held, on a real server.
type held struct {
	*bench
	src *holdSource
	c   *coalescer
	now time.Time // stands still: no call stalls
}

func newHeld(t *testing.T) *held {
	t.Helper()
	b := newBench(t)
	b.Server.Do(t, "SCRIPT", "LOAD", scriptEnqueue.source)
	src := &holdSource{Source: b.rdb.loops, calls: make(chan *heldCall)}
	return &held{b, src, newCoalescer(newStore(src, "", b.Name)), time.Now()}
}

// enqueue enqueues a message in a goroutine of its own and returns once it is on its way or waits.
func (h *held) enqueue(ctx context.Context, message string) (result chan error) {
	h.T.Helper()
	count := func() int {
		h.c.mu.Lock()
		defer h.c.mu.Unlock()
		return waitingIn(h.c)
	}
	before := count()
	result = make(chan error, 1)
	go func() { result <- h.c.enqueue(ctx, []byte(message), h.now) }()
	h.Until("the task waits", func() bool { return count() > before })
	return result
}

// waitingIn is the number of tasks that wait.
func waitingIn(c *coalescer) (n int) {
	for b := c.first; b != nil; b = b.next {
		n += b.waiting
	}
	return n
}

// busy starts as many calls as are under way at once, each with one task, and returns them.
func (h *held) busy() (calls []*heldCall, results []chan error) {
	h.T.Helper()
	for i := range callsAtOnce {
		result := make(chan error, 1)
		go func() { result <- h.c.enqueue(bg, fmt.Append(nil, "busy", i), h.now) }()
		calls = append(calls, await(h.bench, "a call", h.src.calls))
		results = append(results, result)
	}
	return calls, results
}

func (h *held) call() *heldCall {
	h.T.Helper()
	return await(h.bench, "a call", h.src.calls)
}

// expect expects what a caller gets.
func (h *held) expect(what string, result chan error, want error) {
	h.T.Helper()
	if err := await(h.bench, what, result); !errors.Is(err, want) || (want == nil) != (err == nil) {
		h.T.Errorf("%s: %v, expected %v", what, err, want)
	}
}

// idle expects that nothing is left of all calls.
func (h *held) idle() {
	h.T.Helper()
	h.Until("no call is under way", func() bool {
		h.c.mu.Lock()
		defer h.c.mu.Unlock()
		return h.c.calls+h.c.givenUp+h.c.opening == 0 && h.c.first == nil && h.c.last == nil
	})
}
