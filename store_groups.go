package delayed

import (
	"context"
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// groups reads the first n groups. Those that go meanwhile are left out.
func (s *store) groups(ctx context.Context, n int) ([]GroupInfo, error) {
	found, err := redis.Values(s.read(ctx, "ZRANGE", s.keys.groups, 0, n-1, "WITHSCORES"))
	if err != nil {
		return nil, err
	}
	list := make([]GroupInfo, 0, len(found)/2)
	for len(found) > 1 {
		var name string
		var due float64 // some servers write large round numbers as 4e+12
		if found, err = redis.Scan(found, &name, &due); err != nil {
			return nil, err
		}
		size, err := redis.Int(s.read(ctx, "LLEN", s.keys.group+name))
		if err != nil {
			return nil, err
		}
		if size == 0 {
			continue
		}
		first, err := redis.Bytes(s.read(ctx, "LINDEX", s.keys.group+name, 0))
		if err != nil && !errors.Is(err, redis.ErrNil) {
			return nil, err
		}
		g := GroupInfo{Size: size, Due: time.UnixMilli(int64(due))}
		if msg, err := wire.Parse(first, workerLimits); err == nil && msg.Meta.Extra != nil {
			g.Key, g.Func = msg.Meta.Extra.Group, msg.Path
		}
		list = append(list, g)
	}
	return list, nil
}

// aggregating returns the message of the task with an id that waits in a group, nil if there is none. It reads the groups one after the other, so it is for those who ask for one
// task, and only when the task is nowhere else.
func (s *store) aggregating(ctx context.Context, id string) ([]byte, error) {
	names, err := redis.Strings(s.read(ctx, "ZRANGE", s.keys.groups, 0, -1))
	if err != nil {
		return nil, err
	}
	const page = 200
	for _, name := range names {
		for from := 0; ; from += page {
			messages, err := redis.ByteSlices(s.read(ctx, "LRANGE", s.keys.group+name, from, from+page-1))
			if err != nil {
				return nil, err
			}
			for _, raw := range messages {
				if msg, err := wire.Parse(raw, workerLimits); err == nil && msg.Meta.ID == id {
					return raw, nil
				}
			}
			if len(messages) < page {
				break
			}
		}
	}
	return nil, nil
}
