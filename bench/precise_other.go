//go:build !linux

package main

import "time"

// preciseSleeper returns time.Sleep: figures are taken on Linux.
func preciseSleeper() func(time.Duration) { return time.Sleep }
