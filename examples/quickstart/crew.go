package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"time"
)

// crew are the worker processes.
type crew struct {
	workers []*process
	failed  chan error // of workers that ended although nobody stopped them
}

// process is this program, started again as a worker.
type process struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
	asked atomic.Bool   // whether it was asked to end
	ended chan struct{} // closed
}

func startCrew(redisURL, queue string, names ...string) (*crew, error) {
	c := &crew{failed: make(chan error, len(names))}
	for _, name := range names {
		if err := c.start(name, redisURL, queue); err != nil {
			c.stop()
			return nil, fmt.Errorf("starting worker %s: %w", name, err)
		}
	}
	return c, nil
}

func (c *crew) start(name, redisURL, queue string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	p := &process{name: name, ended: make(chan struct{})}
	p.cmd = exec.Command(program, "worker", queue)
	p.cmd.Env = append(os.Environ(), "REDIS_URL="+redisURL)
	p.cmd.Stderr = os.Stderr
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return err
	}
	if err := p.cmd.Start(); err != nil {
		return err
	}
	c.workers = append(c.workers, p)
	go func() {
		defer close(p.ended)
		_ = p.cmd.Wait()
		if !p.asked.Load() {
			c.failed <- fmt.Errorf("worker %s ended by itself: %v", name, p.cmd.ProcessState)
		}
	}()
	return nil
}

// find returns the worker with a process id, or nil.
func (c *crew) find(pid int) *process {
	for _, p := range c.workers {
		if p.cmd.Process.Pid == pid {
			return p
		}
	}
	return nil
}

// kill ends a worker with SIGKILL, which no program can notice or delay.
func (p *process) kill() error {
	p.asked.Store(true)
	return p.cmd.Process.Kill()
}

// stop lets all workers finish their tasks and waits for them, but not for long.
func (c *crew) stop() {
	late, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	for _, p := range c.workers {
		p.asked.Store(true)
		p.stdin.Close()
	}
	for _, p := range c.workers {
		select {
		case <-p.ended:
		case <-late.Done():
			_ = p.kill() // it has ended, or ends now
			<-p.ended
		}
	}
}
