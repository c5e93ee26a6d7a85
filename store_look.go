package delayed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// seen is what Redis holds of one task. Its times are Redis's; those that are zero mean that the task is not in that
// set.
type seen struct {
	scheduled, retry, parked, archived, completed time.Time
	now                                           time.Time

	info    []byte // of the sets but completed
	result  []byte // what is kept of a completed task, or was reported by an active one
	message stored // in one of the sets but completed; only if it was asked for
}

// look reads what is known of a task. An entry whose time in the completed set is over is none.
func (s *store) look(ctx context.Context, id string, message bool) (found seen, err error) {
	k := &s.keys
	keys := []string{k.scheduled, k.retry, k.parked, k.archived, k.completed, k.tasks, k.info, k.results}
	most := 0
	if message {
		most = wire.WorkerLimits.Bytes
	}
	reply, err := redis.Values(s.eval(ctx, scriptLook, keys, id, most, wire.InfoLimits.Bytes))
	if err != nil {
		return seen{}, err
	}
	if len(reply) != 9 {
		return seen{}, fmt.Errorf("%w: %d values from look", errReply, len(reply))
	}
	now, err := redis.Int64(reply[0], nil)
	if err != nil {
		return seen{}, fmt.Errorf("%w: look: %w", errReply, err)
	}
	found.now = time.UnixMilli(now)
	for i, t := range []*time.Time{&found.scheduled, &found.retry, &found.parked, &found.archived, &found.completed} {
		if *t, err = scoreTime(reply[1+i]); err != nil {
			return seen{}, err
		}
	}
	for i, b := range []*[]byte{&found.info, &found.result} {
		if *b, err = redis.Bytes(reply[6+i], nil); err != nil && !errors.Is(err, redis.ErrNil) {
			return seen{}, fmt.Errorf("%w: look: %w", errReply, err)
		}
	}
	if found.message, err = storedOf(reply[8]); err != nil {
		return seen{}, err
	}
	if !found.completed.IsZero() && found.completed.UnixMilli() <= now {
		found.completed, found.result = time.Time{}, nil
	}
	return found, nil
}

// scoreTime converts a score, ms since 1970, which servers write in several ways. The zero time stands for no score.
func scoreTime(score any) (time.Time, error) {
	text, err := redis.String(score, nil)
	if errors.Is(err, redis.ErrNil) {
		return time.Time{}, nil
	}
	var ms float64
	if err == nil {
		ms, err = strconv.ParseFloat(text, 64)
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("%w: score: %w", errReply, err)
	}
	return time.UnixMilli(int64(ms)), nil
}
