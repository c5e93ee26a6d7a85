package delayed

import (
	"bufio"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// connect takes a connection out of a source.
func connect(ctx context.Context, src Source, key string) (redis.Conn, error) {
	conn, err := src.Conn(ctx, key)
	if err == nil && isNil(conn) {
		if bounded, ok := src.(*boundedSource); ok {
			src = bounded.Source
		}
		return nil, fmt.Errorf("the Conn of a %T has returned neither a connection nor an error: expected one of them",
			src)
	}
	return conn, err
}

// link is one connection that a loop keeps for long. It is not safe for concurrent use.
type link struct {
	src  Source
	key  string // of the node to connect to
	conn redis.Conn
}

// open connects unless there is a connection, and says whether it is a new one.
func (l *link) open(ctx context.Context) (fresh bool, err error) {
	if l.conn != nil {
		return false, nil
	}
	conn, err := connect(ctx, l.src, l.key)
	if err != nil {
		return false, connError(err)
	}
	l.conn = conn
	return true, nil
}

// hangUp gives the connection up. The next open makes a new one.
func (l *link) hangUp() {
	if l.conn != nil {
		l.conn.Close()
		l.conn = nil
	}
}

// connected says whether there is a connection.
func (l *link) connected() bool { return l.conn != nil }

// eval runs a script.
func (l *link) eval(ctx context.Context, sc *script, keys []string, args ...any) (any, error) {
	return sc.run(ctx, l.conn, callTimeout, keys, args)
}

// do sends a command.
func (l *link) do(ctx context.Context, cmd string, args ...any) (any, error) {
	reply, err := do(ctx, l.conn, callTimeout, cmd, args...)
	if err != nil {
		return nil, fmt.Errorf("delayed: %s: %w", cmd, err)
	}
	return reply, nil
}

// ping waits for an answer.
func (l *link) ping(ctx context.Context) error {
	_, err := l.do(ctx, "PING")
	return err
}

// time returns the time by Redis's clock.
func (l *link) time(ctx context.Context) (time.Time, error) {
	reply, err := l.do(ctx, "TIME")
	parts, err := ints(reply, err, 2)
	if err != nil {
		return time.Time{}, err
	}
	return time.Unix(parts[0], parts[1]*1000), nil
}

// serverID returns the id of the server's process, which changes when it starts anew.
func (l *link) serverID(ctx context.Context) (string, error) {
	info, err := redis.String(l.do(ctx, "INFO", "server"))
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
