package redisstore

import (
	"context"
	"fmt"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/godelayed/delayed/internal/schedule"
	"github.com/godelayed/delayed/internal/wire"
)

// Unlock frees the lock of a task that starts. left reports that the task still holds its id, to be freed at its end;
// replaced, that it must not start.
func (s *Store) Unlock(ctx context.Context, id, lock string) (left, replaced bool, err error) {
	n, err := redis.Int(s.eval(ctx, "unlock", s.unlockKeys(), id, lock, 0))
	return n == 1, n < 0, err
}

// FreeForwarded frees the lock and the id of a task that was handed on to another queue.
func (s *Store) FreeForwarded(ctx context.Context, id, lock string) error {
	_, err := s.eval(ctx, "unlock", s.unlockKeys(), id, lock, 1)
	return err
}

func (s *Store) unlockKeys() []string { return []string{s.keys.locks, s.keys.revoked} }

// Lapse looks at about n locks, and drops those that have expired. cursor says where to go on: "0" at the beginning;
// next is "0" after the last lock.
func (s *Store) Lapse(ctx context.Context, cursor string, n int) (next string, looked, dropped int, err error) {
	reply, err := redis.Values(s.eval(ctx, "lapse", []string{s.keys.locks}, cursor, n))
	if err != nil {
		return "", 0, 0, err
	}
	if rest, err := redis.Scan(reply, &next, &looked, &dropped); err != nil || len(rest) > 0 {
		return "", 0, 0, fmt.Errorf("%w: lapse", ErrReply)
	}
	return next, looked, dropped, nil
}

// LockLife is how long ids, and locks of Debounce, are kept after their task is due, and how long Redis remembers that
// a task was replaced. All of them end earlier if the task does.
const LockLife = 7 * 24 * time.Hour

// Prefixes of the names of locks, one for each kind.
const (
	LockNothing = ""
	LockArgs    = "u:"                // before a digest of function and arguments
	LockKey     = "k:"                // before a key of the caller
	lockID      = "#"                 // before the task's id
	LockEntry   = schedule.LockPrefix // before the name of a periodic entry
)

// Hold is a task's exclusive claim on its id, on a lock, or on both. nil stands for neither.
type Hold struct {
	Reserve  bool   // no other task may have the id
	Name     string // of the lock, "" for none
	Life     int64  // of the lock, ms
	Start    bool   // the lock ends when the task starts
	Conflict Conflict
}

// Write notes in the message what the task holds, so that its worker frees it at the end.
func (h *Hold) Write(x *wire.Extra, id string) *wire.Extra {
	if x == nil {
		x = new(wire.Extra)
	}
	if h.Name == "" {
		x.Lock, x.LockLife = lockID+id, LockLife.Milliseconds()
		return x
	}
	x.Lock, x.LockLife, x.LockStart = h.Name, h.Life, h.Start
	return x
}

// Conflict says what happens to a new task if an existing one holds its id or lock.
type Conflict uint8
