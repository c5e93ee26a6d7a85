package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"
)

// meter is a source that measures each command.
type meter struct {
	Source
	probe func() float64     // what it measures: the growth of this during a command
	most  map[string]float64 // command, or name of the script, to the most
	calls map[string]int
}

func (m *meter) Conn(ctx context.Context, key string) (redis.Conn, error) {
	conn, err := m.Source.Conn(ctx, key)
	if err != nil {
		return nil, err
	}
	return &meteredConn{Conn: conn, meter: m}, nil
}

type meteredConn struct {
	redis.Conn
	meter *meter
}

func (c *meteredConn) Do(cmd string, args ...any) (any, error) {
	defer c.meter.measure(cmd, args)()
	return c.Conn.Do(cmd, args...)
}

func (c *meteredConn) DoWithTimeout(timeout time.Duration, cmd string, args ...any) (any, error) {
	defer c.meter.measure(cmd, args)()
	return redis.DoWithTimeout(c.Conn, timeout, cmd, args...)
}

func (c *meteredConn) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	return redis.ReceiveWithTimeout(c.Conn, timeout)
}

func (m *meter) measure(cmd string, args []any) func() {
	name := nameOfCommand(cmd, args)
	start := m.probe()
	return func() {
		m.calls[name]++
		m.most[name] = max(m.most[name], m.probe()-start)
	}
}

// nameOfCommand is the name of the script for a script.
func nameOfCommand(cmd string, args []any) string {
	if cmd == "EVALSHA" && len(args) > 0 {
		for name, row := range Scripts {
			if row.Sha == fmt.Sprint(args[0]) {
				return name
			}
		}
	}
	return cmd
}
