package workermain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
)

// healthTimeout bounds reading a request, writing its answer, and closing the server.
const healthTimeout = 5 * time.Second

// health is the answer to a health check.
type health struct {
	Status    string `json:"status"` // ok or unavailable
	Reason    string `json:"reason,omitempty"`
	Worker    string `json:"worker"`
	State     string `json:"state"`
	Busy      int    `json:"busy"`
	Connected bool   `json:"connected"`
}

// serveHealth answers health checks at addr until the function it returns is called. An empty addr means none.
func (p *program) serveHealth(ctx context.Context, addr string) (closeServer func(), err error) {
	if addr == "" {
		return func() {}, nil
	}
	var lc net.ListenConfig
	listener, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("health checks: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", p.answer(p.alive))
	mux.HandleFunc("GET /readyz", p.answer(p.ready))
	server := &http.Server{
		Handler: mux, ReadTimeout: healthTimeout, WriteTimeout: healthTimeout, IdleTimeout: time.Minute,
		MaxHeaderBytes: 1 << 14,
	}
	p.log.WithField("address", listener.Addr().String()).Info("answering health checks")
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.log.WithError(err).Error("health checks are not answered any more")
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			server.Close()
		}
		<-served
	}, nil
}

// answer returns the HTTP handler for a check, which returns why the worker fails it, or nothing.
func (p *program) answer(check func(delayed.WorkerStatus) string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		status := p.worker.Status()
		h := health{
			Status: "ok", Reason: check(status), Worker: status.ID, State: status.State.String(), Busy: status.Busy,
			Connected: status.Connected,
		}
		if p.started.Load() == nil {
			h.State = "starting"
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		if h.Reason != "" {
			h.Status = "unavailable"
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_ = json.NewEncoder(w).Encode(h) // fails only if the client has gone
	}
}

// alive is the check of /healthz.
func (p *program) alive(s delayed.WorkerStatus) string {
	started := p.started.Load()
	if s.Connected || started == nil || time.Since(*started) < p.settings.life() {
		return ""
	}
	return fmt.Sprintf("Redis has not confirmed the heartbeat within its life of %v", p.settings.life())
}

// ready is the check of /readyz.
func (p *program) ready(s delayed.WorkerStatus) string {
	switch {
	case p.started.Load() == nil:
		return "starting"
	case s.State != state.Running:
		return s.State.String()
	case !s.Connected:
		return "not connected to Redis"
	}
	return ""
}
