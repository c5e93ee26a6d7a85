package delayed

import (
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"
)

// rerunPage bounds the tasks that one script makes pending again or deletes. Their messages are read and sent, up to a
// megabyte each.
const rerunPage = 16

// rerun is an archived task that is to run again.
type rerun struct {
	name     string // that it is filed under
	id       string
	old, new []byte // its message as it is and as it is to be
	own      bool   // no other task may have its id
}

// rerun makes archived tasks pending. Of each it answers 1 if it is pending, 0 if it was not archived, -1 if its
// message was not the old one.
func (s *store) rerun(ctx context.Context, tasks []rerun) ([]int, error) {
	args := make([]any, 0, 1+5*len(tasks))
	args = append(args, lockLife.Milliseconds())
	for i := range tasks {
		t := &tasks[i]
		args = append(args, t.name, t.id, t.old, t.new, flag(t.own))
	}
	keys := []string{
		s.keys.archived, s.keys.tasks, s.keys.info, s.keys.list, s.keys.noti, s.keys.revoked, s.keys.locks,
		s.keys.locked,
	}
	answers, err := redis.Ints(s.eval(ctx, scriptRerun, keys, args...))
	if err == nil && len(answers) != len(tasks) {
		err = fmt.Errorf("%w: %d answers from rerun, expected %d", errReply, len(answers), len(tasks))
	}
	return answers, err
}

// delete deletes archived and completed tasks, and returns how many there were. A completed one whose time is over is
// none.
func (s *store) delete(ctx context.Context, ids []string) (int, error) {
	args := make([]any, len(ids))
	for i, id := range ids {
		args[i] = id
	}
	return redis.Int(s.eval(ctx, scriptDelete,
		[]string{s.keys.archived, s.keys.tasks, s.keys.info, s.keys.completed, s.keys.results}, args...))
}
