// Package loop has what each loop of a worker needs: back-off, sleeping, and a journal that does not repeat itself.
package loop

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Jitter returns d changed at random by up to the given part of it, either way.
func Jitter(d time.Duration, part float64) time.Duration {
	return time.Duration(float64(d) * (1 + part*(2*rand.Float64()-1)))
}

// Backoff spaces the attempts of one loop while Redis is away: 50 ms, doubled up to 1 s, ± 50 %. So a loop goes on
// within 1.5 s after Redis is back. It is not safe for concurrent use.
type Backoff struct{ failures int }

// Next returns how long to wait after another failure.
func (b *Backoff) Next() time.Duration {
	d := min(50*time.Millisecond<<min(b.failures, 5), time.Second)
	b.failures++
	return Jitter(d, 0.5)
}

// Reset ends a series of failures.
func (b *Backoff) Reset() { b.failures = 0 }

// Sleep waits for d. It returns false if ctx ends before.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// SleepOr waits for d, or until poke has an element or ctx ends.
func SleepOr(ctx context.Context, poke <-chan struct{}, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-poke:
	case <-ctx.Done():
	}
}

// Complaints limits how often a loop logs the same trouble: at once, then every ten seconds with a count.
type Complaints struct {
	mu      sync.Mutex
	logged  time.Time
	skipped int
}

// ComplaintInterval is the time between two log lines about the same trouble.
const ComplaintInterval = 10 * time.Second

// due reports whether to log now, and how often the trouble was not logged since the last line.
func (c *Complaints) due(now time.Time) (skipped int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.logged.IsZero() && now.Sub(c.logged) < ComplaintInterval {
		c.skipped++
		return 0, false
	}
	skipped, c.skipped, c.logged = c.skipped, 0, now
	return skipped, true
}

// over reports whether there was trouble, and forgets it.
func (c *Complaints) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := !c.logged.IsZero()
	c.logged, c.skipped = time.Time{}, 0
	return was
}

// Await reports whether done closes within d.
func Await(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}

// Drain removes the element of a channel of one, if there is one. It never blocks.
func Drain(c <-chan struct{}) {
	select {
	case <-c:
	default:
	}
}

// Poke puts an element into a channel that has room for one, unless there is one. It never blocks.
func Poke(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
