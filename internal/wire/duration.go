package wire

import (
	"math"
	"time"
)

// Unlimited is the duration, in ms, that stands for "no bound" in messages. It is the longest that a time.Duration can
// hold.
const Unlimited = math.MaxInt64 / int64(time.Millisecond)

// Milliseconds converts a duration from a message, in ms. Durations longer than Unlimited become Unlimited.
func Milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, Unlimited)) * time.Millisecond
}
