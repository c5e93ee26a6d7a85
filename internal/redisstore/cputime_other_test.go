//go:build !linux

package redisstore

import "time"

// cpuTime cannot tell on this system.
func cpuTime(int) (time.Duration, bool) { return 0, false }
