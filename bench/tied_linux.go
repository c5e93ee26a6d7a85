package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// startTied starts a process that the kernel kills when this one ends, in whatever way: a server left behind would keep
// its memory and port, and the locks that it inherited. The caller calls release once the process has ended.
func startTied(cmd *exec.Cmd) (release func(), err error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started, released := make(chan error), make(chan struct{})
	go func() {
		// The signal is sent when the thread ends that started the process: this goroutine keeps it.
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
