package redisstore

import (
	"context"
	"errors"

	"github.com/gomodule/redigo/redis"
)

// The forms of Python tasks, as Redis records them. All Python tasks of a queue have the same form.
const (
	PlainForm    = "plain"    // what keakon's package delayed reads: path, arguments and retry count, without an id
	ExtendedForm = "extended" // with an id and options; workers of keakon's package break on it
)

// SettleMode settles the form of the queue's Python tasks, unless that was done before, and returns it. It needs only
// the key that holds the form, which producers may write.
func (s *Store) SettleMode(ctx context.Context, want string) (string, error) {
	return redis.String(s.eval(ctx, "mode", []string{s.keys.mode}, want))
}

// Reform replaces the form of Python tasks if it is still the one found and the script finds no task, and returns the
// form that holds. Call HoldsNone before: the script does not look for active tasks.
func (s *Store) Reform(ctx context.Context, found, want string) (string, error) {
	return redis.String(s.eval(ctx, "reform", []string{
		s.keys.mode, s.keys.list, s.keys.scheduled, s.keys.retry, s.keys.parked, s.keys.archived, s.keys.legacy,
		s.keys.periodic, s.keys.suspects,
	}, found, want))
}

// HoldsNone reports whether no task is pending and none is active. It looks for pending ones first, so that it misses
// no task that becomes active between the looks.
func (s *Store) HoldsNone(ctx context.Context) (bool, error) {
	if n, err := s.Length(ctx); n > 0 || err != nil {
		return false, err
	}
	workers, err := s.Workers(ctx)
	if err != nil {
		return false, err
	}
	for _, w := range workers {
		if n, err := redis.Int(s.do(ctx, "HLEN", s.keys.processing+w)); n > 0 || err != nil {
			return false, err
		}
	}
	return true, nil
}

// Mode returns the settled form of Python tasks, "" for none yet.
func (s *Store) Mode(ctx context.Context) (string, error) {
	form, err := redis.String(s.do(ctx, "GET", s.keys.mode))
	if errors.Is(err, redis.ErrNil) {
		return "", nil
	}
	return form, err
}
