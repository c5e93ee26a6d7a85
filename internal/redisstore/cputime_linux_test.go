package redisstore

import (
	"syscall"
	"time"
	"unsafe"
)

// cpuTime returns how much processor time a process has used.
func cpuTime(pid int) (time.Duration, bool) {
	const schedClock = 2 // CPUCLOCK_SCHED of the kernel: a process's clock is (~pid << 3) | 2
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, uintptr(^pid<<3|schedClock), uintptr(unsafe.Pointer(&ts)),
		0)
	return time.Duration(ts.Nano()), errno == 0
}
