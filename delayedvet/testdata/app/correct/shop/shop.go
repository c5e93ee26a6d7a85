// Package shop has ten calls that look like mistakes.
package shop

import (
	"context"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/handlers"
)

type server struct {
	queue  *delayed.Queue
	store  *handlers.Store
	onDone func(context.Context, handlers.OrderID)
}

func (s *server) checkout(ctx context.Context, o handlers.Order, id int32, args []any) error {
	if _, err := s.queue.Delay(handlers.Confirm, &o, "en"); err != nil {
		return err
	}
	_, err := s.queue.DelayContext(ctx, handlers.Ship, id, "dhl", 2) // an int32 is an OrderID, and 2 a float32
	if err != nil {
		return err
	}
	if _, err = s.queue.With(delayed.In(time.Hour)).Delay(handlers.Remind, o.ID, time.Minute); err != nil {
		return err
	}
	_, _ = s.queue.Delay(handlers.Refund, o.ID, 300, "EUR") // dropped where it can be seen
	if _, err = s.queue.Delay((*handlers.Store).Save, o); err != nil {
		return err
	}
	if _, err = s.queue.Delay(s.onDone, o.ID); err != nil { // a function variable: whatever it holds
		return err
	}
	if _, err = s.queue.Delay(handlers.Refund, args...); err != nil {
		return err
	}
	if _, err = s.queue.Delay(handlers.Remind, o.ID, 0); err != nil {
		return err
	}
	if _, err = s.queue.Delay(handlers.Wait, int64(time.Hour/time.Second)); err != nil {
		return err
	}
	_, err = s.queue.With(delayed.In(0), delayed.Timeout(0)).Delay(handlers.Rate, 255, "")
	return err
}
