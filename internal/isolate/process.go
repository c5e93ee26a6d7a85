//go:build linux || darwin

package isolate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/godelayed/delayed/internal/loop"
)

const (
	// startLimit bounds the set-up of a child.
	startLimit = time.Minute
	// dumpLimit is how long a child has to send its stacks before it is ended.
	dumpLimit = 500 * time.Millisecond
	// exitLimit is how long a child has to end once its pipe of jobs is closed, and its pipes to be empty once it has
	// ended.
	exitLimit = time.Second
)

// ErrClosed reports that the pool was closed.
var ErrClosed = errors.New("delayed: the child processes of this worker were ended")

// process is a child as its parent sees it.
type process struct {
	cmd    *exec.Cmd
	jobs   *os.File // the parent's ends of the pipes
	orders *os.File
	file   *os.File // of answers
	out    *output

	answers *bufio.Reader
	frame   []byte // memory for frames that are read
	message []byte // memory for frames that are sent

	dead   chan struct{} // closed when the child was reaped
	copied chan struct{} // closed when its output has ended

	group     group
	ungrouped error // why it has no group although one was delegated

	ran    int       // jobs so far
	unsent bool      // the last job was not sent, at least not all of it
	idle   time.Time // since when it has no job

	mu     sync.Mutex
	job    uint64 // number of the present job, 0: none
	last   uint64 // number of the last job
	why    string // what was done to the child
	stacks string // that it sent
	dumped chan struct{}
}

// start starts a child, and waits until its set-up is over or ctx ends. spawn calls a function on the thread on which
// children are started.
func start(
	ctx context.Context, spawn func(func()), args, env []string, limits Limits, out io.Writer,
) (*process, error) {
	path, err := executable()
	if err != nil {
		return nil, err
	}
	var ends []*os.File
	closeAll := func() {
		for _, f := range ends {
			f.Close()
		}
	}
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				ends = append(ends, r, w)
			}
		}
		return r, w
	}
	jobsR, jobsW := pipe()
	ordersR, ordersW := pipe()
	answersR, answersW := pipe()
	stderrR, stderrW := pipe()
	if err != nil {
		closeAll()
		return nil, fmt.Errorf("delayed: pipes for a child process: %w", err)
	}
	p := &process{
		jobs: jobsW, orders: ordersW, file: answersR, out: &output{to: out},
		answers: bufio.NewReaderSize(answersR, 8<<10), dead: make(chan struct{}), copied: make(chan struct{}),
	}
	p.cmd = &exec.Cmd{
		Path: path, Args: args,
		Env:    append(env[:len(env):len(env)], envChild+"="+invitation{invitationVersion, limits}.String()),
		Stdout: os.Stdout, Stderr: stderrW, ExtraFiles: []*os.File{jobsR, ordersR, answersW}, SysProcAttr: attributes(),
	}
	p.group, p.ungrouped = newGroup(limits)
	spawn(func() { err = p.cmd.Start() })
	for _, f := range []*os.File{jobsR, ordersR, answersW, stderrW} {
		f.Close()
	}
	if err != nil {
		closeAll()
		p.group.close()
		return nil, fmt.Errorf("delayed: starting a child process: %w", err)
	}
	p.ungrouped = errors.Join(p.ungrouped, p.group.add(p.cmd.Process.Pid))
	go p.copyOutput(stderrR)
	go p.reap(stderrR)
	err = p.awaitReady(ctx, startLimit)
	if err == nil && p.ungrouped == nil {
		p.ungrouped = p.group.bound(limits.Memory)
	}
	return p, err
}

// copyOutput passes on what the child writes to its standard error.
func (p *process) copyOutput(from *os.File) {
	defer close(p.copied)
	defer from.Close()
	buf := make([]byte, 16<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			_, _ = p.out.Write(buf[:n]) // never fails
		}
		if err != nil {
			return
		}
	}
}

// reap waits for the end of the child, ends what it has started, and bounds the time in which its pipes are read to
// their ends: a process that left the group may still hold them.
func (p *process) reap(stderr *os.File) {
	pid := p.cmd.Process.Pid
	awaitEnd(pid)
	_ = syscall.Kill(-pid, syscall.SIGKILL)
	_ = p.cmd.Wait() // the state shows more
	if p.group.close() {
		p.mu.Lock()
		p.why += "it and what it had started used more memory than Isolation.Memory allows"
		p.mu.Unlock()
	}
	late := time.Now().Add(exitLimit)
	_ = p.file.SetReadDeadline(late)
	_ = stderr.SetReadDeadline(late)
	close(p.dead)
	reapAdopted(pid)
}

// reapAdopted reaps what is left of a process group that was killed, as far as it has become the child of this process.
// It has if this process is the first one of a container: others are zombies until it ends.
func reapAdopted(group int) {
	for end := time.Now().Add(exitLimit); ; <-time.After(10 * time.Millisecond) {
		var err error
		for err == nil || errors.Is(err, syscall.EINTR) {
			var pid int
			if pid, err = syscall.Wait4(-group, nil, syscall.WNOHANG, nil); pid == 0 {
				break // those that are left have not ended
			}
		}
		if syscall.Kill(-group, 0) != nil || time.Now().After(end) {
			return
		}
	}
}

// awaitReady waits until the child has done its set-up, at most for limit and until ctx ends.
func (p *process) awaitReady(ctx context.Context, limit time.Duration) error {
	_ = p.file.SetReadDeadline(time.Now().Add(limit))
	stop := context.AfterFunc(ctx, func() { _ = p.file.SetReadDeadline(time.Now()) })
	kind, body, err := readFrame(p.answers, &p.frame)
	if stop() {
		_ = p.file.SetReadDeadline(time.Time{})
	} else {
		err = ErrClosed // and what was read does not matter
	}
	switch {
	case errors.Is(err, ErrClosed):
	case err == nil && kind == frameReady:
		p.out.pass()
		return nil
	case err == nil && kind == frameFailed:
		err = fmt.Errorf("delayed: the set-up of a child process failed: %s", body)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = fmt.Errorf("delayed: the set-up of a child process took longer than %v", limit)
	default:
		err = errors.New("delayed: a child process ended before it was set up; does main call delayed.ChildMain first?")
	}
	if text := p.end().Output; text != "" {
		err = fmt.Errorf("%w; it wrote: %s", err, text)
	}
	return err
}

// Patience defines how long a job may go on after the end of its context.
type Patience struct {
	Start time.Duration // before it is given up if it still waits for the set-up of a child
	Grace time.Duration // before its child gets SIGTERM; then it has as long again, at most a second
	Rest  time.Duration // from then on, before it is killed, if that is shorter; 0: no limit
}

// run runs one job. report gets its reports. The verdict is valid until the next run.
func (p *process) run(
	ctx context.Context, job []byte, report func([]byte), cause func(context.Context) byte, patience func() Patience,
) (verdict []byte, death *DeathError) {
	number, dumped := p.begin()
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { p.cancel(number, cause(ctx), patience(), dumped, done) })
	defer func() {
		close(done)
		stop()
	}()
	verdict, err := p.converse(job, report)
	p.mu.Lock()
	p.job = 0
	p.mu.Unlock()
	if err != nil {
		return nil, p.end()
	}
	return verdict, nil
}

// hasDied reports whether the child has ended.
func (p *process) hasDied() bool {
	select {
	case <-p.dead:
		return true
	default:
		return false
	}
}

// signaled reports whether a signal was sent to the child.
func (p *process) signaled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why != ""
}

// begin begins the next job. dumped is closed when the child has sent its stacks.
func (p *process) begin() (number uint64, dumped <-chan struct{}) {
	p.out.reset()
	p.ran++
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last++
	p.job, p.stacks, p.dumped = p.last, "", make(chan struct{})
	return p.job, p.dumped
}

// converse sends a job and reads the answers, up to the verdict.
func (p *process) converse(job []byte, report func([]byte)) (verdict []byte, err error) {
	p.message = appendFrame(p.message[:0], frameJob, numbered(p.last), job)
	if _, err := p.jobs.Write(p.message); err != nil {
		p.unsent = true
		return nil, err
	}
	for {
		kind, body, err := readFrame(p.answers, &p.frame)
		if err != nil {
			return nil, err
		}
		n, rest, ok := cutNumber(body)
		switch {
		case !ok:
			return nil, errors.New("a frame without a number")
		case kind == frameStacks:
			p.keepStacks(n, rest)
		case n != p.last: // late words of an earlier job
		case kind == frameReport:
			report(rest)
		case kind == frameVerdict:
			return rest, nil
		}
	}
}

// keepStacks keeps the stacks that the child has sent.
func (p *process) keepStacks(job uint64, stacks []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if job != p.job || p.dumped == nil {
		return
	}
	p.stacks = string(stacks)
	close(p.dumped)
	p.dumped = nil
}

// cancel ends a job whose context has ended. First the context of the job ends, then the child gets SIGTERM, and then
// SIGKILL.
func (p *process) cancel(job uint64, cause byte, patience Patience, dumped, done <-chan struct{}) {
	grace := patience.Grace
	dump, obey := dumpLimit, min(grace, exitLimit)
	if rest := patience.Rest; rest > 0 {
		dump, obey = min(dump, rest/2), min(obey, rest/2)
	}
	p.order(job, frameCancel, cause)
	if loop.Await(done, grace) {
		return
	}
	p.order(job, frameDump)
	select {
	case <-done:
		return
	case <-dumped:
	case <-time.After(dump):
	}
	p.signal(job, syscall.SIGTERM, fmt.Sprintf("it was asked to end %v after the end of the task's context", grace))
	if loop.Await(done, obey) {
		return
	}
	p.signal(job, syscall.SIGKILL, fmt.Sprintf(", and killed %v later", obey))
}

// order sends an order about a job, if that is the present one.
func (p *process) order(job uint64, kind byte, more ...byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.job != job {
		return
	}
	_ = p.orders.SetWriteDeadline(time.Now().Add(dumpLimit)) // a stopped child reads nothing
	_, _ = p.orders.Write(appendFrame(nil, kind, numbered(job), more))
}

// signal sends a signal to the child and what it has started, if the job is the present one.
func (p *process) signal(job uint64, sig syscall.Signal, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.job == job {
		p.why += why
		p.kill(sig)
	}
}

// kill sends a signal to the child; SIGKILL also goes to what it has started.
func (p *process) kill(sig syscall.Signal) {
	if p.hasDied() {
		return
	}
	pid := p.cmd.Process.Pid
	if sig == syscall.SIGKILL {
		pid = -pid
	}
	_ = syscall.Kill(pid, sig) // it may have ended
}

// end makes sure that the child has ended, and returns how.
func (p *process) end() *DeathError {
	if !loop.Await(p.dead, dumpLimit) { // it closed its pipes, or sent rubbish
		p.kill(syscall.SIGKILL)
		<-p.dead
	}
	<-p.copied
	rest := unread(p.jobs)
	p.close()
	p.mu.Lock()
	defer p.mu.Unlock()
	return &DeathError{
		Pid: p.cmd.Process.Pid, Status: p.cmd.ProcessState.String(), Why: p.why, Output: p.out.String(),
		Stacks: strings.TrimSpace(p.stacks), unread: p.why == "" && (p.unsent || rest),
	}
}

// retire lets a child without a job end.
func (p *process) retire() {
	p.jobs.Close()
	if !loop.Await(p.dead, exitLimit) {
		p.kill(syscall.SIGKILL)
		<-p.dead
	}
	<-p.copied
	p.close()
}

func (p *process) close() {
	p.jobs.Close()
	p.orders.Close()
	p.file.Close()
}
