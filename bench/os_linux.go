package main

import (
	"os/exec"
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

// startTied starts a process that the kernel kills when this one ends for any reason: a server left behind would keep
// its memory and port, and the locks that it inherited. The caller calls release once the process has ended.
func startTied(cmd *exec.Cmd) (release func(), err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started, released := make(chan error), make(chan struct{})
	go func() {
		// The kernel sends the signal when the thread that started the process ends, so this goroutine keeps its
		// thread.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		started <- cmd.Start()
		<-released
	}()
	if err := <-started; err != nil {
		close(released)
		return nil, err
	}
	return func() { close(released) }, nil
}
