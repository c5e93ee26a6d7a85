package redisstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// MoveBatch bounds the tasks that one script makes pending.
const MoveBatch = 200

// Todo is what Check found on one queue.
type Todo struct {
	Pending int
	Due     time.Duration // until the next scheduled task or retry; negative: none
	Parked  int
	// Suspects are pending too, in a list of their own.
	Suspects int
	Group    time.Duration // until the next group is due; negative: none
	// Unknown: a key is of another type, so that nothing is known of the queue.
	Unknown bool
}

// Check returns what there is to do on stores of one slot. If keys of a store are of another type, the error says so,
// and the todos of the other stores are right. After other errors todos is nil.
func Check(ctx context.Context, src Source, stores []*Store) (todos []Todo, err error) {
	return perStore(stores, slotPage, Todo{Due: -1, Group: -1, Unknown: true}, func(page []*Store) ([]Todo, error) {
		return checkPage(ctx, src, page)
	})
}

// checkPage is Check for stores of one call.
func checkPage(ctx context.Context, src Source, stores []*Store) ([]Todo, error) {
	keys := make([]string, 0, 6*len(stores))
	for _, s := range stores {
		k := &s.keys
		keys = append(keys, k.list, k.scheduled, k.retry, k.parked, k.groups, k.suspects)
	}
	reply, err := evalOn(ctx, src, "check", keys)
	values, err := ints(reply, err, 5*len(stores))
	if err != nil {
		return nil, err
	}
	todos := make([]Todo, 0, len(stores))
	for v := range slices.Chunk(values, 5) {
		todos = append(todos, Todo{
			Pending: int(v[0]), Due: time.Duration(v[1]) * time.Millisecond, Parked: int(v[2]),
			Group: time.Duration(v[3]) * time.Millisecond, Suspects: int(v[4]),
		})
	}
	return todos, nil
}

// LargeTask is a filed task whose message is too large to be read.
type LargeTask struct {
	ID   string
	Size int
}

// Move makes up to most due tasks of one set pending and returns the time until the next one is due, negative for none.
// It leaves due tasks that are too large where they are, and returns them.
func (s *Store) Move(
	ctx context.Context, from Shelf, most int,
) (moved int, next time.Duration, large []LargeTask, err error) {
	keys := []string{
		s.shelfKey(from), s.keys.tasks, s.keys.info, s.keys.list, s.keys.noti, s.keys.metrics + latenessMark,
	}
	reply, err := redis.Values(s.eval(ctx, "move", keys, most, MaxCallBytes, wire.WorkerLimits.Bytes, statsLife))
	if err != nil {
		return 0, 0, nil, err
	}
	var ms int64
	rest, err := redis.Scan(reply, &moved, &ms)
	for err == nil && len(rest) > 0 {
		var t LargeTask
		rest, err = redis.Scan(rest, &t.ID, &t.Size)
		large = append(large, t)
	}
	if err != nil {
		return 0, 0, nil, fmt.Errorf("%w: move: %w", ErrReply, err)
	}
	return moved, time.Duration(ms) * time.Millisecond, large, nil
}
