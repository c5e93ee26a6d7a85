package delayed

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// Fields of the control hash. Those for one worker are followed by its id.
const (
	controlPaused  = "paused"
	controlRestart = "restart"
	controlWeight  = "weight"
	controlWorker  = "worker:"
)

// valueNow stands for the time of the server.
const valueNow = "now"

// control is what the workers of a queue are told. Its zero value says that nothing was ever told.
type control struct {
	version int64  // rises with every change; 0: there is no control hash
	paused  bool   // claim nothing
	restart string // another value than before: stop when what runs has ended
	weight  int    // in weighted order; 0: as configured
	order   string // to this worker: pause, quiet or stop; "": none
}

// restartedAfter says whether workers were told to restart after a time, in ms; 0 stands for one that has not come yet.
func (c *control) restartedAfter(ms int64) bool {
	at, err := strconv.ParseInt(c.restart, 10, 64)
	return err == nil && ms != 0 && at > ms
}

// setControl changes one field of the control hash; "" deletes it. It returns whether there was one before.
func (s *store) setControl(ctx context.Context, field, value string) (was bool, err error) {
	return redis.Bool(s.eval(ctx, scriptControl, []string{s.keys.control}, field, value, s.keys.signals()))
}

// control reads the control hash as it is for one worker.
func (s *store) control(ctx context.Context, worker string) (c control, err error) {
	reply, err := redis.Strings(s.read(ctx, "HMGET", s.keys.control, "version", controlPaused, controlRestart,
		controlWeight, controlWorker+worker))
	if err != nil {
		return c, err
	}
	if len(reply) != 5 {
		return c, fmt.Errorf("%w: HMGET", errReply)
	}
	// What is missing is "", and what is no number counts as missing.
	c.version, _ = strconv.ParseInt(reply[0], 10, 64)
	c.weight, _ = strconv.Atoi(reply[3])
	c.paused, c.restart, c.order = reply[1] != "", reply[2], reply[4]
	return c, nil
}

// lives says whether a worker has a heartbeat on the queue.
func (s *store) lives(ctx context.Context, worker string) (bool, error) {
	return redis.Bool(s.read(ctx, "EXISTS", s.keys.heartbeat+worker))
}
