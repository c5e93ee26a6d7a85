package redisstore

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// Listed is a task of a sorted set, with its score.
type Listed struct {
	Filed
	Until int64 // ms since 1970
}

// FiledList reads a page of a shelf, by rank, and returns how many tasks the shelf has.
func (s *Store) FiledList(ctx context.Context, on Shelf, offset, n int) (page []Listed, total int, err error) {
	set := s.shelfKey(on)
	if total, err = redis.Int(s.do(ctx, "ZCARD", set)); err != nil || total <= offset {
		return nil, total, err
	}
	pairs, err := redis.Strings(s.do(ctx, "ZRANGE", set, offset, offset+n-1, "WITHSCORES"))
	if err != nil {
		return nil, 0, err
	}
	var ids []string
	for i := 0; i+1 < len(pairs); i += 2 {
		until, err := strconv.ParseFloat(pairs[i+1], 64)
		if err != nil {
			return nil, 0, fmt.Errorf("%w: ZRANGE: score %q", ErrReply, pairs[i+1])
		}
		ids = append(ids, pairs[i])
		page = append(page, Listed{Filed{ID: pairs[i]}, int64(until)})
	}
	infos, err := s.infos(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	for i := range page {
		page[i].Info = infos[i]
	}
	return page, total, nil
}

// FiledInfo reads the info of a task; nil if there is none.
func (s *Store) FiledInfo(ctx context.Context, id string) ([]byte, error) {
	infos, err := s.infos(ctx, []string{id})
	if err != nil {
		return nil, err
	}
	return infos[0], nil
}

// infos reads the infos of tasks; nil where there is none, or one larger than this package writes.
func (s *Store) infos(ctx context.Context, ids []string) ([][]byte, error) {
	return s.fields(ctx, s.keys.info, ids, maxInfo)
}
