package redisstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// Fields of the control hash. Those for one worker are followed by its id.
const (
	ControlPaused  = "paused"
	ControlRestart = "restart"
	ControlWeight  = "weight"
	ControlWorker  = "worker:"
)

// ValueNow stands for the time of the server.
const ValueNow = "now"

// Control holds the orders to the workers of a queue. The zero value holds none.
type Control struct {
	Version int64  // rises with every change; 0: there is no control hash
	Paused  bool   // claim nothing
	Restart string // when it changes, stop as soon as the running tasks have ended
	Weight  int    // in weighted order; 0: as configured
	Order   string // to this worker: pause, quiet or stop; "": none
}

// RestartedAfter reports whether a restart of workers was requested after the given time, in ms; 0 stands for a time
// that has not come yet.
func (c *Control) RestartedAfter(ms int64) bool {
	at, err := strconv.ParseInt(c.Restart, 10, 64)
	return err == nil && ms != 0 && at > ms
}

// SetControl changes one field of the control hash; "" deletes it. It returns whether there was one before.
func (s *Store) SetControl(ctx context.Context, field, value string) (was bool, err error) {
	return redis.Bool(s.eval(ctx, "control", []string{s.keys.control}, field, value, s.keys.signals()))
}

// Control reads the control hash as it is for one worker.
func (s *Store) Control(ctx context.Context, worker string) (c Control, err error) {
	reply, err := redis.Strings(s.do(ctx, "HMGET", s.keys.control, "version", ControlPaused, ControlRestart,
		ControlWeight, ControlWorker+worker))
	if err != nil {
		return c, err
	}
	if len(reply) != 5 {
		return c, fmt.Errorf("%w: HMGET", ErrReply)
	}
	// A missing field is "", and one that is no number counts as missing.
	c.Version, _ = strconv.ParseInt(reply[0], 10, 64)
	c.Weight, _ = strconv.Atoi(reply[3])
	c.Paused, c.Restart, c.Order = reply[1] != "", reply[2], reply[4]
	return c, nil
}

// Lives reports whether a worker has a heartbeat on the queue.
func (s *Store) Lives(ctx context.Context, worker string) (bool, error) {
	return redis.Bool(s.do(ctx, "EXISTS", s.keys.heartbeat+worker))
}
