package delayed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

const (
	// maxClaim bounds the tasks of one claim: twice as many values go through Lua's unpack.
	maxClaim = 1000
	// maxClaimBytes bounds what one call reads or moves, unless its first task alone is larger. A claim ends at four
	// times the size of the largest task.
	maxClaimBytes = 4 << 20
)

// errNoHeartbeat says that Redis does not know the worker (any more); it must register before it claims.
var errNoHeartbeat = errors.New("delayed: no heartbeat")

// errBatchUsed says that a batch number was used before. Nothing was claimed.
var errBatchUsed = errors.New("delayed: batch number was used before")

// errQueuePaused says that the queue is paused. Nothing was claimed.
var errQueuePaused = errors.New("delayed: queue is paused")

// claimCall is one call of claim.
type claimCall struct {
	worker string
	batch  uint64
	most   int  // at most maxClaim; 0 only mends the notify list
	held   int  // notifications in hand, 0 or 1
	legacy bool // legacy workers share the queue
	// suspects: claim suspects of the queue
	suspects bool
	mend     bool  // mend the notify list of a legacy queue too
	ended    ended // end these claims by the way

	parked []string // ids of parked tasks to claim in place of pending ones; nil: these are not meant
}

// haul is what a claim brought.
type haul struct {
	// each a []byte, or the size, an int64, of one that is too large; message i has the token batch-(i+1)
	messages []any
	left     int    // what is still pending; of parked tasks, how many ids were looked at
	stood    []bool // which of the ended claims stood; nil: all
	version  int64  // of the control hash; 0: there is none
}

// claim ends claims and moves pending messages into the worker's processing hash. Claims end also when it answers
// errNoHeartbeat, errBatchUsed or errQueuePaused. It must never be sent again after an error of which mayHaveRun is
// true.
func (s *store) claim(ctx context.Context, c claimCall) (got haul, err error) {
	keys := []string{
		s.keys.list, s.keys.noti, s.keys.heartbeat + c.worker, s.keys.processing + c.worker, s.keys.claims + c.worker,
		s.statsKey(),
		s.keys.control,
	}
	args := make([]any, 0, 9+len(c.ended.batches)+len(c.ended.tokens))
	args = append(args, c.batch, min(c.most, maxClaim), c.held, wire.WorkerLimits.Bytes, flag(c.legacy), flag(c.mend),
		statsLife)
	reply, err := redis.Values(s.eval(ctx, scriptClaim, keys, c.ended.append(args)...))
	if err != nil {
		return haul{}, err
	}
	if len(reply) < 3 {
		return haul{}, fmt.Errorf("%w: %d values from claim", errReply, len(reply))
	}
	if got.stood, err = c.ended.answers(reply[2]); err != nil {
		return haul{}, err
	}
	status, _ := reply[0].(int64)
	left, _ := reply[1].(int64)
	values := reply[3:]
	switch {
	case status == 1:
	case status == 2 && len(values) > 0:
		if got.version, err = redis.Int64(values[0], nil); err != nil {
			return haul{}, fmt.Errorf("%w: version of the control hash: %w", errReply, err)
		}
		values = values[1:]
	case status == 0:
		return got, errNoHeartbeat
	case status == -2:
		return got, errQueuePaused
	default:
		return got, errBatchUsed
	}
	got.left = int(left)
	for _, v := range values {
		if _, err := storedOf(v); err != nil || v == nil {
			return haul{}, fmt.Errorf("%w: %T as a message", errReply, v)
		}
	}
	got.messages = values
	return got, nil
}

// unpark moves parked tasks into the worker's processing hash. Like claim it must never be sent again after an error
// of which mayHaveRun is true.
func (s *store) unpark(ctx context.Context, c claimCall) (got haul, err error) {
	keys := []string{
		s.keys.parked, s.keys.tasks, s.keys.info, s.keys.heartbeat + c.worker, s.keys.processing + c.worker,
		s.keys.claims + c.worker, s.keys.control,
	}
	args := make([]any, 0, 3+len(c.parked))
	args = append(args, c.batch, min(c.most, maxUnparked), maxClaimBytes)
	for _, id := range c.parked {
		args = append(args, id)
	}
	reply, err := redis.Values(s.eval(ctx, scriptUnpark, keys, args...))
	if err != nil {
		return haul{}, err
	}
	if len(reply) < 3 {
		return haul{}, fmt.Errorf("%w: %d values from unpark", errReply, len(reply))
	}
	numbers, err := ints(reply[:3], nil, 3)
	if err != nil {
		return haul{}, fmt.Errorf("%w: unpark: %w", errReply, err)
	}
	switch numbers[0] {
	case 1:
	case 0:
		return haul{}, errNoHeartbeat
	case -2:
		return haul{}, errQueuePaused
	default:
		return haul{}, errBatchUsed
	}
	for _, v := range reply[3:] {
		if _, ok := v.([]byte); !ok {
			return haul{}, fmt.Errorf("%w: %T as a message", errReply, v)
		}
	}
	return haul{messages: reply[3:], left: int(numbers[1]), version: numbers[2]}, nil
}

// wait blocks until one of keys has an element and returns the key it was popped from, or "" after limit.
func wait(ctx context.Context, l *link, keys []string, limit time.Duration) (string, error) {
	args := make([]any, 0, len(keys)+1)
	for _, k := range keys {
		args = append(args, k)
	}
	args = append(args, limit.Seconds())
	// The connection waits longer than Redis does, or a slow answer would lose the notification in it.
	reply, err := redis.Strings(do(ctx, l.conn, callTimeout+limit, "BLPOP", args...))
	switch {
	case errors.Is(err, redis.ErrNil):
		return "", nil
	case err != nil:
		return "", err
	case len(reply) != 2:
		return "", fmt.Errorf("%w: %d values from BLPOP", errReply, len(reply))
	}
	return reply[0], nil
}

// rewait ends the wait of a worker that has the rewait list among its keys.
func (s *store) rewait(ctx context.Context, worker string, life time.Duration) error {
	_, err := s.eval(ctx, scriptRewait, []string{s.keys.rewait + worker}, life.Milliseconds())
	return err
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
