package idleconn_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/idleconn"
)

// conn answers PING with err, and records that it was asked.
type conn struct {
	redis.Conn
	asked int
	err   error
	limit time.Duration // that the last call was given
}

func (c *conn) DoContext(ctx context.Context, cmd string, _ ...any) (any, error) {
	c.asked++
	until, _ := ctx.Deadline()
	c.limit = time.Until(until)
	return cmd, c.err
}

func (c *conn) ReceiveContext(context.Context) (any, error) { return nil, errors.New("not used") }

func TestCheck(t *testing.T) {
	check := idleconn.Check(10*time.Second, 5*time.Second)
	now := time.Now()
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	c := &conn{}
	if err := check(t.Context(), c, ago(9*time.Second)); err != nil || c.asked != 0 {
		t.Errorf("used 9 s ago: %v, asked %d times; expected that it is taken as it is", err, c.asked)
	}
	if err := check(t.Context(), c, ago(11*time.Second)); err != nil || c.asked != 1 {
		t.Errorf("used 11 s ago: %v, asked %d times; expected one PING", err, c.asked)
	}
	if c.limit <= 4*time.Second || c.limit > 5*time.Second {
		t.Errorf("the PING had %v, expected 5 s", c.limit)
	}
	c.err = errors.New("no answer")
	if err := check(t.Context(), c, ago(11*time.Second)); !errors.Is(err, c.err) || c.asked != 2 {
		t.Errorf("one that does not answer: %v, asked %d times", err, c.asked)
	}
	for _, d := range []time.Duration{11 * time.Second, time.Second} {
		if err := check(t.Context(), c, ago(d)); err == nil || c.asked != 2 {
			t.Errorf("another of before: %v, asked %d times; expected that it is condemned", err, c.asked)
		}
	}
	if err := check(t.Context(), c, time.Now().Add(time.Millisecond)); err != nil || c.asked != 2 {
		t.Errorf("one that was used since: %v, asked %d times", err, c.asked)
	}
}
