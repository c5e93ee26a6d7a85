//go:build linux || darwin

package isolate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"
)

// The child's ends of the pipes.
const (
	fdJobs = 3 + iota
	fdOrders
	fdAnswers
)

// cpuExit is the exit status of a child whose job has used too much processor time.
const cpuExit = 152

// Job is a job as the child sees it.
type Job struct {
	Context context.Context // ends with a cause of Server.Cause when the parent orders it
	Body    []byte          // valid while the job runs
	Report  func(body []byte) error
	// Answer sends the verdict. It must be called once, at the end, also if the goroutine ends by runtime.Goexit.
	Answer func(verdict []byte)
}

// Server is what a child does.
type Server struct {
	Setup func() error
	Run   func(Job)
	// Cause is the reverse of Config.Cause.
	Cause func(byte) error
	// Stacks returns the stacks of all goroutines, that of the job first.
	Stacks func() string
}

// toAll are the signals that a child takes for itself. A service manager may send all but the first to each process of
// a service, and not only to the parent.
var toAll = []os.Signal{syscall.SIGXCPU, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGTSTP}

// IsChild reports whether this process was started as a child of a pool.
func IsChild() bool { return os.Getenv(envChild) != "" }

// child is this process.
type child struct {
	Server
	limits Limits

	writing sync.Mutex
	answers *os.File
	message []byte // memory for frames

	mu     sync.Mutex
	job    uint64 // the number of the present job, 0: none
	cancel context.CancelCauseFunc
	ended  uint64 // the number of the job whose context the parent has ended last, which may not have begun
	cause  byte   // with which it did
}

// Serve runs jobs until the parent ends this process. It does not return.
func Serve(s Server) {
	text := os.Getenv(envChild)
	os.Unsetenv(envChild) // what this process starts is no child of the pool
	invited, err := parseInvitation(text, hasPipes())
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // there may be no parent
		os.Exit(1)
	}
	for fd := fdJobs; fd <= fdAnswers; fd++ {
		syscall.CloseOnExec(fd)
	}
	c := &child{Server: s, limits: invited.Limits, answers: os.NewFile(fdAnswers, "answers")}
	if err := c.setUp(); err != nil {
		_ = c.send(frameFailed, []byte(err.Error())) // the parent also sees the end
		os.Exit(1)
	}
	go c.obey(bufio.NewReader(os.NewFile(fdOrders, "orders")))
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, toAll...) // before the first job, which may decide otherwise
	go c.listen(signals)
	_ = c.send(frameReady) // if the parent is gone, the loop below ends
	jobs := bufio.NewReaderSize(os.NewFile(fdJobs, "jobs"), 8<<10)
	var frame []byte
	for {
		// A goroutine of its own, because a job may end it by runtime.Goexit.
		over := make(chan error, 1)
		go func() {
			defer func() { over <- nil }()
			for {
				kind, body, err := readFrame(jobs, &frame)
				number, body, ok := cutNumber(body)
				if err == nil && (kind != frameJob || !ok) {
					err = errors.New("no job")
				}
				if err != nil {
					over <- err
					return
				}
				c.run(number, body)
			}
		}()
		if err := <-over; err != nil {
			os.Exit(0) // the parent has closed the pipe
		}
	}
}

// hasPipes reports whether this process has got the pipes of a child.
func hasPipes() bool {
	for fd := fdJobs; fd <= fdAnswers; fd++ {
		var st syscall.Stat_t
		if syscall.Fstat(fd, &st) != nil || st.Mode&syscall.S_IFMT != syscall.S_IFIFO {
			return false
		}
	}
	return true
}

// setUp prepares this process.
func (c *child) setUp() error {
	if err := c.Setup(); err != nil {
		return err
	}
	if most := c.limits.Memory; most > 0 {
		if os.Getenv("GOMEMLIMIT") == "" {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			debug.SetMemoryLimit(int64(m.Sys) + most) //nolint:gosec // the collector works harder before it is too late
		}
		return limitMemory(most)
	}
	return nil
}

// run runs one job.
func (c *child) run(number uint64, body []byte) {
	if c.limits.CPU > 0 {
		limitCPU(c.limits.CPU)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	c.mu.Lock()
	c.job, c.cancel = number, cancel
	if c.ended == number {
		cancel(c.Cause(c.cause))
	}
	c.mu.Unlock()
	defer cancel(nil)
	prefix := numbered(number)
	c.Run(Job{
		Context: ctx, Body: body,
		Report: func(report []byte) error { return c.send(frameReport, prefix, report) },
		Answer: func(verdict []byte) {
			c.mu.Lock()
			c.job = 0
			c.mu.Unlock()
			_ = c.send(frameVerdict, prefix, verdict) // if the parent is gone, so is this process
		},
	})
}

// send sends a frame.
func (c *child) send(kind byte, parts ...[]byte) error {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.message = appendFrame(c.message[:0], kind, parts...)
	_, err := c.answers.Write(c.message)
	return err
}

// obey follows the parent's orders. When the pipe ends, so has the parent, and this process and what it has started
// end.
func (c *child) obey(orders *bufio.Reader) {
	var frame []byte
	for {
		kind, body, err := readFrame(orders, &frame)
		if err != nil {
			break
		}
		number, rest, ok := cutNumber(body)
		switch {
		case !ok:
		case kind == frameCancel && len(rest) == 1:
			c.endContext(number, rest[0])
		case kind == frameDump && number == c.present():
			c.dump(number)
		}
	}
	if syscall.Getpgrp() == os.Getpid() {
		_ = syscall.Kill(0, syscall.SIGKILL)
	}
	os.Exit(1)
}

// endContext ends the context of a job. The order may come before the job, in the other pipe.
func (c *child) endContext(job uint64, cause byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended, c.cause = job, cause
	if c.job == job {
		c.cancel(c.Cause(cause))
	}
}

// present returns the number of the present job, 0 if there is none.
func (c *child) present() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.job
}

// condemned reports whether the parent has ended the context of the present job.
func (c *child) condemned() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.job != 0 && c.ended == c.job
}

// dump sends the stacks of all goroutines.
func (c *child) dump(number uint64) {
	stacks := c.Stacks()
	_ = c.send(frameStacks, numbered(number), []byte(stacks[:min(len(stacks), maxStacks)]))
}

// listen ends this process on signals. SIGTERM counts only when the parent has ended the context of the job before:
// from others it has come to the parent as well, which may let the job end in peace.
func (c *child) listen(signals <-chan os.Signal) {
	for sig := range signals {
		switch {
		case sig == syscall.SIGXCPU:
			os.Stderr.WriteString("fatal error: the task has used more processor time than Isolation.CPU allows\n")
			c.dump(c.present())
			os.Exit(cpuExit)
		case sig == syscall.SIGTERM && c.condemned():
			// The status of a process that the signal has ended.
			signal.Reset(syscall.SIGTERM)
			_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		}
	}
}

// limitCPU bounds the processor time of this process to what it has used so far and more.
func limitCPU(more time.Duration) {
	var used syscall.Rusage
	var old syscall.Rlimit
	if syscall.Getrusage(syscall.RUSAGE_SELF, &used) != nil || syscall.Getrlimit(syscall.RLIMIT_CPU, &old) != nil {
		return
	}
	spent := time.Duration(used.Utime.Nano() + used.Stime.Nano())
	old.Cur = min(uint64((spent+more+time.Second-1)/time.Second), old.Max) //nolint:gosec // positive
	_ = syscall.Setrlimit(syscall.RLIMIT_CPU, &old)
}
