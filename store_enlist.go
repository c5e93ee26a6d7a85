package delayed

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"
)

const (
	// maxEnlisted bounds the tasks that one script enlists: each may need a dozen commands, and Redis does nothing else
	// meanwhile.
	maxEnlisted = 100
	// lapsePage bounds the expired locks that one script drops.
	lapsePage = 100
)

// place is where enlist puts tasks.
type place struct {
	how string // back, front, in or at
	due int64  // ms, for the last two
}

// listing is a task to be enlisted.
type listing struct {
	envelope
	hold *hold // nil: it has nothing to itself
}

// enlist makes tasks pending or files them until they are due, all or none, at most maxEnlisted and maxBatchBytes. For
// each task it returns the id of the one that is there in its stead, "" if it stands itself. The error of one that is
// refused is an *enlistError.
func (s *store) enlist(ctx context.Context, at place, tasks []listing) ([]string, error) {
	args := make([]any, 0, 5+6*len(tasks))
	args = append(args, at.how, at.due, s.keys.signals(), lockLife.Milliseconds(), lapsePage)
	for i := range tasks {
		t := &tasks[i]
		reserve, name, life, rule := int64(0), "", int64(0), conflictFail
		if h := t.hold; h != nil {
			name, life, rule = h.name, h.life, h.conflict
			if h.reserve {
				reserve = max(lockLife.Milliseconds(), life)
			}
		}
		args = append(args, t.id, t.message, reserve, name, life, ruleWords[rule])
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
			return nil, fmt.Errorf("%w: enlist refused %v", errReply, reply)
		}
		return nil, &enlistError{index, takenError{id}}
	}
	if len(reply) != len(tasks)+1 {
		return nil, fmt.Errorf("%w: %d values from enlist, expected %d", errReply, len(reply), len(tasks)+1)
	}
	return redis.Strings(reply[1:], nil)
}

// conflict says what becomes of a task whose id or lock another one has.
type conflict uint8

const (
	conflictFail    conflict = iota // it is refused
	conflictSkip                    // the other one stands in its stead
	conflictReplace                 // it takes the other one's place
)

// ruleWords are the names of conflicts in the script.
var ruleWords = [...]string{conflictFail: "fail", conflictSkip: "skip", conflictReplace: "replace"}

// enlistError says which of the tasks was refused.
type enlistError struct {
	index int
	takenError
}

func (e *enlistError) Error() string {
	return fmt.Sprintf("task %d: %v", e.index, e.takenError.Error())
}
func (e *enlistError) Unwrap() error { return &e.takenError }

// takenError names the task that has the id or the lock that another one was to have.
type takenError struct{ id string }

func (e *takenError) Error() string { return fmt.Sprintf("delayed: task %q is there already", e.id) }
func (e *takenError) Unwrap() error { return ErrDuplicate }

// unlock frees the lock of a task that starts. left: at its end there is still something to free. replaced: it must not
// start.
func (s *store) unlock(ctx context.Context, id string) (left, replaced bool, err error) {
	n, err := redis.Int(s.eval(ctx, scriptUnlock, s.unlockKeys(), id, 0))
	return n == 1, n < 0, err
}

// disown frees lock and id of a task that has left the queue.
func (s *store) disown(ctx context.Context, id string) error {
	_, err := s.eval(ctx, scriptUnlock, s.unlockKeys(), id, 1)
	return err
}

func (s *store) unlockKeys() []string { return []string{s.keys.locks, s.keys.locked, s.keys.revoked} }

// lapse drops up to n locks that have expired, and returns their number.
func (s *store) lapse(ctx context.Context, n int) (int, error) {
	return redis.Int(s.eval(ctx, scriptLapse, []string{s.keys.locks, s.keys.locked}, n))
}
