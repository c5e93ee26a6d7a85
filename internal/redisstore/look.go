package redisstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// Seen is what Redis holds of one task. Times are those of Redis's clock; zero means that the task is not in that set.
type Seen struct {
	scheduled, retry, parked, Archived, Completed time.Time
	Now                                           time.Time

	Info    []byte // of a task in any set but completed
	Result  []byte // of a completed task, or the progress report of an active one
	Message Stored // of a task in any set but completed; only if the caller asked for it
}

// Place returns where the task is (scheduled, retry, parked, archived, completed, active or unknown), with its time
// there and its info. If several tasks have the id, waiting comes before archived, and archived before completed.
func (s *Seen) Place() (place string, due time.Time, info []byte) {
	for _, at := range [...]struct {
		name string
		due  time.Time
		info []byte
	}{
		{"scheduled", s.scheduled, s.Info},
		{"retry", s.retry, s.Info},
		{"parked", s.parked, s.Info},
		{"archived", s.Archived, s.Info},
		{"completed", s.Completed, s.Result},
	} {
		if !at.due.IsZero() {
			return at.name, at.due, at.info
		}
	}
	if s.Result != nil {
		return "active", time.Time{}, s.Result
	}
	return "unknown", time.Time{}, nil
}

// Look reads what is known of a task. It ignores expired entries of the completed set.
func (s *Store) Look(ctx context.Context, id string, message bool) (found Seen, err error) {
	k := &s.keys
	keys := []string{k.scheduled, k.retry, k.parked, k.archived, k.completed, k.tasks, k.info, k.results}
	most := 0
	if message {
		most = wire.WorkerLimits.Bytes
	}
	reply, err := s.eval(ctx, "look", keys, id, most, wire.InfoLimits.Bytes)
	row, err := values(reply, err, 9)
	if err != nil {
		return Seen{}, err
	}
	now, err := redis.Int64(row[0], nil)
	if err != nil {
		return Seen{}, fmt.Errorf("%w: look: %w", ErrReply, err)
	}
	found.Now = time.UnixMilli(now)
	scores, err := redis.Strings(row[1:6], nil)
	if err != nil {
		return Seen{}, fmt.Errorf("%w: look: %w", ErrReply, err)
	}
	for i, t := range []*time.Time{&found.scheduled, &found.retry, &found.parked, &found.Archived, &found.Completed} {
		if *t, err = ScoreTime(scores[i]); err != nil {
			return Seen{}, err
		}
	}
	for i, b := range []*[]byte{&found.Info, &found.Result} {
		if *b, err = redis.Bytes(row[6+i], nil); err != nil && !errors.Is(err, redis.ErrNil) {
			return Seen{}, fmt.Errorf("%w: look: %w", ErrReply, err)
		}
	}
	if found.Message, err = storedOf(row[8]); err != nil {
		return Seen{}, err
	}
	if !found.Completed.IsZero() && found.Completed.UnixMilli() <= now {
		found.Completed, found.Result = time.Time{}, nil
	}
	return found, nil
}
