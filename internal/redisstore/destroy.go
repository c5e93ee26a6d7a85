package redisstore

import (
	"context"
	"time"

	"github.com/gomodule/redigo/redis"
)

// destroyPage bounds the keys that one command deletes.
const destroyPage = 500

// Destroy deletes all keys of the queue, its tasks with them. It is not atomic: use it while nobody uses the queue.
func (s *Store) Destroy(ctx context.Context, workers []string) error {
	k := &s.keys
	doomed := []any{
		k.list, k.noti, k.wake, k.suspects, k.suspectsNoti, k.legacy, k.workers, k.scheduled, k.retry, k.archived,
		k.parked, k.tasks, k.info, k.deaths, k.sweeper, k.mode, k.completed, k.results, k.locks, k.revoked,
		k.control, k.functions, k.groups, k.gathered, k.periodic, k.ticks,
		k.metricsKey(GrainTotal, time.Time{}), k.metrics + latenessMark,
	}
	for _, w := range workers {
		doomed = append(doomed, k.processing+w, k.claims+w, k.heartbeat+w, k.rewait+w)
	}
	groups, err := redis.Strings(s.do(ctx, "ZRANGE", k.groups, 0, -1))
	if err != nil {
		return err
	}
	for _, g := range groups {
		doomed = append(doomed, k.group+g)
	}
	entries, err := redis.Strings(s.do(ctx, "HKEYS", k.periodic))
	if err != nil {
		return err
	}
	for _, e := range entries {
		doomed = append(doomed, k.history+e)
	}
	now, err := s.Time(ctx)
	if err != nil {
		return err
	}
	for day := -1; day <= statsLife/(24*60*60); day++ {
		at := now.Add(-time.Duration(day) * 24 * time.Hour)
		doomed = append(doomed, k.statsOf(at), k.metricsKey(GrainDay, at))
	}
	for _, g := range []Grain{GrainSecond, GrainMinute} {
		for ago := -grains[g].span; ago <= grains[g].life; ago += grains[g].span {
			doomed = append(doomed, k.metricsKey(g, now.Add(-ago)))
		}
	}
	for len(doomed) > 0 {
		n := min(len(doomed), destroyPage)
		if _, err := s.do(ctx, "UNLINK", doomed[:n]...); err != nil {
			return err
		}
		doomed = doomed[n:]
	}
	return nil
}
