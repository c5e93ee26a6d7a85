package redisstore

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"
)

const (
	// MaxEnlisted bounds the tasks that one script enlists, because each may take a dozen commands and Redis does
	// nothing else meanwhile.
	MaxEnlisted = 100
	// LapsePage bounds the expired locks that one script drops.
	LapsePage = 100
)

// Place is where enlist puts tasks.
type Place struct {
	How string // back, front, in or at
	Due int64  // ms, for the last two
}

// Listing is a task to be enlisted.
type Listing struct {
	Envelope
	Hold *Hold // nil: it holds neither id nor lock
}

// Enlist makes tasks pending or files them until they are due, all or none, at most MaxEnlisted and MaxBatchBytes. For
// each task it returns "", or the id of the existing task that was kept instead. If a task is refused, the error is an
// *EnlistError.
func (s *Store) Enlist(ctx context.Context, at Place, tasks []Listing) ([]string, error) {
	args := make([]any, 0, 5+6*len(tasks))
	args = append(args, at.How, at.Due, s.keys.signals(), LockLife.Milliseconds(), LapsePage)
	for i := range tasks {
		t := &tasks[i]
		reserve, name, life, rule := int64(0), "", int64(0), conflictFail
		if h := t.Hold; h != nil {
			name, life, rule = h.Name, h.Life, h.Conflict
			if h.Reserve {
				reserve = max(LockLife.Milliseconds(), life)
			}
		}
		args = append(args, t.ID, t.Message, reserve, name, life, ruleWords[rule])
	}
	keys := []string{
		s.keys.list, s.keys.noti, s.keys.scheduled, s.keys.retry, s.keys.parked, s.keys.tasks, s.keys.info,
		s.keys.completed,
		s.keys.locks, s.keys.locked, s.keys.revoked, s.keys.wake, s.keys.control,
	}
	reply, err := redis.Values(s.accept(ctx, scriptEnlist, keys, args...))
	if err != nil {
		return nil, err
	}
	if len(reply) == 3 && reply[0] == int64(0) {
		index, err := redis.Int(reply[1], nil)
		id, err2 := redis.String(reply[2], nil)
		if err != nil || err2 != nil || index < 0 || index >= len(tasks) {
			return nil, fmt.Errorf("%w: enlist refused %v", ErrReply, reply)
		}
		return nil, &EnlistError{index, TakenError{id}}
	}
	if len(reply) != len(tasks)+1 {
		return nil, fmt.Errorf("%w: %d values from enlist, expected %d", ErrReply, len(reply), len(tasks)+1)
	}
	return redis.Strings(reply[1:], nil)
}

// Conflict says what happens to a new task if an existing one holds its id or lock.
type Conflict uint8

const (
	conflictFail    Conflict = iota // refuse the new task
	conflictSkip                    // keep the existing task instead
	conflictReplace                 // replace the existing task
)

// ruleWords are the script's words for them.
var ruleWords = [...]string{conflictFail: "fail", conflictSkip: "skip", conflictReplace: "replace"}

// EnlistError says which of the tasks was refused.
type EnlistError struct {
	Index int
	TakenError
}

func (e *EnlistError) Error() string {
	return fmt.Sprintf("task %d: %v", e.Index, e.TakenError.Error())
}
func (e *EnlistError) Unwrap() error { return &e.TakenError }

// TakenError names the task that holds the wanted id or lock.
type TakenError struct{ ID string }

func (e *TakenError) Error() string { return fmt.Sprintf("delayed: task %q is there already", e.ID) }
func (e *TakenError) Unwrap() error { return ErrDuplicate }

// Unlock frees the lock of a task that starts. left reports that the task still holds its id, to be freed at its end;
// replaced, that it must not start.
func (s *Store) Unlock(ctx context.Context, id string) (left, replaced bool, err error) {
	n, err := redis.Int(s.eval(ctx, scriptUnlock, s.unlockKeys(), id, 0))
	return n == 1, n < 0, err
}

// FreeForwarded frees the lock and the id of a task that was handed on to another queue.
func (s *Store) FreeForwarded(ctx context.Context, id string) error {
	_, err := s.eval(ctx, scriptUnlock, s.unlockKeys(), id, 1)
	return err
}

func (s *Store) unlockKeys() []string { return []string{s.keys.locks, s.keys.locked, s.keys.revoked} }

// Lapse drops up to n locks that have expired, and returns their number.
func (s *Store) Lapse(ctx context.Context, n int) (int, error) {
	return redis.Int(s.eval(ctx, scriptLapse, []string{s.keys.locks, s.keys.locked}, n))
}
