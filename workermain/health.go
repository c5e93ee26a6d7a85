package workermain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/state"
)

// health is the answer to a health check.
type health struct {
	Status    string `json:"status"` // ok or unavailable
	Reason    string `json:"reason,omitempty"`
	Worker    string `json:"worker"`
	State     string `json:"state"`
	Busy      int    `json:"busy"`
	Connected bool   `json:"connected"`
}

// answer returns the HTTP handler for a check, which returns why the worker fails it, or nothing.
func (p *program) answer(check func(delayed.WorkerStatus) string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "delayed: expected GET", http.StatusMethodNotAllowed)
			return
		}
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
	life := p.settings.worker.HeartbeatLife
	if time.Since(s.Beat) < life || started == nil || time.Since(*started) < life {
		return ""
	}
	return fmt.Sprintf("Redis has not confirmed the heartbeat within its life of %v", life)
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
