// Package timer has things with the names of those of the queue.
package timer

import (
	"errors"
	"time"
)

// Clock delays functions within the process.
type Clock struct{ timers []*time.Timer }

// Delay calls fn later.
func (c *Clock) Delay(fn func(), after ...time.Duration) {
	for _, d := range after {
		c.timers = append(c.timers, time.AfterFunc(d, fn))
	}
}

// Register keeps what can be stopped.
func (c *Clock) Register(fns ...any) error {
	if len(fns) == 0 {
		return errors.New("timer: nothing to keep")
	}
	return nil
}

// In is when something is due.
func In(seconds int) time.Time { return time.Now().Add(time.Duration(seconds) * time.Second) }
