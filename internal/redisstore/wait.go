package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/answer"
)

// LongestWait is how long a call without a deadline waits for replicas. It is shorter than the call's time-out, so that
// Redis can still answer how many replicas have confirmed.
const LongestWait = CallTimeout / 5 * 4

// waitOf returns how long a call waits for replicas.
func waitOf(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return LongestWait
	}
	// Redis takes 0 for no limit at all.
	return min(max(time.Until(deadline)/5*4, time.Millisecond), LongestWait)
}

// sendWaiting is send followed by WAIT in the same request: Redis waits until so many replicas have what this
// connection has written. If fewer confirm it within the given time, the error wraps ErrUnknown.
func (s *Script) sendWaiting(
	ctx context.Context, conn redis.Conn, within time.Duration, replicas int, all []any,
) (any, error) {
	reply, confirmed, err, lacking := pipelined(ctx, conn, within, replicas, "EVALSHA", all)
	if answer.Code(err) == "NOSCRIPT" {
		all[0] = s.Source
		reply, confirmed, err, lacking = pipelined(ctx, conn, within, replicas, "EVAL", all)
	}
	switch {
	case err != nil:
		return nil, s.Explain(ofOtherKind(ctx, conn, CallTimeout, err))
	case lacking != nil:
		return nil, fmt.Errorf("%w: %s: it was enqueued, and whether %d replicas have it is unknown: WAIT: %w",
			ErrUnknown, s.Name, replicas, lacking)
	case confirmed < replicas:
		return nil, fmt.Errorf("%w: %s: it was enqueued, and %d of %d replicas have confirmed it within %v",
			ErrUnknown, s.Name, confirmed, replicas, within)
	}
	return reply, nil
}

// pipelined sends a script's call and WAIT in one request. err is the error of the call, lacking that of WAIT.
func pipelined(ctx context.Context, conn redis.Conn, within time.Duration, replicas int, cmd string, all []any) (
	reply any, confirmed int, err, lacking error,
) {
	if err = conn.Send(cmd, all...); err == nil {
		err = conn.Send("WAIT", replicas, within.Milliseconds())
	}
	if err == nil {
		err = conn.Flush()
	}
	if err != nil {
		return nil, 0, err, nil
	}
	if reply, err = receive(ctx, conn); err != nil && !answer.Is(err) {
		return nil, 0, err, nil
	}
	confirmed, lacking = redis.Int(receive(ctx, conn))
	return reply, confirmed, err, lacking
}

// receive waits for the answer to a command that was sent.
func receive(ctx context.Context, conn redis.Conn) (any, error) {
	if ctx.Done() == nil {
		return redis.ReceiveWithTimeout(conn, CallTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	return redis.ReceiveContext(conn, ctx)
}
