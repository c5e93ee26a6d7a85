// Package scale reports to autoscalers such as KEDA how many workers are wanted, over HTTP and in JSON:
//
//	mux.Handle("GET /scale", scale.Handler(ins, scale.Config{Queues: []string{"mail"}}))
//
// A program of package workermain adds it by Config.Serve to the server of -listen. It answers for all processes, so
// one program suffices; a small one that runs no tasks can also answer while there is no worker.
package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

// Answer is what Handler answers, as JSON: what delayed scale --json prints.
type Answer = document.Scale

// Config is what a Handler answers. Its zero value is ready to use.
type Config struct {
	// Queues are those that the workers to be scaled serve. Defaults to all queues. A request may ask for some of them.
	Queues []string
	// Target is how long the wanted workers may need for all that waits. Defaults to a minute.
	Target time.Duration
	// Concurrency is how many tasks a wanted worker runs at once. Defaults to what the present workers have on average,
	// or 1 if there are none: set it if the number of workers may be 0.
	Concurrency int
	// Timeout bounds how long an answer takes. Defaults to 5 s.
	Timeout time.Duration
}

// query is what a request asks for.
type query struct {
	queues      []string
	chosen      bool // by the request
	target      time.Duration
	concurrency int
}

// handler answers requests, one at a time.
type handler struct {
	ins   *inspect.Inspector
	cfg   Config
	fault error // why cfg is no good
	turn  chan struct{}
}

// Handler returns a handler that answers GET with an Answer. A request may have parameters: queue, which may be
// repeated, target, such as 30s, and concurrency, in place of those of cfg. The status is 400 for wrong parameters,
// 404 for a queue that is not one of Config.Queues or that nobody has used yet, 503 if Redis does not answer in time,
// and 500 if ins is nil or cfg is wrong; the text is why. An answer takes a few requests to Redis for each
// queue, and one is made at a time.
func Handler(ins *inspect.Inspector, cfg Config) http.Handler {
	if cfg.Target == 0 {
		cfg.Target = time.Minute
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 5 * time.Second
	}
	h := &handler{ins: ins, cfg: cfg, turn: make(chan struct{}, 1)}
	h.cfg.Queues = slices.Clone(cfg.Queues)
	switch {
	case ins == nil:
		h.fault = errors.New("scale: the *Inspector is nil: make it with inspect.New")
	case cfg.Target < 0, cfg.Timeout < 0, cfg.Concurrency < 0:
		h.fault = fmt.Errorf("scale: Config has Target %v, Timeout %v and Concurrency %d: expected none below 0",
			cfg.Target, cfg.Timeout, cfg.Concurrency)
	}
	return h
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.fault != nil {
		http.Error(w, h.fault.Error(), http.StatusInternalServerError)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "scale: expected GET", http.StatusMethodNotAllowed)
		return
	}
	q, status, err := h.parse(r)
	if err != nil {
		http.Error(w, err.Error(), status)
		return
	}
	answer, err := h.answer(r.Context(), q)
	switch {
	case errors.Is(err, inspect.ErrNotFound):
		http.Error(w, "scale: nobody has used one of the queues yet", http.StatusNotFound)
		return
	case err != nil: // which may name addresses of servers
		http.Error(w, "scale: Redis did not answer", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(answer) // fails only if the client has gone
}

// parse reads the parameters of a request. It repeats none of them in an error.
func (h *handler) parse(r *http.Request) (*query, int, error) {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil { // the parts that can be read would mean something else
		return nil, http.StatusBadRequest, errors.New("scale: the parameters cannot be read: expected name=value&…, " +
			"with percent signs for other characters")
	}
	q := &query{queues: h.cfg.Queues, target: h.cfg.Target, concurrency: h.cfg.Concurrency}
	for name, values := range given {
		switch {
		case name == "queue":
		case name != "target" && name != "concurrency":
			return nil, http.StatusBadRequest,
				errors.New("scale: unknown parameter: expected queue, target and concurrency")
		case len(values) > 1:
			return nil, http.StatusBadRequest, errors.New("scale: expected target and concurrency once at most")
		}
	}
	if names := given["queue"]; len(names) > 0 {
		for _, name := range names {
			if name == "" || len(h.cfg.Queues) > 0 && !slices.Contains(h.cfg.Queues, name) {
				return nil, http.StatusNotFound, errors.New("scale: a queue is none of those that are scaled here")
			}
		}
		q.queues, q.chosen = names, true
	}
	if text := given.Get("target"); text != "" {
		if q.target, err = time.ParseDuration(text); err != nil || q.target <= 0 {
			return nil, http.StatusBadRequest, errors.New("scale: target: expected a positive duration, such as 30s")
		}
	}
	if text := given.Get("concurrency"); text != "" {
		if q.concurrency, err = strconv.Atoi(text); err != nil || q.concurrency < 1 {
			return nil, http.StatusBadRequest, errors.New("scale: concurrency: expected a number from 1")
		}
	}
	return q, 0, nil
}

// answer asks Redis, while no other request does.
func (h *handler) answer(ctx context.Context, q *query) (a Answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return a, ctx.Err()
	}
	if q.chosen { // Backlog takes a malformed name for a fault of the program
		known, err := h.ins.Names(ctx)
		if err != nil {
			return a, err
		}
		for _, name := range q.queues {
			if !slices.Contains(known, name) {
				return a, inspect.ErrNotFound
			}
		}
	}
	b, err := h.ins.Backlog(ctx, q.queues...)
	if err != nil {
		return a, err
	}
	wanted, err := b.WorkersFor(q.target, q.concurrency)
	return document.ScaleOf(&b, q.target, wanted), err
}
