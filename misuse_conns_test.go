package delayed_test

import (
	"context"
	"testing"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/internal/redistest"
)

// emptySource is a source that returns neither connections nor errors.
type emptySource struct{ conn redis.Conn }

func (s *emptySource) Conn(context.Context, string) (redis.Conn, error) { return s.conn, nil }
func (*emptySource) Slot(string) int                                    { return 0 }
func (*emptySource) Close() error                                       { return nil }

// emptyConn is a connection whose nil pointer a program may return by mistake.
type emptyConn struct{ redis.Conn }

// misusedConnections returns uses of pools and sources whose connections are nil.
func misusedConnections(t *testing.T) (all []misuse) {
	t.Helper()
	for name, handle := range map[string]struct {
		open func() *delayed.Redis
		want string
	}{
		"pool whose Dial returns nil": {func() *delayed.Redis {
			dial := func() (redis.Conn, error) { return nil, nil } //nolint:nilnil // on purpose
			return delayed.FromPool(&redis.Pool{Dial: dial})
		}, "the pool's Dial has returned neither a connection nor an error"},
		"pool whose Dial returns a nil pointer": {func() *delayed.Redis {
			return delayed.FromPool(&redis.Pool{Dial: func() (redis.Conn, error) { return (*emptyConn)(nil), nil }})
		}, "the pool's Dial has returned neither a connection nor an error"},
		"source that returns nil": {func() *delayed.Redis {
			return delayed.FromSource(&emptySource{})
		}, "the Conn of a *delayed_test.emptySource has returned neither a connection nor an error"},
		"source that returns a nil pointer": {func() *delayed.Redis {
			return delayed.FromSource(&emptySource{(*emptyConn)(nil)})
		}, "the Conn of a *delayed_test.emptySource has returned neither a connection nor an error"},
	} {
		rdb := handle.open()
		t.Cleanup(func() { rdb.Close() })
		q := delayed.NewQueue(redistest.Name(t), rdb)
		for call, do := range map[string]func() error{
			"Ping":  func() error { return rdb.Ping(t.Context()) },
			"Check": func() error { _, err := rdb.Check(t.Context()); return err },
			"Delay": func() error { _, err := q.Delay(wrongOne, 1); return err },
			"Len":   func() error { _, err := q.Len(t.Context()); return err },
			"State": func() error { _, err := q.Ref("x").State(t.Context()); return err },
		} {
			all = append(all, misuse{call + " with a " + name, do, handle.want})
		}
	}
	return all
}
