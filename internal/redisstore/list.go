package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/seam"
	"github.com/godelayed/delayed/internal/wire"
)

// List returns all tasks of the queue, state by state. It is not atomic: use it while nothing else uses the queue.
func (s *Store) List(ctx context.Context) (tasks []seam.Filed, err error) {
	messages, err := s.listed(ctx, s.keys.list)
	suspects, err2 := s.listed(ctx, s.keys.suspects)
	messages, err = append(messages, suspects...), errors.Join(err, err2)
	revoked, err2 := redis.Strings(s.do(ctx, "ZRANGE", s.keys.revoked, 0, -1))
	err = errors.Join(err, err2)
	for _, m := range messages {
		f := seam.Filed{State: "pending", ID: idOf(m), Message: m}
		if f.ID != "" && slices.Contains(revoked, f.ID) {
			f.State = "canceled"
		}
		tasks = append(tasks, f)
	}
	workers, err2 := s.Workers(ctx)
	err = errors.Join(err, err2)
	for _, worker := range workers {
		hash := s.keys.processing + worker
		tokens, err2 := redis.Strings(s.do(ctx, "HKEYS", hash))
		err = errors.Join(err, err2)
		claims, err2 := s.fields(ctx, hash, tokens, wire.WorkerLimits.Bytes)
		err = errors.Join(err, err2)
		for _, m := range claims {
			tasks = append(tasks, seam.Filed{State: "active", ID: idOf(m), Message: m})
		}
	}
	groups, err2 := s.scores(ctx, s.keys.groups)
	err = errors.Join(err, err2)
	for _, g := range groups {
		calls, err2 := s.listed(ctx, s.keys.group+g.member)
		err = errors.Join(err, err2)
		for _, m := range calls {
			tasks = append(tasks, seam.Filed{State: "aggregating", ID: idOf(m), Message: m, At: g.at})
		}
	}
	for _, set := range []struct{ state, key string }{
		{"scheduled", s.keys.scheduled},
		{"retry", s.keys.retry},
		{"parked", s.keys.parked},
		{"archived", s.keys.archived},
		{"completed", s.keys.completed},
	} {
		filed, err2 := s.listSet(ctx, set.state, set.key)
		tasks, err = append(tasks, filed...), errors.Join(err, err2)
	}
	return tasks, err
}

// scored is a member of a sorted set whose scores are times.
type scored struct {
	member string
	at     time.Time
}

// scores returns all members of a sorted set of times.
func (s *Store) scores(ctx context.Context, key string) (all []scored, err error) {
	values, err := redis.Strings(s.do(ctx, "ZRANGE", key, 0, -1, "WITHSCORES"))
	for i := 0; i+1 < len(values) && err == nil; i += 2 {
		var ms float64
		ms, err = strconv.ParseFloat(values[i+1], 64)
		all = append(all, scored{values[i], time.UnixMilli(int64(ms))})
	}
	return all, err
}

// listSet returns the tasks of one set.
func (s *Store) listSet(ctx context.Context, state, key string) (tasks []seam.Filed, err error) {
	all, err := s.scores(ctx, key)
	for _, m := range all {
		if err != nil {
			break
		}
		f := seam.Filed{State: state, ID: m.member, At: m.at}
		if state == "completed" { // their infos are in the results hash
			f.Info, err = s.field(ctx, s.keys.results, f.ID)
			f.Message = wire.ParseInfo(f.Info).Message
			tasks = append(tasks, f)
			continue
		}
		if f.Message, err = s.field(ctx, s.keys.tasks, f.ID); err != nil {
			break
		}
		f.Info, err = s.field(ctx, s.keys.info, f.ID)
		tasks = append(tasks, f)
	}
	return tasks, err
}

// listed returns all messages of a list, nil for those that are too large.
func (s *Store) listed(ctx context.Context, list string) (messages [][]byte, err error) {
	for skip := 0; ; {
		some, err := s.page(ctx, list, skip, MaxListPage)
		if err != nil || len(some) == 0 {
			return messages, err
		}
		skip += len(some)
		for _, m := range some {
			if !IsGap(m) {
				messages = append(messages, m.Bytes)
			}
		}
	}
}

// field returns a field of a hash, nil if it is missing or too large.
func (s *Store) field(ctx context.Context, hash, name string) ([]byte, error) {
	some, err := s.someFields(ctx, hash, []string{name}, wire.InfoLimits.Bytes)
	if err != nil {
		return nil, err
	}
	return some[0].Bytes, nil
}

// idOf returns the id that a message carries, "" for none.
func idOf(message []byte) string {
	m, err := wire.Parse(message, wire.WorkerLimits)
	if err != nil {
		return ""
	}
	return m.Meta.ID
}
