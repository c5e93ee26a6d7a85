package delayed

import (
	"sync"
	"time"
)

// contact knows since when a process has been in touch with one Redis server without a break. A sweeper needs it: when
// Redis was away, or this process stood still, a missing heartbeat says nothing about its worker.
type contact struct {
	slow time.Duration // a call that takes longer is a break

	mu      sync.Mutex // protects the following
	since   time.Time  // zero: no contact
	pending map[uint64]time.Time
	next    uint64
}

func newContact(life time.Duration) *contact {
	return &contact{slow: max(life/4, 100*time.Millisecond), pending: map[uint64]time.Time{}}
}

// call notes that a call starts; the function it returns, that it is over.
func (c *contact) call() func(error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	id, start := c.next, time.Now()
	c.pending[id] = start
	return func(err error) {
		now := time.Now()
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pending, id)
		switch {
		case err != nil || now.Sub(start) > c.slow:
			c.since = time.Time{}
		case c.since.IsZero():
			c.since = now
		}
	}
}

// broken notes a break that no call has shown.
func (c *contact) broken() {
	c.mu.Lock()
	c.since = time.Time{}
	c.mu.Unlock()
}

// unbroken returns since when there is contact, and false if there is none just now.
func (c *contact) unbroken() (since time.Time, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, start := range c.pending {
		if time.Since(start) > c.slow {
			return time.Time{}, false
		}
	}
	return c.since, !c.since.IsZero()
}
