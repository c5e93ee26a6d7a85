package delayed

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/wire"
)

// groupPage bounds the messages of a group that one script reads for who looks for a task.
const groupPage = 200

// waitingGroup is a group of calls that waits for more of them.
type waitingGroup struct {
	key, function string // empty when the first call cannot be read
	size          int
	due           time.Time
}

// groups reads the first n groups. Those that go meanwhile are left out.
func (s *store) groups(ctx context.Context, n int) ([]waitingGroup, error) {
	found, err := redis.Values(s.read(ctx, "ZRANGE", s.keys.groups, 0, n-1, "WITHSCORES"))
	if err != nil {
		return nil, err
	}
	list := make([]waitingGroup, 0, len(found)/2)
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
		first, err := s.page(ctx, s.keys.group+name, 0, 1)
		if err != nil {
			return nil, err
		}
		g := waitingGroup{size: size, due: time.UnixMilli(int64(due))}
		for _, m := range first {
			if msg, err := wire.Parse(m.bytes, wire.WorkerLimits); err == nil && msg.Meta.Extra != nil {
				g.key, g.function = msg.Meta.Extra.Group, msg.Path
			}
		}
		list = append(list, g)
	}
	return list, nil
}

// aggregating returns the message of the task with an id that waits in a group, and whether there is one. It reads the
// groups one after the other, so it is for those who ask for one task, and only when the task is nowhere else.
func (s *store) aggregating(ctx context.Context, id string) (message []byte, waits bool, err error) {
	names, err := redis.Strings(s.read(ctx, "ZRANGE", s.keys.groups, 0, -1))
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
				if msg, err := wire.Parse(m.bytes, wire.WorkerLimits); err == nil && msg.Meta.ID == id {
					return m.bytes, true, nil
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
