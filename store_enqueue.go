package delayed

import (
	"context"
	"fmt"
)

const (
	// maxBatchTasks and maxBatchBytes bound what one script enqueues, so that it never blocks Redis for long.
	maxBatchTasks = 1000
	maxBatchBytes = 8 << 20
)

// envelope is a message with the id it is filed under where it is not pending.
type envelope struct {
	id      string
	message []byte
}

// enqueue makes up to maxBatchTasks messages pending, all or none.
func (s *store) enqueue(ctx context.Context, batch []envelope) error {
	args := make([]any, len(batch))
	for i := range batch {
		args[i] = batch[i].message
	}
	_, err := s.eval(ctx, scriptEnqueue, []string{s.keys.list, s.keys.noti}, args...)
	return err
}

// schedule files up to maxBatchTasks messages until they are due, all or none. due is in ms, from now if relative, else since 1970.
func (s *store) schedule(ctx context.Context, batch []envelope, due int64, relative bool) error {
	args := make([]any, 0, 2+2*len(batch))
	how := "at"
	if relative {
		how = "in"
	}
	args = append(args, how, due)
	for i := range batch {
		args = append(args, batch[i].id, batch[i].message)
	}
	reply, err := s.eval(ctx, scriptSchedule, []string{s.keys.scheduled, s.keys.tasks, s.keys.wake}, args...)
	answer, err := ints(reply, err, 2)
	if err != nil {
		return err
	}
	if answer[0] == 0 {
		if i := answer[1]; i >= 0 && i < int64(len(batch)) {
			return &DuplicateError{ID: batch[i].id}
		}
		return fmt.Errorf("%w: position %d of %d", errReply, answer[1], len(batch))
	}
	return nil
}
