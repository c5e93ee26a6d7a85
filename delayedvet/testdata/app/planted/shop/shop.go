// Package shop has ten mistakes.
package shop

import (
	"context"
	"fmt"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/handlers"
)

type server struct {
	queue *delayed.Queue
	store *handlers.Store
}

func (s *server) checkout(ctx context.Context, o handlers.Order, user string) error {
	if _, err := s.queue.Delay(handlers.Confirm, o, "en"); err != nil { // want `argument 1: expected \*handlers.Order, found handlers.Order; give its address`
		return err
	}
	_, err := s.queue.DelayContext(ctx, handlers.Ship, fmt.Sprint(o.ID), "dhl", 2) // want `argument 1: expected handlers.OrderID, found string`
	if err != nil {
		return err
	}
	_, err = s.queue.With(delayed.In(time.Hour)).Delay(handlers.Remind, o.ID) // want `expected 2 arguments \(handlers.OrderID, time.Duration\), found 1`
	if err != nil {
		return err
	}
	s.queue.With(delayed.MaxRetry(3)).Delay(handlers.Refund, o.ID, o.Total, o.Currency) // want `error of Delay`
	_, err = s.queue.Delay(s.store.Save, o)                                             // want `found a method value`
	if err != nil {
		return err
	}
	_, err = s.queue.Delay(handlers.Remind, o.ID, 30) // want `found int 30, which counts nanoseconds`
	if err != nil {
		return err
	}
	_, err = s.queue.Delay(ctx, handlers.Rate, 5, "good") // want `found a context.Context; call DelayContext`
	if err != nil {
		return err
	}
	_, err = s.queue.Delay(handlers.Rate, 5, "good", delayed.In(time.Minute)) // want `found the option In`
	if err != nil {
		return err
	}
	_, err = s.queue.Delay(func() { fmt.Println(user) }) // want `found a function literal`
	if err != nil {
		return err
	}
	_, err = s.queue.With(delayed.Timeout(30)).Delay(handlers.Rate, 5, "good") // want `Timeout: expected at least 1ms`
	return err
}
