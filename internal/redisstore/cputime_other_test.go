//go:build !linux

package redisstore

import "time"

// cpuTime returns false, because this system does not report it.
func cpuTime(int) (time.Duration, bool) { return 0, false }
