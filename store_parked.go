package delayed

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// listed is a task of a sorted set, with its score.
type listed struct {
	filed
	until int64 // ms since 1970
}

// filedList reads a page of a set, by rank, and how many tasks that has.
func (s *store) filedList(ctx context.Context, set string, offset, n int) (page []listed, total int, err error) {
	if total, err = redis.Int(s.read(ctx, "ZCARD", set)); err != nil || total <= offset {
		return nil, total, err
	}
	pairs, err := redis.Strings(s.read(ctx, "ZRANGE", set, offset, offset+n-1, "WITHSCORES"))
	if err != nil {
		return nil, 0, err
	}
	var ids []string
	for i := 0; i+1 < len(pairs); i += 2 {
		until, err := strconv.ParseFloat(pairs[i+1], 64)
		if err != nil {
			return nil, 0, fmt.Errorf("%w: ZRANGE: score %q", errReply, pairs[i+1])
		}
		ids = append(ids, pairs[i])
		page = append(page, listed{filed{id: pairs[i]}, int64(until)})
	}
	infos, err := s.infos(ctx, ids)
	if err != nil {
		return nil, 0, err
	}
	for i := range page {
		page[i].info = infos[i]
	}
	return page, total, nil
}

// infos reads what is known of tasks beyond their messages; nil where nothing is, or more than this package writes.
func (s *store) infos(ctx context.Context, ids []string) ([][]byte, error) {
	return s.fields(ctx, s.keys.info, ids, maxInfo)
}
