// Package api answers the requests of the ticket office's site.
package api

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/mistakes/mail"
	"example.com/app/blind/mistakes/search"
)

// Order is an order of tickets.
type Order struct {
	ID      int64  `json:"id"`
	EventID int64  `json:"event"`
	Lang    string `json:"lang"`
	Seats   []int64
	Begin   time.Time
}

// Server answers requests and delays what takes long.
type Server struct {
	queue *delayed.Queue
	log   *slog.Logger
	hold  time.Duration
}

// Create takes a new order.
func (s *Server) Create(w http.ResponseWriter, r *http.Request) {
	var order Order
	if err := json.NewDecoder(r.Body).Decode(&order); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if _, err := s.queue.DelayContext(r.Context(), mail.Confirm, order.ID); err != nil { // want `mail.Confirm: expected 2 arguments .int64, string., found 1`
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.queue.Delay(search.Index, "orders", order.ID) // want `expected the error of Delay to be read`
	w.WriteHeader(http.StatusCreated)
}

// Resend sends a confirmation again.
func (s *Server) Resend(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	ref, err := s.queue.Delay(mail.Confirm, id, "en") // want `mail.Confirm: argument 1: expected int64, found string`
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	s.log.Info("sent again", "task", ref.ID())
}

// Remind plans the mails before an event.
func (s *Server) Remind(ctx context.Context, order Order) error {
	confirm := mail.Confirm
	if _, err := s.queue.Delay(confirm, order.ID, order.Lang, delayed.In(time.Hour)); err != nil { // want `mail.Confirm: argument 3: expected no argument, found the option In`
		return err
	}
	if _, err := s.queue.Delay(ctx, mail.Confirm, order.ID, order.Lang); err != nil { // want `context: expected a function, found a context.Context`
		return err
	}
	dayBefore := s.queue.With(delayed.At(order.Begin.AddDate(0, 0, -1)), delayed.MaxRetry(5))
	if _, err := dayBefore.DelayContext(ctx, mail.Remind, ctx, order.ID, time.Hour); err != nil { // want `mail.Remind: argument 1: expected int64, found a context.Context`
		return err
	}
	if _, err := s.queue.Delay(mail.Remind, order.ID, 30); err != nil { // want `mail.Remind: argument 2: expected time.Duration, found int 30`
		return err
	}
	if _, err := s.queue.Delay(mail.Hold, order.ID, s.hold); err != nil { // want `mail.Hold: argument 2: expected int64, found time.Duration`
		return err
	}
	soon := s.queue.With(delayed.In(60)) // want `In: expected at least 1ms, or a unit such as time.Second behind the number, found 60ns`
	_, err := soon.DelayContext(ctx, mail.Hold, order.ID, 15)
	return err
}

// Cancel takes an order back.
func (s *Server) Cancel(ctx context.Context, order Order) error {
	defer s.queue.DelayContext(ctx, search.Index, "orders", order.ID) // want `expected the error of DelayContext to be read`
	task := delayed.Call(mail.Confirm, order.Lang, order.ID)          // want `mail.Confirm: argument 1: expected int64, found string` `mail.Confirm: argument 2: expected string, found int64`
	_, err := s.queue.Enqueue(ctx, task)
	return err
}
