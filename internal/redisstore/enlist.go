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
	// LapsePage is how many locks one script looks at to drop those that have expired.
	LapsePage = 250
)

// Place is where enlist puts tasks.
type Place struct {
	How string // back, front, in or at
	Due int64  // ms, for the last two
}

// arg returns the place as the script takes it.
func (p Place) arg() string {
	switch p.How {
	case "in", "at":
		return dueArg(p.Due, p.How == "in")
	}
	return p.How
}

// enlistHead returns the arguments of the script enlist that come before the tasks.
func (s *Store) enlistHead() []any {
	return Scripts["enlist"].evalshaArgs([]string{
		s.keys.list, s.keys.noti, s.keys.scheduled, s.keys.retry, s.keys.parked, s.keys.tasks, s.keys.info,
		s.keys.completed,
		s.keys.locks, s.keys.revoked, s.keys.wake, s.keys.control,
	}, []any{s.keys.signals(), LockLife.Milliseconds()})
}

// ruleArg is the number of the rule among the arguments of a task.
const ruleArg = 5

// listingArgs returns the arguments of a task.
func listingArgs(t *Envelope, at Place) [7]any {
	reserve, name, life, rule := int64(0), "", int64(0), conflictFail
	if h := t.Hold; h != nil {
		name, life, rule = h.Name, h.Life, h.Conflict
		if h.Reserve {
			reserve = max(LockLife.Milliseconds(), life)
		}
	}
	return [7]any{t.ID, t.Message, reserve, name, life, ruleWords[rule], at.arg()}
}

// Enlist makes tasks pending or files them until they are due, all or none, at most MaxEnlisted and MaxCallBytes. For
// each task it returns "", or the id of the existing task that was kept instead. If a task is refused, the error is an
// *EnlistError.
func (s *Store) Enlist(ctx context.Context, at Place, tasks []Envelope) ([]string, error) {
	args := newArgs(s.enlistHead())
	for i := range tasks {
		task := listingArgs(&tasks[i], at)
		args.list = append(args.list, task[:]...)
	}
	answers, err := s.accept(ctx, byEnlist, args, len(tasks))
	if err != nil {
		return nil, err
	}
	return redis.Strings(answers, nil)
}

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
type TakenError struct {
	ID    string
	place int // of the task that was refused, from 0
}

func (e *TakenError) Error() string { return fmt.Sprintf("delayed: duplicate task: %q", e.ID) }

func (e *TakenError) Unwrap() error { return ErrDuplicate }
