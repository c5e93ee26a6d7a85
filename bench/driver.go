package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

// A driver is a process that produces or works for one peer. It is told what to do on stdin, a JSON object a line, and
// answers each request with one line on stdout. Nothing else may be written to stdout. It ends when stdin is closed; it
// need not stop its worker cleanly then. `bench driver` is the driver of the peers that are Go packages; those of other
// languages are started with the server's address as their last argument: host:port of Redis, or the URL of PostgreSQL.
//
// Only op, n, producers, batch, rate, size, concurrency and latency are sent to drivers of other languages.

// request is what a driver is told to do.
type request struct {
	// Op is "enqueue", "work" or, for drivers in Go, "report" or "pretend".
	Op string `json:"op"`
	// N is the number of tasks: to enqueue, or until the worker answers. Go only: 0 answers at once, and "report" tells
	// what was recorded.
	N int `json:"n"`

	// Of "enqueue". The answer is sent when all tasks are accepted: seconds, from the first call to the last return.

	// Producers is how many callers enqueue at once, each waiting for its own task to be accepted. A driver of one
	// thread keeps so many calls in flight; one that cannot says none.
	Producers int `json:"producers,omitempty"`
	// Batch is the number of tasks of one call of the peer's own call for many; 0: one task a call.
	Batch int `json:"batch,omitempty"`
	// Rate is the number of tasks a second, spread evenly; a call that is late does not delay those behind it (they are
	// made at once). The task's number is then the time in ns since 1970 when it was due to be enqueued. With one
	// producer, which waits for each task to be accepted, it is the time just before the call: so wake-ups are
	// measured. 0: as fast as it can.
	Rate float64 `json:"rate,omitempty"`
	// Size is the length of the text; 0: "hello-task".
	Size int `json:"size,omitempty"`
	// Every gives each so many-th task the text "long". 0: none. Go only.
	Every int `json:"every,omitempty"`
	// Now makes the number of each task the time in ns since 1970 just before the call. Go only.
	Now bool `json:"now,omitempty"`
	// Schedule enqueues the tasks for tomorrow. Go only.
	Schedule bool `json:"schedule,omitempty"`
	// Lead schedules the tasks: the first falls due so many seconds from now, the others follow at Rate. The task's
	// number is the time in ns since 1970, in whole ms, at which it is due. Go only.
	Lead float64 `json:"lead,omitempty"`

	// Form is that of the tasks, as a former takes it; "": plain. Go only.
	Form string `json:"form,omitempty"`
	// First is the number of the first task that has a form. Go only.
	First int `json:"first,omitempty"`

	// Of "pretend": connects as N idle workers, which have registered when the answer is sent, and end without a word
	// when the driver ends. Go only.

	// Life is that of their heartbeats, in seconds.
	Life float64 `json:"life,omitempty"`

	// Of "work": starts a worker in this process. A line {"ready":true} is sent once the worker has been started, and
	// the answer when its handler was called for the N-th time: seconds, from starting the worker to that call. The
	// worker goes on.

	// Concurrency is that of the worker.
	Concurrency int `json:"concurrency,omitempty"`
	// Latency asks for the age of each task at the entry of its handler: now − number, in µs, in the answer. Of
	// "enqueue" with one producer it asks for how long each call took; Go only.
	Latency bool `json:"latency,omitempty"`
	// Handler is "" (counts), "1ms" or "100ms" (sleeps so long) or "mixed" (sleeps 1 s for the text "long", else 1 ms).
	// Go only.
	Handler string `json:"handler,omitempty"`
	// Trace asks for the begin and end of each task. Go only.
	Trace bool `json:"trace,omitempty"`
	// Workers is the number of workers in this process; 0 is 1. Go only.
	Workers int `json:"workers,omitempty"`
	// Queues is the number of queues that tasks are spread over and workers serve; 0 is 1. Go only.
	Queues int `json:"queues,omitempty"`
	// Archive bounds the archive of the queues; 0: to a million tasks. Go only.
	Archive int `json:"archive,omitempty"`
	// Parked lets the worker run the tasks of the form "parked", whose function it does not know otherwise. Go only.
	Parked bool `json:"parked,omitempty"`
	// RetryNow lets the worker retry failed tasks without a wait, where its tasks do not say so. Go only.
	RetryNow bool `json:"retry_now,omitempty"`
	// Profile is a prefix for the files of a CPU and an allocation profile. Go only.
	Profile string `json:"profile,omitempty"`
}

// response is the answer of a driver.
type response struct {
	// Error says what went wrong; the driver cannot be used any more then.
	Error string `json:"error,omitempty"`
	// None says that the peer has no such call.
	None bool `json:"none,omitempty"`
	// Ready is sent once by "work", before the answer.
	Ready   bool    `json:"ready,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Started is how long starting the worker took, in seconds. Go only.
	Started float64 `json:"started,omitempty"`
	// CPU is user and system seconds of the driver meanwhile; 0 lets bench read them from /proc, with those of child
	// processes.
	CPU float64 `json:"cpu,omitempty"`
	// Latencies are what Latency asks for, in µs.
	Latencies []float64 `json:"latencies,omitempty"`
	// Mallocs is the number of heap allocations of the process meanwhile. Go only.
	Mallocs uint64 `json:"mallocs,omitempty"`
	// Spans are what Trace asks for. Go only.
	Spans []span `json:"spans,omitempty"`
}

// span is one task as its worker saw it; times in ns since 1970.
type span struct {
	Number int64 `json:"n"` // of the task
	Long   bool  `json:"l,omitempty"`
	Begin  int64 `json:"b"`
	End    int64 `json:"e"`
}

// Optional methods of a queue, needed for requests that are marked "Go only".
type (
	scheduler interface {
		schedule(due time.Time, number int64, text string) error
	}
	tuner interface {
		tune(producers int) error // for the enqueues that follow
	}
	spreader interface {
		spread(queues int) error // from now on
	}
	pretender interface {
		pretend(workers int, life time.Duration) error
	}
	limiter interface {
		limit(archive int)
	}
	parker interface {
		unpark() // from now on
	}
	retrier interface {
		retryNow() // from now on
	}
)

// driverCommand runs the command `bench driver`: it serves requests for one peer that is a Go package.
func driverCommand(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("driver", flag.ExitOnError)
	name := flags.String("peer", "", "the peer")
	_ = flags.Parse(args)
	p, err := peerNamed(*name)
	if err != nil {
		return err
	}
	if p.open == nil || flags.NArg() != 1 {
		return fmt.Errorf("expected a peer that is a Go package and the server's address, found %q and %q", *name,
			flags.Args())
	}
	q, err := p.open(flags.Arg(0))
	if err != nil {
		return err
	}
	return (&driver{queue: q}).serve(os.Stdin, os.Stdout, func() { os.Exit(0) })
}

// driver is the driver of a Go package.
type driver struct {
	queue    queue
	recorder *recorder // of the last "work"
}

// serve answers requests until in ends. It calls gone if that happens while it is busy, because bench does not wait for
// the answer any more.
func (d *driver) serve(in io.Reader, out io.Writer, gone func()) error {
	w := bufio.NewWriter(out)
	answer := func(r *response) error {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, _ = w.Write(append(b, '\n'))
		return w.Flush()
	}
	requests, failed := make(chan *request), make(chan error, 1)
	go func() {
		defer close(requests)
		decoder := json.NewDecoder(in)
		for {
			r := &request{}
			err := decoder.Decode(r)
			if errors.Is(err, io.EOF) {
				gone()
				return
			}
			if err != nil {
				failed <- err
				return
			}
			requests <- r
		}
	}()
	for r := range requests {
		a, err := d.carryOut(r, answer)
		if errors.Is(err, errNone) {
			a = &response{None: true}
		} else if err != nil {
			a = &response{Error: err.Error()}
		}
		if err := answer(a); err != nil {
			return err
		}
	}
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

func (d *driver) carryOut(r *request, answer func(*response) error) (*response, error) {
	if r.Queues > 1 {
		s, ok := d.queue.(spreader)
		if !ok {
			return nil, errNone
		}
		if err := s.spread(r.Queues); err != nil {
			return nil, err
		}
	}
	if r.Archive > 0 {
		l, ok := d.queue.(limiter)
		if !ok {
			return nil, errNone
		}
		l.limit(r.Archive)
	}
	if r.Parked {
		p, ok := d.queue.(parker)
		if !ok {
			return nil, errNone
		}
		p.unpark()
	}
	if q, ok := d.queue.(retrier); ok && r.RetryNow {
		q.retryNow()
	}
	switch r.Op {
	case "enqueue":
		return produce(d.queue, r)
	case "work":
		d.recorder = newRecorder(r)
		return work(d.queue, r, d.recorder, func() error { return answer(&response{Ready: true}) })
	case "report":
		if d.recorder == nil {
			return nil, errors.New(`expected "work" before "report"`)
		}
		return &response{Spans: d.recorder.recorded()}, nil
	case "pretend":
		p, ok := d.queue.(pretender)
		if !ok {
			return nil, errNone
		}
		return &response{}, p.pretend(r.N, time.Duration(r.Life*float64(time.Second)))
	default:
		return nil, fmt.Errorf("expected op enqueue, work, report or pretend, found %q", r.Op)
	}
}
