// Package ignored drops the errors of Delay.
package ignored

import (
	"context"

	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

func drop(ctx context.Context, q *delayed.Queue, w *delayed.Worker) (string, error) {
	q.Delay(mail.Welcome, 1, "en")                          // want `expected the error of Delay to be read, found it ignored: it says why the task was not enqueued; handle it, or return it`
	(q.Delay(mail.Welcome, 1, "en"))                        // want `error of Delay`
	go q.Delay(mail.Welcome, 1, "en")                       // want `error of Delay`
	defer q.DelayContext(ctx, mail.Welcome, 1, "en")        // want `error of DelayContext`
	q.DelayMany(ctx, delayed.Call(mail.Welcome, 1, "en"))   // want `error of DelayMany`
	q.Enqueue(ctx, delayed.Call(mail.Welcome, 1, "en"))     // want `error of Enqueue`
	w.Register(mail.Welcome)                                // want `the worker does not know the functions`
	w.RegisterMethods(&mail.Mailer{})                       // want `the worker does not know the methods`
	q.Ref("x").RunAgainWith(ctx, delayed.Call(mail.Digest)) // want `the task does not run again`
	_, _ = q.Delay(mail.Digest)                             // plain to see
	if _, err := q.Delay(mail.Digest); err != nil {
		return "", err
	}
	ref, _ := q.Delay(mail.Digest) // want `error of Delay`
	return ref.ID(), nil
}
