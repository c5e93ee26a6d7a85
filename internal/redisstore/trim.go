package redisstore

import (
	"context"

	"github.com/gomodule/redigo/redis"
)

// TrimPage bounds the tasks that one script deletes or condemns.
const TrimPage = 100

// Deleting is which tasks are to be deleted.
type Deleting string

// The choices.
const (
	DeleteBoth      Deleting = ""
	DeleteArchived  Deleting = "archived"
	DeleteCompleted Deleting = "completed"
)

// Delete deletes archived and completed tasks, and returns how many there were, without expired completed ones.
func (s *Store) Delete(ctx context.Context, which Deleting, ids []string) (int, error) {
	return redis.Int(s.eval(ctx, "delete",
		[]string{s.keys.archived, s.keys.tasks, s.keys.info, s.keys.completed, s.keys.results},
		argsOf(ids, string(which))...))
}

// Expire deletes completed tasks that were kept for long enough, at most n.
func (s *Store) Expire(ctx context.Context, n int) (int, error) {
	return redis.Int(s.eval(ctx, "expire", []string{s.keys.completed, s.keys.results}, n))
}

// Trim deletes archived tasks that are too old or too many, at most n.
func (s *Store) Trim(ctx context.Context, most, n int) (int, error) {
	return redis.Int(s.eval(ctx, "trim", []string{s.keys.archived, s.keys.tasks, s.keys.info, s.StatsKey()},
		statsLife, most, n))
}
