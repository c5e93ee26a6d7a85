package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// program is a driver as bench sees it: a process that gets requests and answers them.
type program struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers chan *response // closed when the process has ended
}

// driverLimit bounds one request to a driver.
const driverLimit = workLimit + 30*time.Second

// itself returns this program with other arguments.
func itself(ctx context.Context, args ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	// A test binary runs main then; and one with the race detector need not wait a second for other threads' reports at
	// its end.
	cmd.Env = append(os.Environ(), "BENCH_DRIVER=1", "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	return cmd, nil
}

// startProgram starts a driver of p against the server at addr. It is killed when ctx ends.
func startProgram(ctx context.Context, p *peer, addr string) (*program, error) {
	cmd, err := itself(ctx, "driver", p.name, addr)
	if err != nil {
		return nil, err
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting the driver of %s: %w", p.name, err)
	}
	d := &program{cmd, in, make(chan *response, 1)}
	go func() {
		defer close(d.answers)
		decoder := json.NewDecoder(bufio.NewReaderSize(out, 1<<20))
		for {
			a := &response{}
			if decoder.Decode(a) != nil {
				return
			}
			d.answers <- a
		}
	}()
	return d, nil
}

// next returns the driver's next answer.
func (d *program) next() (*response, error) {
	limit := time.NewTimer(driverLimit)
	defer limit.Stop()
	select {
	case a, ok := <-d.answers:
		switch {
		case !ok:
			return nil, errors.New("the driver ended without an answer; its message is above")
		case a.Error != "":
			return nil, fmt.Errorf("the driver failed: %s", a.Error)
		case a.None:
			return nil, errNone
		}
		return a, nil
	case <-limit.C:
		return nil, fmt.Errorf("the driver did not answer within %v", driverLimit)
	}
}

// try sends the driver a request and returns its answer.
func (d *program) try(r *request) (*response, error) {
	if err := json.NewEncoder(d.in).Encode(r); err != nil {
		return nil, err
	}
	a, err := d.next()
	for err == nil && a.Ready {
		a, err = d.next()
	}
	return a, err
}

// do is try for a measurement, which ends with an error.
func (d *program) do(r *request) *response {
	a, err := d.try(r)
	check(err)
	return a
}

// begin makes the driver work and returns once its worker has been started; receive then waits for the answer.
func (d *program) begin(r *request) {
	check(json.NewEncoder(d.in).Encode(r))
	a := d.receive()
	if !a.Ready {
		check(errors.New(`expected {"ready":true} of a worker, found its answer`))
	}
}

// receive waits for the answer to begin.
func (d *program) receive() *response {
	a, err := d.next()
	check(err)
	return a
}

// close ends the driver by closing its stdin, and kills it if it still runs 10 s later.
func (d *program) close() {
	_ = d.in.Close()
	kill := time.AfterFunc(10*time.Second, func() { _ = d.cmd.Process.Kill() })
	defer kill.Stop()
	for ok := true; ok; { // until the process has closed its stdout
		_, ok = <-d.answers
	}
	_ = d.cmd.Wait()
}
