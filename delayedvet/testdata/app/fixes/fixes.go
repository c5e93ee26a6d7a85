// Package fixes has mistakes whose repair is certain.
package fixes

import (
	"context"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/mail"
)

type app struct {
	queue  *delayed.Queue
	mailer *mail.Mailer
	copy   mail.Mailer
}

func (a *app) fixed(ctx context.Context, hook func(int)) (err error) {
	_, err = a.queue.Delay(ctx, mail.Welcome, 42, "en")                               // want `call DelayContext`
	_, err = a.queue.Delay(mail.Welcome, ctx, 42, "en")                               // want `call DelayContext`
	_, err = a.queue.Delay(mail.Digest, ctx)                                          // want `call DelayContext`
	_, err = a.queue.DelayContext(ctx, mail.Welcome, 42, "en", delayed.In(time.Hour)) // want `the option In`
	_, err = a.queue.Delay(mail.Digest, delayed.MaxRetry(1), delayed.In(time.Hour))   // want `the option MaxRetry` `the option In`
	_, err = a.queue.Delay(a.mailer.Send, 42)                                         // want `a method value`
	_, err = a.queue.Delay(a.copy.Send, 42)                                           // want `a method value`
	_, err = a.queue.Delay(a.copy.Copy, "x")                                          // want `a method value`
	_, err = a.queue.Enqueue(ctx, delayed.Call(mail.Digest, ctx))                     // want `leave it out`
	_, err = a.queue.Enqueue(ctx, delayed.Call(mail.Welcome, ctx, 42, "en"))          // want `leave it out`
	return err
}

// Nothing is changed where several repairs are possible.
func (a *app) left(ctx context.Context, o delayed.Option) (err error) {
	_, err = a.queue.Delay(mail.Welcome, 42, ctx, "en")         // want `call DelayContext`
	_, err = a.queue.Enqueue(ctx, delayed.Call(mail.Digest, o)) // want `the option In`
	_, err = a.queue.Delay(mail.Digest, delayed.Name("x"))      // want `the option Name`
	_, err = a.queue.Delay(ctx, 42)                             // want `call DelayContext`
	return err
}
