package redisstore

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// groupPage bounds the messages of a group that one script reads in search of a task.
const groupPage = 200

// WaitingGroup is a group of calls that waits for more of them.
type WaitingGroup struct {
	Name          string // in the groups set
	Key, Function string // empty when the first call cannot be read
	Size          int
	Due           time.Time
}

// Groups reads n groups from a rank on. It leaves out those that are fired meanwhile.
func (s *Store) Groups(ctx context.Context, from, n int) ([]WaitingGroup, error) {
	found, err := redis.Values(s.do(ctx, "ZRANGE", s.keys.groups, from, from+n-1, "WITHSCORES"))
	if err != nil {
		return nil, err
	}
	list := make([]WaitingGroup, 0, len(found)/2)
	for len(found) > 1 {
		var name string
		var due float64 // some servers write large round numbers as 4e+12
		if found, err = redis.Scan(found, &name, &due); err != nil {
			return nil, err
		}
		size, err := redis.Int(s.do(ctx, "LLEN", s.keys.group+name))
		if err != nil {
			return nil, err
		}
		if size == 0 {
			continue
		}
		first, err := s.page(ctx, s.keys.group+name, 0, 1)
		if err != nil {
			return nil, err
		}
		g := WaitingGroup{Name: name, Size: size, Due: time.UnixMilli(int64(due))}
		for _, m := range first {
			if msg, err := wire.Parse(m.Bytes, wire.WorkerLimits); err == nil && msg.Meta.Extra != nil {
				g.Key, g.Function = msg.Meta.Extra.Group, msg.Path
			}
		}
		list = append(list, g)
	}
	return list, nil
}

// GroupCount returns how many groups there are.
func (s *Store) GroupCount(ctx context.Context) (int, error) {
	return redis.Int(s.do(ctx, "ZCARD", s.keys.groups))
}

// MostHastened is how many groups Hasten takes.
const MostHastened = 1000

// Hasten makes groups due now, at most MostHastened, and returns how many of them there were.
func (s *Store) Hasten(ctx context.Context, names []string) (int, error) {
	args := make([]any, len(names))
	for i := range names {
		args[i] = names[i]
	}
	return redis.Int(s.eval(ctx, scriptHasten, []string{s.keys.groups, s.keys.wake}, args...))
}

// Aggregating finds the task with the given id in a group, and returns its message. It reads one group after the other,
// so use it for single tasks, and only when they are nowhere else.
func (s *Store) Aggregating(ctx context.Context, id string) (message []byte, waits bool, err error) {
	names, err := redis.Strings(s.do(ctx, "ZRANGE", s.keys.groups, 0, -1))
	if err != nil {
		return nil, false, err
	}
	for _, name := range names {
		for from := 0; ; {
			messages, err := s.page(ctx, s.keys.group+name, from, groupPage)
			if err != nil {
				return nil, false, err
			}
			for _, m := range messages {
				if msg, err := wire.Parse(m.Bytes, wire.WorkerLimits); err == nil && msg.Meta.ID == id {
					return m.Bytes, true, nil
				}
			}
			if len(messages) == 0 {
				break
			}
			from += len(messages)
		}
	}
	return nil, false, nil
}
