package site

import (
	"context"
	"fmt"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

// Queues returns all queues, as they were a moment ago.
func (s *Site) Queues(q *Request) ([]inspect.Queue, error) {
	return Read(q.Ctx, s.Fast, "queues", func(ctx context.Context) ([]inspect.Queue, error) {
		return q.Ins.Queues(ctx)
	})
}

// Diagnosis returns what is wrong with the given queues, or with all and with Redis, as it was lately.
func (s *Site) Diagnosis(q *Request, queues ...string) (inspect.Diagnosis, error) {
	key := fmt.Sprint("diagnosis ", s.Hidden(q.User), queues)
	return Read(q.Ctx, s.Slow, key, func(ctx context.Context) (inspect.Diagnosis, error) {
		return q.Ins.Diagnose(ctx, queues...)
	})
}

// CheckName returns an error if a text cannot be the name of a queue.
func (s *Site) CheckName(name string) error {
	if _, err := delayed.OpenQueue(name, s.Redis, delayed.QueueConfig{}); err != nil {
		return Bad(document.ErrorText(err.Error()))
	}
	return nil
}

// MaxSelected bounds the tasks that one form is about. More are a job.
const MaxSelected = 1000

// MaxWeight is the largest weight that Inspector.SetWeight takes.
const MaxWeight = 1000
