package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

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
