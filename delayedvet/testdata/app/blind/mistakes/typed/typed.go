// Package typed has mistakes that the compiler lets pass in calls of typed functions.
package typed

import (
	"context"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/typed"

	"example.com/app/blind/mistakes/mail"
	"example.com/app/blind/mistakes/venue"
)

// retryMinutes is a number of minutes.
const retryMinutes = 15

// Functions of the ticket office.
var (
	Remind  = typed.Func2(mail.Remind)
	Seat    = typed.Func1(venue.Reserve)
	Confirm = typed.Func2(mail.Confirm, delayed.Optional(3)) // want `mail.Confirm: expected Optional of 0 to 2`
	Close   = typed.Func0(func(context.Context) error {      // want `found a function literal`
		return nil
	})
	Note = typed.Func2(func(_ context.Context, key string, value any) error {
		return nil
	}, delayed.Name("note"))
	Daily = typed.Func0(sweep, delayed.Name("daily"), delayed.Unique(time.Hour))
)

func sweep(context.Context) error { return nil }

// Plan plans mails.
func Plan(ctx context.Context, q *delayed.Queue, order int64, s venue.Seat, done chan bool) error {
	Remind.Delay(q, order, time.Hour)                     // want `expected the error of Delay to be read`
	if _, err := Remind.Delay(q, order, 30); err != nil { // want `mail.Remind: argument 2: expected time.Duration, found 30`
		return err
	}
	if _, err := Remind.DelayContext(ctx, q, order, 2*retryMinutes); err != nil { // want `mail.Remind: argument 2: expected time.Duration, found 2 . retryMinutes`
		return err
	}
	if _, err := Seat.Delay(q, s); err != nil { // want `venue.Reserve: .* found parameter 1: field price of venue.Seat is not exported`
		return err
	}
	if _, err := Note.Delay(q, "done", done); err != nil { // want `note: argument 2: .* chan bool cannot travel in a task`
		return err
	}
	if _, err := Remind.Delay(q.With(delayed.Group("mails")), order, time.Hour); err != nil { // want `mail.Remind: expected a variadic function or one whose last parameter is a slice other than ..byte`
		return err
	}
	if _, err := q.Delay(Remind, order); err != nil { // want `mail.Remind: expected 2 arguments .int64, time.Duration., found 1`
		return err
	}
	entry := delayed.Entry{Name: "daily", Spec: "@daily", Task: Daily.Call()} // want `periodic entry: expected a task without a lock, found one of daily, which Func makes unique`
	return q.Periodic().Set(ctx, entry)
}

// Fine are calls that are right.
func Fine(ctx context.Context, q *delayed.Queue, order int64) error {
	const short = 500 * time.Microsecond
	if _, err := Remind.Delay(q, order, short); err != nil {
		return err
	}
	if _, err := Remind.Delay(q, order, 0); err != nil {
		return err
	}
	if _, err := q.DelayContext(ctx, Remind.Function, order, time.Hour); err != nil {
		return err
	}
	tasks := []*delayed.Task{Remind.Call(order, time.Hour), delayed.Call(Note, "order", order)}
	_, err := q.DelayMany(ctx, tasks...)
	return err
}
