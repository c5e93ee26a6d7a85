package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// request is what a driver is asked to do: a JSON object on a line of its stdin.
type request struct {
	Op string // enqueue, work or pretend
	// N is the number of tasks: to enqueue, or until the worker answers, which it does at once if N is 0. Of pretend it
	// is that of idle workers.
	N       int
	Queues  int    `json:",omitempty"` // over which tasks are spread; 0 is 1
	Profile string `json:",omitempty"` // prefix of files for profiles; "": none

	// Of enqueue: the answer is sent when all tasks are accepted.

	Producers int `json:",omitempty"` // callers at once, each waiting for its own task; 0 is 1
	Batch     int `json:",omitempty"` // tasks in one call of the peer's own call for many; 0: one task a call
	// Rate is the number of tasks a second, spread evenly, of one producer. The task's number is then the time in ns
	// since 1970 just before the call. 0: as fast as it can.
	Rate float64 `json:",omitempty"`
	// Lead schedules the tasks: the first falls due so many seconds from now, the others follow at Rate. The task's
	// number is the time in ns since 1970, in whole ms, at which it is due.
	Lead  float64 `json:",omitempty"`
	Size  int     `json:",omitempty"` // of the text; 0: baseText
	Form  string  `json:",omitempty"` // of the tasks, as a former takes it; "": plain
	First int     `json:",omitempty"` // number of the first task that has a form

	// Of work: a response with Ready is sent once the worker has been started, and the answer when its handler was
	// called for the N-th time. The worker goes on.

	Concurrency int `json:",omitempty"`
	// Latency asks for the age of each task at the entry of its handler: now − number, in µs. Of enqueue with one
	// producer it asks for how long each call took.
	Latency  bool          `json:",omitempty"`
	Sleep    time.Duration `json:",omitempty"` // of the handler
	Archive  int           `json:",omitempty"` // ArchiveMax of delayed's worker
	RetryNow bool          `json:",omitempty"` // asynq waits for no retry longer than it must

	Life float64 `json:",omitempty"` // of pretend: that of heartbeats, in seconds
}

// response is a driver's answer: a JSON object on a line of its stdout.
type response struct {
	Error     string    `json:",omitempty"`
	None      bool      `json:",omitempty"` // the peer has no such call
	Ready     bool      `json:",omitempty"` // sent once by work, before the answer
	Seconds   float64   // from the first call to the last return; of work, from its start to the N-th call
	CPU       float64   // user and system seconds of the driver meanwhile
	Mallocs   uint64    // heap allocations of the driver meanwhile
	Latencies []float64 `json:",omitempty"` // µs
}

// driverCommand runs the command `bench driver`, with a peer's name and its server's address: it serves requests until
// stdin ends.
func driverCommand(_ context.Context, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("expected a peer and the server's address, found %q", args)
	}
	p, err := peerNamed(args[0])
	if err != nil {
		return err
	}
	q, err := p.open(args[1])
	if err != nil {
		return err
	}
	return serve(q, os.Stdin, os.Stdout, func(error) { os.Exit(0) })
}

// serve answers requests. It calls gone when there are no more, even while it is busy, because nobody waits for the
// answer then.
func serve(q queue, in io.Reader, out io.Writer, gone func(error)) error {
	answers, requests := json.NewEncoder(out), make(chan *request)
	go func() {
		defer close(requests)
		decoder := json.NewDecoder(in)
		for {
			r := &request{}
			if err := decoder.Decode(r); err != nil {
				gone(err)
				return
			}
			requests <- r
		}
	}()
	for r := range requests {
		a, err := carryOut(q, r, func() error { return answers.Encode(&response{Ready: true}) })
		switch {
		case errors.Is(err, errNone):
			a = &response{None: true}
		case err != nil:
			a = &response{Error: err.Error()}
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

func carryOut(q queue, r *request, ready func() error) (*response, error) {
	if s, ok := q.(setter); ok {
		s.set(r)
	}
	switch r.Op {
	case "enqueue":
		return produce(q, r)
	case "work":
		return work(q, r, ready)
	case "pretend":
		p, ok := q.(pretender)
		if !ok {
			return nil, errNone
		}
		return &response{}, p.pretend(r.N, time.Duration(r.Life*float64(time.Second)))
	default:
		return nil, fmt.Errorf("expected op enqueue, work or pretend, found %q", r.Op)
	}
}
