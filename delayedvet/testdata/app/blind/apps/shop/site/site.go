// Package site is what customers see.
package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/shop/mailing"
	"example.com/app/blind/apps/shop/orders"
	"example.com/app/blind/apps/shop/stock"
	"example.com/app/blind/apps/shop/tasks"
)

// Site answers requests.
type Site struct {
	critical, queue *delayed.Queue
	store           *orders.Store
	log             *slog.Logger
}

// New returns a site on the queues of the shop.
func New(rdb *delayed.Store, store *orders.Store, log *slog.Logger) (*Site, error) {
	critical, err := delayed.OpenQueue(tasks.Critical, rdb, delayed.QueueConfig{WaitReplicas: 1, Inject: inject})
	if err != nil {
		return nil, err
	}
	queue, err := delayed.OpenQueue(tasks.Default, rdb, delayed.QueueConfig{Inject: inject})
	if err != nil {
		return nil, err
	}
	return &Site{critical: critical, queue: queue, store: store, log: log}, nil
}

type requestKey struct{}

func inject(ctx context.Context) map[string]string {
	id, ok := ctx.Value(requestKey{}).(string)
	if !ok {
		return nil
	}
	return map[string]string{"request": id}
}

// Routes returns the site's pages.
func (s *Site) Routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.handle(s.order))
	mux.HandleFunc("POST /orders/{id}/refund", s.handle(s.refund))
	mux.HandleFunc("GET /payments/{task}", s.handle(s.payment))
	mux.HandleFunc("POST /cart", s.handle(s.cart))
	mux.HandleFunc("POST /newsletter", s.handle(s.newsletter))
	mux.HandleFunc("POST /deliveries", s.handle(s.delivery))
	return mux
}

func (s *Site) handle(page func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), requestKey{}, r.Header.Get("X-Request-Id"))
		answer, err := page(r.WithContext(ctx))
		switch {
		case errors.Is(err, orders.ErrUnknown):
			http.Error(w, err.Error(), http.StatusNotFound)
		case errors.Is(err, delayed.ErrDuplicate):
			http.Error(w, err.Error(), http.StatusConflict)
		case errors.Is(err, delayed.ErrFull):
			http.Error(w, "try again later", http.StatusServiceUnavailable)
		case err != nil:
			s.log.ErrorContext(ctx, "request failed", "path", r.URL.Path, "error", err)
			http.Error(w, "something went wrong", http.StatusInternalServerError)
		default:
			w.Header().Set("Content-Type", "application/json")
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				s.log.WarnContext(ctx, "answer not sent", "error", err)
			}
		}
	}
}

func (s *Site) order(r *http.Request) (any, error) {
	var o orders.Order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		return nil, err
	}
	o.Placed = time.Now()
	o.ID = s.store.Add(o)
	ctx := r.Context()
	for _, l := range o.Lines {
		if _, err := s.critical.DelayContext(ctx, stock.Take, l.SKU, l.Quantity); err != nil {
			return nil, err
		}
	}
	once := s.critical.With(delayed.TaskID(fmt.Sprintf("charge-%d", o.ID)), delayed.OnConflict(delayed.ConflictSkip))
	ref, err := once.DelayContext(ctx, tasks.Charge, o.ID)
	if err != nil {
		return nil, err
	}
	if _, err := tasks.Confirm.DelayContext(ctx, s.queue, &o); err != nil {
		return nil, err
	}
	return map[string]any{"order": o.ID, "payment": ref.ID()}, nil
}

func (s *Site) refund(r *http.Request) (any, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil {
		return nil, err
	}
	o, err := s.store.Find(orders.ID(id))
	if err != nil {
		return nil, err
	}
	key := "refund:" + r.PathValue("id")
	q := s.critical.With(delayed.UniqueKey(key, time.Hour), delayed.Header("by", r.RemoteAddr))
	ref, err := q.DelayContext(r.Context(), (*orders.Cashier).Refund, id, o.Total()/2, "half of it")
	if err != nil {
		return nil, err
	}
	return ref.ID(), nil
}

func (s *Site) payment(r *http.Request) (any, error) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	amount, err := delayed.Await[orders.Cents](ctx, s.critical.Ref(r.PathValue("task")))
	if failed := new(delayed.TaskError); errors.As(err, &failed) {
		return map[string]string{"state": failed.State.String(), "reason": string(failed.Reason)}, nil
	}
	return amount, err
}

func (s *Site) cart(r *http.Request) (any, error) {
	email := r.FormValue("email")
	skus := r.Form["sku"]
	args := []any{email, 24 * time.Hour}
	for _, sku := range skus {
		args = append(args, sku)
	}
	wait := delayed.Debounce(24 * time.Hour)
	ref, err := s.queue.With(wait, delayed.UniqueKey("cart:"+email, 48*time.Hour)).Delay(mailing.Remind, args...)
	if err != nil {
		return nil, err
	}
	return ref.ID(), nil
}

func (s *Site) newsletter(r *http.Request) (any, error) {
	if err := r.ParseForm(); err != nil {
		return nil, err
	}
	var calls []*delayed.Task
	for i, email := range r.Form["to"] {
		values := map[string]any{"number": i, "of": len(r.Form["to"])}
		calls = append(calls, tasks.Newsletter.Call(email, r.FormValue("subject"), values))
	}
	refs, err := s.queue.With(delayed.In(time.Minute)).DelayMany(r.Context(), calls...)
	batch := new(delayed.BatchError)
	if errors.As(err, &batch) {
		s.log.Warn("newsletter is incomplete", "sent", batch.Sent, "error", batch.Err)
		return batch.Sent, nil
	}
	return len(refs), err
}

func (s *Site) delivery(r *http.Request) (any, error) {
	var lines []orders.Line
	if err := json.NewDecoder(r.Body).Decode(&lines); err != nil {
		return nil, err
	}
	index := s.queue.With(delayed.Group("stock"))
	for _, l := range lines {
		if _, err := s.queue.DelayContext(r.Context(), stock.Put, l.SKU, l.Quantity); err != nil {
			return nil, err
		}
		if _, err := index.DelayContext(r.Context(), tasks.Reindex, l.SKU); err != nil {
			return nil, err
		}
	}
	return len(lines), nil
}
