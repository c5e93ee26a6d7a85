package sweep

import (
	"sync"
	"time"

	"github.com/godelayed/delayed/internal/redisstore"
)

// LinkHealth records since when a process has been in contact with one Redis server without a break. Sweepers need it:
// when Redis was away, or this process was halted, a missing heartbeat does not mean that its worker is dead. It is
// safe for concurrent use.
type LinkHealth struct {
	slow time.Duration // a call that takes longer counts as a break

	mu      sync.Mutex // protects the following
	since   time.Time  // zero: no contact
	pending map[uint64]time.Time
	next    uint64
}

// NewLinkHealth returns the health of the link to a server whose heartbeats last for life. There is no contact yet.
func NewLinkHealth(life time.Duration) *LinkHealth {
	return &LinkHealth{slow: max(life/4, 100*time.Millisecond), pending: map[uint64]time.Time{}}
}

// Call notes that a call starts; done notes that it has ended, with its error. That keys are of another type is an
// answer.
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
		case err != nil && !redisstore.IsWrongType(err), now.Sub(start) > h.slow:
			h.since = time.Time{}
		case h.since.IsZero():
			h.since = now
		}
	}
}

// Break notes a break that shows in no call.
func (h *LinkHealth) Break() {
	h.mu.Lock()
	h.since = time.Time{}
	h.mu.Unlock()
}

// UnbrokenSince returns since when there is contact, and false if there is none now.
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
