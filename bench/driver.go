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
	"runtime"
	"strings"
	"sync"
	"time"
)

// A driver is a process that produces or works for one peer. It is told what to do on stdin, a JSON object a line, and answers each
// request with one line on stdout. Nothing else may be written to stdout. It ends when stdin is closed; it need not stop
// its worker cleanly then. `bench driver` is the driver of the peers that are Go packages; those of other languages are
// started with the server's address as their last argument: host:port of Redis, or the URL of PostgreSQL.
//
// Only op, n, producers, batch, rate, size, concurrency and latency are sent to drivers of other languages.

// request is what a driver is told to do.
type request struct {
	// Op is "enqueue" or "work".
	Op string `json:"op"`
	// N is the number of tasks: to enqueue, or until the worker reports.
	N int `json:"n"`

	// Of "enqueue". The answer is sent when all tasks are accepted: seconds, from the first call to the last return.

	// Producers is how many callers enqueue at once, each waiting for its own task to be accepted. A driver of one thread keeps so
	// many calls in flight; one that cannot says none.
	Producers int `json:"producers,omitempty"`
	// Batch is the number of tasks of one call of the peer's own call for many; 0: one task a call.
	Batch int `json:"batch,omitempty"`
	// Rate is the number of tasks a second, spread evenly; a call that is late does not delay those behind it (they are made
	// at once). The task's number is then the time in ns since 1970 when it was due to be enqueued. With one producer, which waits for
	// each task to be accepted, it is the time just before the call: so wake-ups are measured. 0: as fast as it can.
	Rate float64 `json:"rate,omitempty"`
	// Size is the length of the text; 0: "hello-task".
	Size int `json:"size,omitempty"`
	// Every gives each so many-th task the text "long". 0: none. Go only.
	Every int `json:"every,omitempty"`
	// Schedule enqueues the tasks for tomorrow. Go only.
	Schedule bool `json:"schedule,omitempty"`

	// Of "work": starts a worker in this process. A line {"ready":true} is sent once the worker has been started, and the answer when
	// its handler was called for the N-th time: seconds, from starting the worker to that call. The worker goes on.

	// Concurrency is that of the worker.
	Concurrency int `json:"concurrency,omitempty"`
	// Latency asks for the age of each task at the entry of its handler: now − number, in µs, in the answer. Of "enqueue" with one
	// producer it asks for how long each call took; Go only.
	Latency bool `json:"latency,omitempty"`
	// Handler is "" (counts), "1ms" (sleeps so long) or "mixed" (sleeps 1 s for the text "long", else 1 ms). Go only.
	Handler string `json:"handler,omitempty"`
	// Trace asks for the begin and end of each task. Go only.
	Trace bool `json:"trace,omitempty"`
	// Workers is the number of workers in this process; 0 is 1. Go only.
	Workers int `json:"workers,omitempty"`
	// Queues is the number of queues that tasks are spread over and workers serve; 0 is 1. Go only.
	Queues int `json:"queues,omitempty"`
	// Profile is a prefix for the files of a CPU and an allocation profile. Go only.
	Profile string `json:"profile,omitempty"`
}

// response is a driver's answer.
type response struct {
	// Error says what went wrong; the driver is then of no use any more.
	Error string `json:"error,omitempty"`
	// None says that the peer has no such call.
	None bool `json:"none,omitempty"`
	// Ready is sent once by "work", before the answer.
	Ready   bool    `json:"ready,omitempty"`
	Seconds float64 `json:"seconds,omitempty"`
	// Started is how long starting the worker took, in seconds. Go only.
	Started float64 `json:"started,omitempty"`
	// CPU is user and system seconds of the driver meanwhile; 0 lets bench read them from /proc, with those of child processes.
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

// Optional abilities of a queue, asked for by requests that are marked "Go only".
type (
	scheduler interface {
		schedule(number int64, text string) error
	}
	tuner interface {
		tune(producers int) error // of the enqueues that follow
	}
	spreader interface {
		spread(queues int) error // from now on
	}
)

// driverCommand is `bench driver`: it serves requests for one peer that is a Go package.
func driverCommand(_ context.Context, args []string) error {
	flags := flag.NewFlagSet("driver", flag.ExitOnError)
	name := flags.String("peer", "", "the peer")
	_ = flags.Parse(args)
	p, err := peerNamed(*name)
	if err != nil {
		return err
	}
	if p.open == nil || flags.NArg() != 1 {
		return fmt.Errorf("expected a peer that is a Go package and the server's address, found %q and %q", *name, flags.Args())
	}
	q, err := p.open(flags.Arg(0))
	if err != nil {
		return err
	}
	return serve(q, os.Stdin, os.Stdout)
}

// serve answers requests until in ends.
func serve(q queue, in io.Reader, out io.Writer) error {
	w := bufio.NewWriter(out)
	answer := func(r *response) error {
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, _ = w.Write(append(b, '\n'))
		return w.Flush()
	}
	decoder := json.NewDecoder(in)
	for {
		var r request
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := carryOut(q, &r, answer)
		if errors.Is(err, errNone) {
			a = &response{None: true}
		} else if err != nil {
			a = &response{Error: err.Error()}
		}
		if err := answer(a); err != nil {
			return err
		}
	}
}

func carryOut(q queue, r *request, answer func(*response) error) (*response, error) {
	if r.Queues > 1 {
		s, ok := q.(spreader)
		if !ok {
			return nil, errNone
		}
		if err := s.spread(r.Queues); err != nil {
			return nil, err
		}
	}
	switch r.Op {
	case "enqueue":
		return produce(q, r)
	case "work":
		return work(q, r, func() error { return answer(&response{Ready: true}) })
	default:
		return nil, fmt.Errorf("expected op enqueue or work, found %q", r.Op)
	}
}

// produce enqueues as r says.
func produce(q queue, r *request) (*response, error) {
	text := baseText
	if r.Size > 0 {
		text = strings.Repeat("x", r.Size)
	}
	textOf := func(i int) string {
		if r.Every > 0 && i%r.Every == r.Every-1 {
			return longText
		}
		return text
	}
	call := q.enqueue
	if r.Schedule {
		s, ok := q.(scheduler)
		if !ok {
			return nil, errNone
		}
		call = s.schedule
	}
	if t, ok := q.(tuner); ok {
		if err := t.tune(callers(r)); err != nil {
			return nil, err
		}
	}
	var took []float64
	if r.Latency && r.Producers <= 1 {
		took = make([]float64, r.N)
	}
	var err error
	start, cpu := time.Now(), processCPU()
	switch {
	case r.Batch > 0:
		texts := make([]string, 0, r.Batch)
		for i := 0; i < r.N && err == nil; i += len(texts) {
			texts = texts[:0]
			for j := i; j < min(i+r.Batch, r.N); j++ {
				texts = append(texts, textOf(j))
			}
			err = q.enqueueMany(baseNumber, texts)
		}
	case r.Rate > 0 && r.Producers == 1:
		for i := 0; i < r.N && err == nil; i++ {
			time.Sleep(time.Until(start.Add(time.Duration(float64(i) / r.Rate * float64(time.Second)))))
			err = call(time.Now().UnixNano(), textOf(i))
		}
	case r.Rate > 0:
		err = pace(call, r.N, r.Rate, textOf)
	case took != nil:
		for i := 0; i < r.N && err == nil; i++ {
			begin := time.Now()
			err = call(baseNumber, textOf(i))
			took[i] = time.Since(begin).Seconds() * 1e6
		}
	default:
		err = fanOut(max(1, r.Producers), r.N, func(i int) error { return call(baseNumber, textOf(i)) })
	}
	return &response{Seconds: time.Since(start).Seconds(), CPU: processCPU() - cpu, Latencies: took}, err
}

// callers returns how many goroutines enqueue.
func callers(r *request) int {
	if r.Rate > 0 && r.Producers != 1 {
		return paceCallers
	}
	return max(1, r.Producers)
}

// paceCallers is how many calls pace has under way at most.
const paceCallers = 256

// fanOut calls f for 0 to n−1 from so many goroutines, and returns once all have returned.
func fanOut(goroutines, n int, f func(i int) error) error {
	var group sync.WaitGroup
	errs := make([]error, goroutines)
	for g := range goroutines {
		group.Go(func() {
			for i := g * n / goroutines; i < (g+1)*n/goroutines; i++ {
				if errs[g] = f(i); errs[g] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

// pace calls f at fixed times, whether earlier calls have returned or not, so that a slow reply delays no other task, up to
// paceCallers calls under way.
func pace(call func(int64, string) error, n int, rate float64, textOf func(int) string) error {
	type due struct {
		number int64
		text   string
	}
	calls := make(chan due, n)
	var group sync.WaitGroup
	errs := make([]error, paceCallers)
	for g := range errs {
		group.Go(func() {
			for d := range calls {
				if errs[g] == nil {
					errs[g] = call(d.number, d.text)
				}
			}
		})
	}
	start := time.Now()
	for i := range n {
		at := start.Add(time.Duration(float64(i) / rate * float64(time.Second)))
		if wait := time.Until(at); wait > 0 {
			time.Sleep(wait)
		}
		calls <- due{at.UnixNano(), textOf(i)}
	}
	close(calls)
	group.Wait()
	return errors.Join(errs...)
}

func mallocs() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}
