package redisstore

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// ParkedPage bounds the parked tasks that are read at a time.
const ParkedPage = 100

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
