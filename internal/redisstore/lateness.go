package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/metrics"
)

// latenessMark is in the key of the hash in which move counts how late due tasks became pending.
const latenessMark = "late"

// Lateness reads how late due tasks became pending, of all times. The counts end when no task has become due for 90
// days. It leaves out what is no count.
func (s *Store) Lateness(ctx context.Context) (h metrics.Histogram, err error) {
	fields, err := redis.StringMap(s.do(ctx, "HGETALL", s.keys.metrics+latenessMark))
	if err != nil {
		return h, err
	}
	for field, value := range fields {
		n, err := strconv.ParseUint(value, 10, 63)
		if err != nil {
			continue
		}
		if field == "sum" {
			h.Sum = time.Duration(min(n, maxSum)) * time.Microsecond
		} else if bucket, err := strconv.ParseUint(field, 10, 16); err == nil && bucket < metrics.Buckets {
			h.Counts[bucket] = n
		}
	}
	return h, nil
}

// maxSum is the longest sum that a Duration holds, in us.
const maxSum = 1 << 53
