package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"
)

// drain moves all pending, scheduled and retrying tasks of asynq's queue to delayed, waits for the active ones, and
// deletes the queue. No producer may use the queue any more, and all its servers must forward. If drain fails, it may
// be called again; servers may run meanwhile.
func (f *forwarder) drain(ctx context.Context) (moved int, err error) {
	name := f.queue.Name()
	lists := []func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error){
		f.inspector.ListPendingTasks, f.inspector.ListScheduledTasks, f.inspector.ListRetryTasks,
	}
	for {
		for _, list := range lists {
			n, err := f.moveAll(ctx, list)
			moved += n
			switch {
			case errors.Is(err, asynq.ErrQueueNotFound):
				return moved, nil
			case err != nil:
				return moved, err
			}
		}
		info, err := f.inspector.GetQueueInfo(name)
		switch {
		case err != nil:
			return moved, err
		case info.Archived+info.Aggregating+info.Completed > 0:
			return moved, fmt.Errorf("asynq's queue %q still has %d archived, %d aggregating and %d completed tasks: "+
				"run, delete or await them",
				name, info.Archived, info.Aggregating, info.Completed)
		case info.Size == 0:
			return moved, f.inspector.DeleteQueue(name, false)
		}
		select { // some are active, or have become pending since
		case <-ctx.Done():
			return moved, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// moveAll moves the tasks of one list. Moved tasks leave the list, so it always reads the first page.
func (f *forwarder) moveAll(
	ctx context.Context, list func(string, ...asynq.ListOption) ([]*asynq.TaskInfo, error),
) (moved int, err error) {
	for {
		page, err := list(f.queue.Name(), asynq.PageSize(1000))
		if err != nil || len(page) == 0 {
			return moved, err
		}
		for _, info := range page {
			if err := f.move(ctx, info); err != nil {
				return moved, err
			}
			moved++
		}
	}
}

// move enqueues first and then deletes: if it is interrupted in between, the next call finds the id in delayed and only
// deletes.
func (f *forwarder) move(ctx context.Context, info *asynq.TaskInfo) error {
	if err := f.forward(ctx, info); err != nil {
		return err
	}
	err := f.inspector.DeleteTask(info.Queue, info.ID)
	if err == nil || errors.Is(err, asynq.ErrTaskNotFound) {
		return nil // a server has forwarded the task meanwhile
	}
	if now, lost := f.inspector.GetTaskInfo(info.Queue, info.ID); errors.Is(lost, asynq.ErrTaskNotFound) ||
		lost == nil && now.State == asynq.TaskStateActive {
		return nil // a server is forwarding the task now
	}
	return err
}
