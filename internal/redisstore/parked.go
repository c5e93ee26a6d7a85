package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

const (
	// ParkedPage bounds the parked tasks that are read at a time.
	ParkedPage = 100
	// MaxUnparked bounds the parked tasks that one script looks at.
	MaxUnparked = 100
)

// Unpark moves parked tasks into the worker's processing hash. After an error of which MayHaveRun is true, the same
// call must never be sent again.
func (s *Store) Unpark(ctx context.Context, c ClaimCall) (got ClaimReply, err error) {
	keys := []string{
		s.keys.parked, s.keys.tasks, s.keys.info, s.keys.heartbeat + c.Worker, s.keys.processing + c.Worker,
		s.keys.claims + c.Worker, s.keys.control,
	}
	args := make([]any, 0, 3+len(c.Parked))
	args = append(args, c.Batch, min(c.Most, MaxUnparked), wire.WorkerLimits.Bytes)
	for _, id := range c.Parked {
		args = append(args, id)
	}
	reply, err := redis.Values(s.eval(ctx, "unpark", keys, args...))
	if err != nil {
		return ClaimReply{}, err
	}
	if len(reply) < 3 {
		return ClaimReply{}, fmt.Errorf("%w: %d values from unpark", ErrReply, len(reply))
	}
	numbers, err := ints(reply[:3], nil, 3)
	if err != nil {
		return ClaimReply{}, fmt.Errorf("%w: unpark: %w", ErrReply, err)
	}
	switch numbers[0] {
	case 1:
	case 0:
		return ClaimReply{}, ErrNoHeartbeat
	case -2:
		return ClaimReply{}, ErrQueuePaused
	default:
		return ClaimReply{}, ErrBatchUsed
	}
	for _, v := range reply[3:] {
		if _, err := storedOf(v); err != nil || v == nil {
			return ClaimReply{}, fmt.Errorf("%w: %T as a message", ErrReply, v)
		}
	}
	return ClaimReply{Messages: reply[3:], Left: int(numbers[1]), Version: numbers[2]}, nil
}

// Filed is a task of a sorted set, without its message.
type Filed struct {
	ID   string
	Info []byte // nil for none
	Lock string // for Condemn: the lock that its message names
}

// ParkedPage reads a page of the parked set, without messages: reading up to a megabyte for each task, in every worker,
// would keep Redis busy. The first page holds the tasks that were parked last; each page is in the order of parking.
// With expired, pages begin with the oldest task and hold only tasks that have expired by our clock; the script condemn
// decides by Redis's clock.
func (s *Store) ParkedPage(ctx context.Context, offset, n int, expired bool) ([]Filed, error) {
	var ids []string
	var err error
	if expired {
		now := s.Now().UnixMilli()
		ids, err = redis.Strings(s.do(ctx, "ZRANGEBYSCORE", s.keys.parked, "-inf", now, "LIMIT", offset, n))
	} else {
		ids, err = redis.Strings(s.do(ctx, "ZRANGE", s.keys.parked, -offset-n, -offset-1))
	}
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	infos, err := s.infos(ctx, ids)
	if err != nil {
		return nil, err
	}
	page := make([]Filed, len(ids))
	for i := range ids {
		page[i] = Filed{ID: ids[i], Info: infos[i]}
	}
	return page, nil
}

// Condemn archives tasks that were parked for too long, or are due and too large. Their infos say why.
func (s *Store) Condemn(ctx context.Context, from Shelf, keep time.Duration, tasks []Filed) (int, error) {
	args := make([]any, 0, 2+3*len(tasks))
	args = append(args, statsLife, keep.Milliseconds())
	for i := range tasks {
		args = append(args, tasks[i].ID, tasks[i].Info, tasks[i].Lock)
	}
	keys := []string{s.shelfKey(from), s.keys.archived, s.keys.info, s.StatsKey(), s.keys.locks}
	return redis.Int(s.eval(ctx, "condemn", keys, args...))
}
