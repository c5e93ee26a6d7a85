package delayed

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

const (
	retryFirst = 5 * time.Second
	retryMost  = 6 * time.Hour
)

// defaultBackoff is how long a task waits that has failed after retried earlier retries: 5 s, doubled each time, at
// most 6 h, ± 25 %.
func defaultBackoff(retried int) time.Duration {
	d := retryMost
	if retried < 13 { // 5 s · 2¹³ is more than 6 h
		d = min(retryFirst<<max(retried, 0), retryMost)
	}
	return jitter(d, 0.25)
}

// jitter returns d changed at random by up to the given part of it, either way.
func jitter(d time.Duration, part float64) time.Duration {
	return time.Duration(float64(d) * (1 + part*(2*rand.Float64()-1)))
}

// backoff spaces the attempts of one loop while Redis is away: 50 ms, doubled up to 2 s, ± 50 %. It is not safe for
// concurrent use.
type backoff struct{ failures int }

func (b *backoff) next() time.Duration {
	d := min(50*time.Millisecond<<min(b.failures, 6), 2*time.Second)
	b.failures++
	return jitter(d, 0.5)
}

func (b *backoff) reset() { b.failures = 0 }

// sleep waits for d and says whether ctx did not end before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// complaints limits how often a loop logs the same trouble: the first time, then once in ten seconds with a count.
type complaints struct {
	mu      sync.Mutex
	logged  time.Time
	skipped int
}

const complaintInterval = 10 * time.Second

// due says whether to log now, and how many times nothing was logged since.
func (c *complaints) due(now time.Time) (skipped int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.logged.IsZero() && now.Sub(c.logged) < complaintInterval {
		c.skipped++
		return 0, false
	}
	skipped, c.skipped, c.logged = c.skipped, 0, now
	return skipped, true
}

// over says whether there was trouble, and forgets it.
func (c *complaints) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	was := !c.logged.IsZero()
	c.logged, c.skipped = time.Time{}, 0
	return was
}
