package redisstore

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"
)

// RerunPage bounds the tasks that one script makes pending again or deletes, because each message may have a megabyte.
const RerunPage = 16

// Rerun is an archived task that is to run again.
type Rerun struct {
	Name     string // that it is filed under
	ID       string
	Old, New []byte // its message before and after
	Own      bool   // keeps its id taken
}

// Rerun makes archived tasks pending. For each it returns 1 if the task is pending now, 0 if it was not archived, -1 if
// its message was not the old one.
func (s *Store) Rerun(ctx context.Context, tasks []Rerun) ([]int, error) {
	return s.rerun(ctx, s.keys.archived, tasks)
}

func (s *Store) rerun(ctx context.Context, set string, tasks []Rerun) ([]int, error) {
	args := make([]any, 0, 1+5*len(tasks))
	args = append(args, LockLife.Milliseconds())
	for i := range tasks {
		t := &tasks[i]
		args = append(args, t.Name, t.ID, t.Old, t.New, flag(t.Own))
	}
	keys := []string{
		set, s.keys.tasks, s.keys.info, s.keys.list, s.keys.noti, s.keys.revoked, s.keys.locks,
	}
	answers, err := redis.Ints(s.eval(ctx, scriptRerun, keys, args...))
	if err == nil && len(answers) != len(tasks) {
		err = fmt.Errorf("%w: %d answers from rerun, expected %d", ErrReply, len(answers), len(tasks))
	}
	return answers, err
}

// Deleting says which tasks are to be deleted.
type Deleting string

// The choices.
const (
	DeleteBoth      Deleting = ""
	DeleteArchived  Deleting = "archived"
	DeleteCompleted Deleting = "completed"
)

// Delete deletes archived and completed tasks, and returns how many there were, without expired completed ones.
func (s *Store) Delete(ctx context.Context, which Deleting, ids []string) (int, error) {
	args := make([]any, 0, 1+len(ids))
	args = append(args, string(which))
	for _, id := range ids {
		args = append(args, id)
	}
	return redis.Int(s.eval(ctx, scriptDelete,
		[]string{s.keys.archived, s.keys.tasks, s.keys.info, s.keys.completed, s.keys.results}, args...))
}
