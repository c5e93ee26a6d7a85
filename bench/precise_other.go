//go:build !linux

package main

import "time"

// preciseSleeper returns time.Sleep, because figures are taken on Linux only.
func preciseSleeper() func(time.Duration) { return time.Sleep }
