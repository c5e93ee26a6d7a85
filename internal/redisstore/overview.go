package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
)

const (
	// overviewQueues bounds the queues that one call looks at.
	overviewQueues = 50
	// overviewBytes bounds the oldest message that an overview reads; of a longer one only the size is known.
	overviewBytes = 64 << 10
)

// Overview says how much a queue holds.
type Overview struct {
	Now                                           time.Time
	Pending, Suspects                             int
	Scheduled, Retry, Parked, Archived, Completed int
	Groups, Aggregating                           int
	LegacyClaims                                  int
	Workers                                       []string
	Paused                                        time.Time // since when; zero: it is not
	Weight                                        int       // 0: as each worker is configured
	Today                                         map[string]int64
	Oldest, OldestSuspect                         Stored
}

// Overviews reads how much stores of one handle hold, in their order. They may be of several slots.
func Overviews(ctx context.Context, stores []*Store) ([]Overview, error) {
	all := make([]Overview, len(stores))
	err := bySlot(stores, overviewQueues, func(places []int) error { return overviews(ctx, stores, places, all) })
	if err != nil {
		return nil, err
	}
	return all, nil
}

// overviews fills in the overviews of the stores at some places, which are of one slot. Redis's clock says which
// counters are those of today; if it has another day than the stores thought, it is asked again.
func overviews(ctx context.Context, stores []*Store, places []int, all []Overview) error {
	for range 2 {
		if err := overviewsOfDay(ctx, stores, places, all); err != nil {
			return err
		}
		another := false
		for _, p := range places {
			before := stores[p].StatsKey()
			stores[p].RedisTime(all[p].Now)
			another = another || stores[p].StatsKey() != before
		}
		if !another {
			break
		}
	}
	return nil
}

// overviewsOfDay is overviews with the counters of the day that it is by each store's clock.
func overviewsOfDay(ctx context.Context, stores []*Store, places []int, all []Overview) error {
	keys := make([]string, 0, 12*len(places))
	for _, p := range places {
		k := &stores[p].keys
		keys = append(keys, k.list, k.suspects, k.scheduled, k.retry, k.parked, k.archived, k.completed, k.groups,
			k.workers, k.legacy, k.control, stores[p].StatsKey())
	}
	answer, err := evalOn(ctx, stores[places[0]].Src, "overview", keys, overviewBytes)
	reply, err := values(answer, err, 1+len(places))
	if err != nil {
		return err
	}
	now, err := redis.Int64(reply[0], nil)
	if err != nil {
		return fmt.Errorf("%w: overview: %w", ErrReply, err)
	}
	for i, p := range places {
		o := &all[p]
		o.Now = time.UnixMilli(now)
		if err := o.scan(reply[1+i]); err != nil {
			return err
		}
		if o.Groups > 0 {
			if o.Aggregating, err = stores[p].groupedCalls(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// scan reads what the script says of one queue.
func (o *Overview) scan(reply any) error {
	row, err := values(reply, nil, 15)
	if err != nil {
		return fmt.Errorf("%w: overview: %w", ErrReply, err)
	}
	var paused, weight, counters any
	rest, err := redis.Scan(row, &o.Pending, &o.Suspects, &o.Scheduled, &o.Retry, &o.Parked, &o.Archived,
		&o.Completed, &o.Groups, &o.LegacyClaims, &o.Workers, &paused, &weight, &counters)
	if err == nil {
		o.Today, err = redis.Int64Map(counters, nil)
	}
	if err == nil {
		o.Oldest, err = storedOf(rest[0])
	}
	if err == nil {
		o.OldestSuspect, err = storedOf(rest[1])
	}
	if err != nil {
		return fmt.Errorf("%w: overview: %w", ErrReply, err)
	}
	if since, err := redis.String(paused, nil); err == nil {
		ms, _ := strconv.ParseInt(since, 10, 64) // 0 if somebody else has written it
		o.Paused = time.UnixMilli(ms)
	}
	o.Weight, _ = redis.Int(weight, nil)
	return nil
}

// groupedCalls adds up the calls that wait in groups.
func (s *Store) groupedCalls(ctx context.Context) (sum int, err error) {
	var at SetPlace
	for {
		page, err := s.members(ctx, s.keys.groups, at, MaxListPage, false)
		if err != nil || len(page) == 0 {
			return sum, err
		}
		keys := make([]string, len(page))
		for i := range page {
			keys[i] = s.keys.group + page[i].ID
		}
		reply, err := s.eval(ctx, "lengths", keys)
		lengths, err := ints(reply, err, len(keys))
		if err != nil {
			return 0, err
		}
		for _, n := range lengths {
			sum += int(n)
		}
		at = placeBehind(page)
	}
}

// CountersOf reads the counters of one UTC day.
func (s *Store) CountersOf(ctx context.Context, day time.Time) (map[string]int64, error) {
	return redis.Int64Map(s.do(ctx, "HGETALL", s.keys.statsOf(day)))
}

// Memory adds up how much memory the queue's keys take, as MEMORY USAGE estimates it. Keys of claims and of groups,
// which are small or short-lived, are left out.
func (s *Store) Memory(ctx context.Context) (bytes int64, err error) {
	k := &s.keys
	for _, key := range []string{
		k.list, k.noti, k.suspects, k.scheduled, k.retry, k.parked, k.archived, k.completed, k.tasks, k.info, k.results,
		k.locks, k.revoked, k.gathered,
	} {
		n, err := redis.Int64(s.do(ctx, "MEMORY", "USAGE", key, "SAMPLES", memorySamples))
		if err != nil && err != redis.ErrNil { //nolint:errorlint // redigo returns it as it is
			return 0, err
		}
		bytes += n
	}
	return bytes, nil
}

// memorySamples is how many elements of a key MEMORY USAGE looks at.
const memorySamples = 20
