package main

import (
	"bufio"
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

// startProgram starts a driver of p against the server at addr.
func startProgram(p *peer, addr string) (*program, error) {
	var line []string
	if p.driver != nil {
		var err error
		if line, err = p.driver(); err != nil {
			return nil, err
		}
	} else {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		line = []string{self, "driver", "-peer", p.name}
	}
	cmd := exec.Command(line[0], append(line[1:len(line):len(line)], addr)...)
	cmd.Stderr = os.Stderr
	// A test binary runs main then; and one with the race detector need not wait a second for other threads' reports at
	// its end.
	cmd.Env = append(os.Environ(), "BENCH_DRIVER=1", "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE"))
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
			var r response
			if err := decoder.Decode(&r); err != nil {
				if !errors.Is(err, io.EOF) {
					d.answers <- &response{Error: "its answer is not JSON: " + err.Error()}
				}
				return
			}
			d.answers <- &r
		}
	}()
	return d, nil
}

// driverLimit bounds one request to a driver.
const driverLimit = workLimit + 30*time.Second

// send sends the driver a request and does not wait.
func (d *program) send(r *request) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = d.in.Write(append(b, '\n'))
	return err
}

// receive waits for the driver's next line.
func (d *program) receive() (*response, error) {
	limit := time.NewTimer(driverLimit)
	defer limit.Stop()
	select {
	case a, ok := <-d.answers:
		switch {
		case !ok:
			return nil, errors.New("the driver ended without an answer; what it wrote to stderr says why")
		case a.Error != "":
			return nil, fmt.Errorf("the driver says: %s", a.Error)
		case a.None:
			return nil, errNone
		}
		return a, nil
	case <-limit.C:
		return nil, fmt.Errorf("the driver did not answer within %v", driverLimit)
	}
}

// do sends the driver a request and returns its answer, with its CPU seconds.
func (d *program) do(r *request) (*response, error) {
	before := treeCPU(d.cmd.Process.Pid)
	if err := d.send(r); err != nil {
		return nil, err
	}
	a, err := d.receive()
	for err == nil && a.Ready {
		a, err = d.receive()
	}
	if err != nil {
		return nil, err
	}
	if a.CPU == 0 {
		a.CPU = treeCPU(d.cmd.Process.Pid) - before
	}
	return a, nil
}

// begin makes the driver work and returns once its worker has been started; receive then waits for the answer.
func (d *program) begin(r *request) error {
	if err := d.send(r); err != nil {
		return err
	}
	a, err := d.receive()
	if err == nil && !a.Ready {
		err = errors.New(`the driver answered "work" without {"ready":true} before`)
	}
	return err
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
