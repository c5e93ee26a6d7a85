package main

import (
	"runtime"
	"syscall"
	"time"
)

// preciseSleeper returns a function for the calling goroutine that sleeps to within some tens of µs. time.Sleep takes a
// whole ms in a process that is idle otherwise. The goroutine keeps a thread to itself.
func preciseSleeper() func(time.Duration) {
	runtime.LockOSThread()
	const setTimerSlack = 29                                             // PR_SET_TIMERSLACK, of this thread
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0) // without it the kernel adds up to 50 µs
	return func(d time.Duration) {
		for until := time.Now().Add(d); d > 0; d = time.Until(until) { // a signal ends a sleep early
			t := syscall.NsecToTimespec(int64(d))
			_ = syscall.Nanosleep(&t, nil)
		}
	}
}
