package sweep

import (
	"sync"
	"time"
)

// LinkHealth knows since when a process has been in touch with one Redis server without a break. A sweeper needs it:
// when Redis was away, or this process stood still, a missing heartbeat says nothing about its worker. It is safe for
// concurrent use.
type LinkHealth struct {
	slow time.Duration // a call that takes longer is a break

	mu      sync.Mutex // protects the following
	since   time.Time  // zero: no contact
	pending map[uint64]time.Time
	next    uint64
}

// NewLinkHealth returns the health of the link to a server on which heartbeats live for life. There is no contact yet.
func NewLinkHealth(life time.Duration) *LinkHealth {
	return &LinkHealth{slow: max(life/4, 100*time.Millisecond), pending: map[uint64]time.Time{}}
}

// Call notes that a call starts, and done that it has ended, with its error.
func (h *LinkHealth) Call() (done func(error)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	id, start := h.next, time.Now()
	h.pending[id] = start
	return func(err error) {
		now := time.Now()
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.pending, id)
		switch {
		case err != nil || now.Sub(start) > h.slow:
			h.since = time.Time{}
		case h.since.IsZero():
			h.since = now
		}
	}
}

// Break notes a break that no call has shown.
func (h *LinkHealth) Break() {
	h.mu.Lock()
	h.since = time.Time{}
	h.mu.Unlock()
}

// UnbrokenSince returns since when there is contact, and false if there is none just now.
func (h *LinkHealth) UnbrokenSince() (since time.Time, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, start := range h.pending {
		if time.Since(start) > h.slow {
			return time.Time{}, false
		}
	}
	return h.since, !h.since.IsZero()
}
