package wire

import (
	"math"
	"time"
)

// Unlimited stands for a duration without a bound in messages, in ms: it is longer than anybody waits.
const Unlimited = math.MaxInt64 / int64(time.Millisecond)

// Milliseconds converts a duration in a message.
func Milliseconds(ms int64) time.Duration {
	return time.Duration(min(ms, Unlimited)) * time.Millisecond
}
