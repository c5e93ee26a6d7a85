package redisstore

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

// Link is a connection that a loop keeps open. It is not safe for concurrent use.
type Link struct {
	Src  Source
	Key  string // of the node to connect to
	conn redis.Conn
}

// Open connects unless there is a connection that works as far as is known, and reports whether it has made a new one.
func (l *Link) Open(ctx context.Context) (fresh bool, err error) {
	if l.conn != nil && l.conn.Err() == nil {
		return false, nil
	}
	l.HangUp()
	conn, err := Connect(ctx, l.Src, l.Key)
	if err != nil {
		return false, ConnError(err)
	}
	l.conn = conn
	return true, nil
}

// HangUp closes the connection. The next Open makes a new one.
func (l *Link) HangUp() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// Connected reports whether there is a connection.
func (l *Link) Connected() bool { return l.conn != nil }

// eval runs a script.
func (l *Link) eval(ctx context.Context, script string, keys []string, args ...any) (any, error) {
	sc := Scripts[script]
	return sc.send(ctx, l.conn, CallTimeout, sc.evalshaArgs(keys, args))
}

// do sends a command.
func (l *Link) do(ctx context.Context, cmd string, args ...any) (any, error) {
	reply, err := do(ctx, l.conn, CallTimeout, cmd, args...)
	if err != nil {
		return nil, fmt.Errorf("delayed: %s: %w", cmd, err)
	}
	return reply, nil
}

// Ping waits for an answer.
func (l *Link) Ping(ctx context.Context) error {
	_, err := l.do(ctx, "PING")
	return err
}

// Time returns the time by Redis's clock.
func (l *Link) Time(ctx context.Context) (time.Time, error) {
	return clock(l.do(ctx, "TIME"))
}

// ServerID returns the id of the server's process, which changes when it starts anew; "" if the server does not tell
// it, or this user may not ask.
func (l *Link) ServerID(ctx context.Context) (string, error) {
	info, err := redis.String(l.do(ctx, "INFO", "server"))
	if answer.Forbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	lines := bufio.NewScanner(strings.NewReader(info))
	for lines.Scan() {
		if id, ok := strings.CutPrefix(lines.Text(), "run_id:"); ok {
			return strings.TrimSpace(id), nil
		}
	}
	return "", nil
}
