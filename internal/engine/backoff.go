package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/loop"
)

const (
	retryFirst = 5 * time.Second
	retryMost  = 6 * time.Hour
)

// DefaultBackoff is how long a task waits that has failed after retried earlier retries: 5 s, doubled each time, at
// most 6 h, ± 25 %.
func DefaultBackoff(retried int) time.Duration {
	d := retryMost
	if retried < 13 { // 5 s · 2¹³ is more than 6 h
		d = min(retryFirst<<max(retried, 0), retryMost)
	}
	return loop.Jitter(d, 0.25)
}
