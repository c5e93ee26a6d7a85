package engine

import (
	"time"

	"github.com/godelayed/delayed/internal/loop"
)

const (
	firstRetryDelay = 5 * time.Second
	maxRetryDelay   = 6 * time.Hour
)

// DefaultBackoff returns how long a task waits after a failure, if it has been retried that often: 5 s, doubled each
// time, at most 6 h, ± 25 %.
func DefaultBackoff(retried int) time.Duration {
	d := maxRetryDelay
	if retried < 13 { // 5 s · 2¹³ is more than 6 h
		d = min(firstRetryDelay<<max(retried, 0), maxRetryDelay)
	}
	return loop.Jitter(d, 0.25)
}
