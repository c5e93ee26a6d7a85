// Package polite keeps the crawler from asking one host too often.
package polite

import (
	"context"
	"sync"
	"time"

	"github.com/godelayed/delayed"

	"example.com/app/blind/apps/crawler/page"
)

// Hosts remembers when hosts were asked last.
type Hosts struct {
	mu   sync.Mutex
	last map[string]time.Time
	gap  time.Duration
}

// New returns hosts that are asked once in a gap.
func New(gap time.Duration) *Hosts { return &Hosts{last: map[string]time.Time{}, gap: gap} }

// Middleware puts off tasks whose host was asked a moment ago.
func (h *Hosts) Middleware(next delayed.HandlerFunc) delayed.HandlerFunc {
	return func(ctx context.Context, t *delayed.Task) error {
		var job page.Job
		if err := t.Arg(0, &job); err != nil {
			return next(ctx, t)
		}
		if wait := h.wait(job.Address.Host()); wait > 0 {
			return delayed.Snooze(wait)
		}
		return next(ctx, t)
	}
}

func (h *Hosts) wait(host string) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if wait := h.gap - time.Since(h.last[host]); wait > 0 {
		return wait
	}
	h.last[host] = time.Now()
	return 0
}
