// Package childproc runs child processes for tests: servers and workers that are killed, stopped and continued, and
// that never outlive the test binary where the system allows it.
package childproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// keptOutput bounds what Output remembers of a child.
const keptOutput = 256 << 10

// Process is a started child. Its methods are safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	out  *tail
	done chan struct{}
	err  error // of Wait; set before done is closed
}

// Start starts cmd and collects its output; cmd.Stdout and cmd.Stderr must be nil. On Linux the child is killed when
// this process ends in whatever way.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, out: &tail{limit: keptOutput}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	// A grandchild that holds the output open must not keep Wait from returning.
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = dieWithParent()
	started := make(chan error)
	go func() {
		// Linux sends the parent-death signal when the thread that forked ends, so this thread is kept for as long as
		// the child lives.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			p.err = cmd.Wait()
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// PID returns the process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended and has been waited for.
func (p *Process) Done() <-chan struct{} { return p.done }

// Running reports whether the child has not ended yet. A stopped child is running.
func (p *Process) Running() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Err waits for the end of the child and returns nil if it exited with code 0, otherwise what exec.Cmd.Wait said.
func (p *Process) Err() error {
	<-p.done
	return p.err
}

// ExitCode waits for the end of the child and returns its exit code, -1 when a signal ended it.
func (p *Process) ExitCode() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}

// Output returns the end of what the child has written to its standard output and error, at most 256 KiB.
func (p *Process) Output() string { return p.out.String() }

// Signal sends sig. It is an error if the child has ended.
func (p *Process) Signal(sig syscall.Signal) error { return p.cmd.Process.Signal(sig) }

// Kill sends SIGKILL and waits for the end. A child that has ended is fine.
func (p *Process) Kill() {
	_ = p.Signal(syscall.SIGKILL)
	<-p.done
}

// Stop continues the child if it is stopped, sends SIGTERM and waits for the end, but no longer than limit: then it
// kills the child and returns an error. A child that has ended is fine.
func (p *Process) Stop(limit time.Duration) error {
	_ = p.Signal(syscall.SIGTERM)
	_ = p.Signal(sigCont)
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-p.done:
		return nil
	case <-late.C:
		p.Kill()
		return fmt.Errorf("process %d did not end within %v of SIGTERM", p.PID(), limit)
	}
}

// Pause sends SIGSTOP and waits until the child has really stopped, which takes a moment when its threads are running.
func (p *Process) Pause() error {
	if err := p.Signal(sigStop); err != nil {
		return err
	}
	return p.awaitStopped(true)
}

// Resume sends SIGCONT and waits until the child is no longer stopped.
func (p *Process) Resume() error {
	if err := p.Signal(sigCont); err != nil {
		return err
	}
	return p.awaitStopped(false)
}

func (p *Process) awaitStopped(want bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for {
		stopped, err := isStopped(p.PID())
		if err != nil || stopped == want {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("process %d: stopped is still %v after 10 s", p.PID(), stopped)
		case <-p.done:
			return os.ErrProcessDone
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// Describe says in words how a child ended, for messages of tests.
func (p *Process) Describe() string {
	if p.Running() {
		return fmt.Sprintf("process %d is running", p.PID())
	}
	var exit *exec.ExitError
	if errors.As(p.err, &exit) {
		return fmt.Sprintf("process %d: %v", p.PID(), exit.ProcessState)
	}
	if p.err != nil {
		return fmt.Sprintf("process %d: %v", p.PID(), p.err)
	}
	return fmt.Sprintf("process %d: exit status 0", p.PID())
}

// tail keeps the last bytes written to it.
type tail struct {
	limit int
	mu    sync.Mutex
	buf   []byte
	cut   bool
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.limit; over > t.limit {
		t.buf, t.cut = append([]byte(nil), t.buf[over:]...), true
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buf[max(0, len(t.buf)-t.limit):]
	if t.cut || len(b) < len(t.buf) {
		return "[…]" + string(b)
	}
	return string(b)
}
