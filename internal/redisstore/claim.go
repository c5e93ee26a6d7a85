package redisstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// maxClaim bounds the tasks of one claim: the script passes two values for each to Lua's unpack.
const maxClaim = 1000

// MaxUnparked bounds the parked tasks that one script looks at.
const MaxUnparked = 100

// ErrNoHeartbeat says that Redis has no heartbeat of the worker, which must register before it claims.
var ErrNoHeartbeat = errors.New("delayed: no heartbeat")

// ErrBatchUsed says that a batch number was used before. Nothing was claimed.
var ErrBatchUsed = errors.New("delayed: batch number was used before")

// ErrQueuePaused says that the queue is paused. Nothing was claimed.
var ErrQueuePaused = errors.New("delayed: queue is paused")

// ClaimCall is one call of claim.
type ClaimCall struct {
	Worker string
	Batch  uint64
	Most   int  // at most maxClaim; 0 only mends the notify list
	Held   int  // notifications in hand, 0 or 1
	Legacy bool // Legacy workers share the queue
	// Suspects claims from the queue's suspects.
	Suspects bool
	Mend     bool  // Mend the notify list of a legacy queue too
	Ended    Ended // claims to end in the same call

	Parked []string // ids of parked tasks to claim; nil: claim pending ones
}

// ClaimReply is the reply to a claim.
type ClaimReply struct {
	// Messages holds a []byte for each message, or its size as an int64 if it is too large. Message i has the token
	// batch-(i+1).
	Messages []any
	Left     int    // tasks still pending; for parked tasks, how many ids the script looked at
	Stood    []bool // for each claim to end, whether it stood; nil: all did
	Version  int64  // of the control hash; 0: there is none
}

// Claim ends claims and moves pending messages into the worker's processing hash. It ends claims even if it returns
// ErrNoHeartbeat, ErrBatchUsed or ErrQueuePaused. After an error of which MayHaveRun is true, the same call must never
// be sent again.
func (s *Store) Claim(ctx context.Context, c ClaimCall) (got ClaimReply, err error) {
	keys := []string{
		s.keys.list, s.keys.noti, s.keys.heartbeat + c.Worker, s.keys.processing + c.Worker, s.keys.claims + c.Worker,
		s.StatsKey(),
		s.keys.control,
	}
	args := make([]any, 0, 9+len(c.Ended.Batches)+len(c.Ended.Tokens))
	args = append(args, c.Batch, min(c.Most, maxClaim), c.Held, wire.WorkerLimits.Bytes, flag(c.Legacy), flag(c.Mend),
		statsLife)
	reply, err := redis.Values(s.eval(ctx, "claim", keys, c.Ended.append(args)...))
	if err != nil {
		return ClaimReply{}, err
	}
	if len(reply) < 3 {
		return ClaimReply{}, fmt.Errorf("%w: %d values from claim", ErrReply, len(reply))
	}
	if got.Stood, err = c.Ended.answers(reply[2]); err != nil {
		return ClaimReply{}, err
	}
	status, _ := reply[0].(int64)
	left, _ := reply[1].(int64)
	values := reply[3:]
	if err := claimRefused(status); err != nil {
		return got, err
	}
	if status == 2 && len(values) > 0 {
		if got.Version, err = redis.Int64(values[0], nil); err != nil {
			return ClaimReply{}, fmt.Errorf("%w: version of the control hash: %w", ErrReply, err)
		}
		values = values[1:]
	}
	got.Left, got.Messages = int(left), values
	return got, checkMessages(values)
}

// Unpark moves parked tasks into the worker's processing hash. After an error of which MayHaveRun is true, the same
// call must never be sent again.
func (s *Store) Unpark(ctx context.Context, c ClaimCall) (got ClaimReply, err error) {
	keys := []string{
		s.keys.parked, s.keys.tasks, s.keys.info, s.keys.heartbeat + c.Worker, s.keys.processing + c.Worker,
		s.keys.claims + c.Worker, s.keys.control,
	}
	reply, err := redis.Values(s.eval(ctx, "unpark", keys,
		argsOf(c.Parked, c.Batch, min(c.Most, MaxUnparked), wire.WorkerLimits.Bytes)...))
	if err != nil {
		return ClaimReply{}, err
	}
	numbers, err := ints(reply[:min(len(reply), 3)], nil, 3)
	if err != nil {
		return ClaimReply{}, fmt.Errorf("%w: unpark: %w", ErrReply, err)
	}
	if err := claimRefused(numbers[0]); err != nil {
		return ClaimReply{}, err
	}
	got = ClaimReply{Messages: reply[3:], Left: int(numbers[1]), Version: numbers[2]}
	return got, checkMessages(got.Messages)
}

// claimRefused returns why nothing was claimed, given the number with which the reply begins; nil if it may be that
// something was.
func claimRefused(status int64) error {
	switch status {
	case 1, 2:
		return nil
	case 0:
		return ErrNoHeartbeat
	case -2:
		return ErrQueuePaused
	}
	return ErrBatchUsed
}

// checkMessages checks that each value is a message, or the size of one.
func checkMessages(values []any) error {
	for _, v := range values {
		if _, err := storedOf(v); err != nil || v == nil {
			return fmt.Errorf("%w: %T as a message", ErrReply, v)
		}
	}
	return nil
}

// TokensOf returns the tokens of a batch of n claims, in order. They share the memory of one string.
func TokensOf(number uint64, n int) iter.Seq[string] {
	return func(yield func(string) bool) {
		head := append(strconv.AppendUint(make([]byte, 0, 32), number, 10), '-')
		var text strings.Builder
		text.Grow(n * (len(head) + len(strconv.Itoa(n))))
		for i := range n {
			start := text.Len()
			text.Write(strconv.AppendInt(head, int64(i+1), 10))
			if !yield(text.String()[start:]) {
				return
			}
		}
	}
}

// ParseToken splits a token into the number of its batch and its place in it, from 1.
func ParseToken(token string) (number uint64, place int, ok bool) {
	head, tail, _ := strings.Cut(token, "-")
	number, err1 := strconv.ParseUint(head, 10, 64)
	place, err2 := strconv.Atoi(tail)
	return number, place, err1 == nil && err2 == nil
}

// Mark notes in a worker's claims hash what sweepers may conclude from its death; the value "" removes the note.
func (s *Store) Mark(ctx context.Context, worker, note, value string) error {
	_, err := s.eval(ctx, "mark", []string{s.keys.claims + worker}, note, value)
	return err
}

// Tokens returns the tokens of a worker's claims.
func (s *Store) Tokens(ctx context.Context, worker string) ([]string, error) {
	return redis.Strings(s.do(ctx, "HKEYS", s.keys.processing+worker))
}
