package api

import (
	"context"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/mistakes/mail"
	"example.com/app/blind/mistakes/media"
)

// Admin puts right what went wrong.
type Admin struct {
	q      *delayed.Queue
	mailer *mail.Mailer
}

// Repair runs an archived task again.
func (a *Admin) Repair(ctx context.Context, id string, order Order) error {
	ref := a.q.Ref(id)
	return ref.RunAgainWith(ctx, delayed.Call(mail.Confirm, order.ID)) // want `mail.Confirm: expected 2 arguments .int64, string., found 1`
}

// Apologize writes to a customer.
func (a *Admin) Apologize(ctx context.Context, customer int64) error {
	if _, err := a.q.Delay(a.mailer.Send, customer, "sorry"); err != nil { // want `Mailer..Send: .* found a method value`
		return err
	}
	_, err := a.q.DelayContext(ctx, (*mail.Mailer).Send, a.mailer, customer, "sorry") // want `mail...Mailer..Send: expected 2 arguments .int64, string., found 3`
	return err
}

// Recount adds sales again.
func (a *Admin) Recount(sales []int64) error {
	if _, err := a.q.Delay(media.Sum[int64], sales); err != nil { // want `media.Sum: .* found an instance of a generic function`
		return err
	}
	_, err := a.q.Delay(func(office string) error { // want `found a function literal`
		return mail.Digest(context.Background(), office, time.Now().Format(time.DateOnly))
	}, "berlin")
	return err
}

// Export asks other programs for numbers.
func (a *Admin) Export(ctx context.Context, done func(int64)) error {
	py := delayed.NewPyTask("office.tasks.export", []any{"2026-01"}, nil) // want `expected a path that tasks can carry, found Python path .office.tasks.export., expected .module:function.`
	if _, err := a.q.Enqueue(ctx, py); err != nil {
		return err
	}
	goTask := delayed.NewGoTask("example.com/office/numbers.Export", "2026-01", done) // want `argument 2: .* func.int64. cannot travel in a task`
	_, err := a.q.Enqueue(ctx, goTask)
	return err
}
