package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"syscall"
)

// awake keeps every core from going idle while bench takes figures of single round trips: an idle core of a virtual
// machine sometimes takes tens of microseconds to wake, which makes such figures bimodal.
type awake struct {
	cmd *exec.Cmd
	in  io.Closer
}

// keepAwake starts a busy loop at the lowest priority for each core, in a child process.
func keepAwake() (*awake, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "spin")
	cmd.Env = append(os.Environ(), "BENCH_DRIVER=1", "GOGC=off")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // the child writes a byte when it has begun
		return nil, errors.Join(errors.New("the process that keeps the cores awake did not start"), err, cmd.Wait())
	}
	return &awake{cmd, in}, nil
}

func (a *awake) stop() {
	a.in.Close()
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
}

// spinCommand is the child process of keepAwake. It ends when stdin does.
func spinCommand(context.Context, []string) error {
	cores := runtime.NumCPU()
	runtime.GOMAXPROCS(cores + 1) // one more reads stdin
	started := make(chan error, cores)
	for range cores {
		go func() {
			runtime.LockOSThread()
			// The priority holds for this thread only: Linux has one for each thread.
			started <- syscall.Setpriority(syscall.PRIO_PROCESS, 0, 19)
			var spun atomic.Uint64
			for {
				spun.Add(1)
			}
		}()
	}
	for range cores {
		if err := <-started; err != nil {
			return err
		}
	}
	if _, err := os.Stdout.WriteString("."); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
