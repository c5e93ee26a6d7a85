package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/itest/asynq/mail"
)

// calls returns, for each type of asynq's tasks, the call that replaces it.
var calls = map[string]func(payload []byte) (*delayed.Task, error){
	"mail:welcome": func(payload []byte) (*delayed.Task, error) {
		var p struct {
			UserID int64
			Lang   string
		}
		if err := json.Unmarshal(payload, &p); err != nil {
			return nil, err
		}
		return delayed.Call(mail.Welcome, p.UserID, p.Lang), nil
	},
}

// forwarder enqueues tasks of asynq in delayed.
type forwarder struct {
	inspector *asynq.Inspector
	queue     *delayed.Queue
}

// ProcessTask implements asynq.Handler. If it fails, asynq tries it again.
func (f *forwarder) ProcessTask(ctx context.Context, _ *asynq.Task) error {
	id, _ := asynq.GetTaskID(ctx)
	name, _ := asynq.GetQueueName(ctx)
	info, err := f.inspector.GetTaskInfo(name, id)
	if err != nil {
		return err
	}
	return f.forward(ctx, info)
}

// forward enqueues a task of asynq in delayed, under the same id. It may be called more than once for one task: for an
// hour after the task has succeeded, its id is still known, and the second call changes nothing.
func (f *forwarder) forward(ctx context.Context, info *asynq.TaskInfo) error {
	call, ok := calls[info.Type]
	if !ok {
		return fmt.Errorf("task %s has the type %q, for which calls has no entry", info.ID, info.Type)
	}
	task, err := call(info.Payload)
	if err != nil {
		return fmt.Errorf("payload of task %s: %w", info.ID, err)
	}
	options := []delayed.Option{
		delayed.TaskID(info.ID),
		delayed.OnConflict(delayed.ConflictSkip),
		delayed.Retention(max(info.Retention, time.Hour)),
		delayed.MaxRetry(info.MaxRetry - info.Retried),
	}
	if info.NextProcessAt.After(time.Now()) {
		options = append(options, delayed.At(info.NextProcessAt))
	}
	if info.Timeout > 0 {
		options = append(options, delayed.Timeout(info.Timeout))
	}
	if !info.Deadline.IsZero() {
		options = append(options, delayed.Deadline(info.Deadline))
	}
	for key, value := range info.Headers {
		options = append(options, delayed.Header(key, value))
	}
	_, err = f.queue.With(options...).Enqueue(ctx, task)
	return err
}
