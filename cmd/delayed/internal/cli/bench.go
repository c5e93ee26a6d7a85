package cli

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// benchView is what a Redis, and the network to it, were measured to give.
type benchView struct {
	Queue        string       `json:"queue"`       // that was made for it, and deleted
	Concurrency  int          `json:"concurrency"` // of the worker
	Producers    int          `json:"producers"`   // goroutines that enqueue
	PayloadBytes int          `json:"payload_bytes"`
	RoundTrip    benchTimings `json:"round_trip"` // of a PING
	Enqueue      benchTimings `json:"enqueue"`    // calls of Delay, one after the other in each producer
	Batch        benchTimings `json:"batch"`      // calls of DelayMany with 100 tasks, in one goroutine
	Drain        benchTimings `json:"drain"`      // one worker runs what was enqueued; there are no latencies
	Wake         benchTimings `json:"wake"`       // from Delay to the handler, one at a time in an idle worker
	Warnings     []string     `json:"warnings"`
	Interrupted  bool         `json:"interrupted"`
}

// benchTimings is one measurement.
type benchTimings struct {
	Tasks     int     `json:"tasks"`
	Seconds   float64 `json:"seconds"`    // that all took together
	PerSecond float64 `json:"per_second"` // tasks
	P50       float64 `json:"p50_seconds"`
	P95       float64 `json:"p95_seconds"`
	P99       float64 `json:"p99_seconds"`
	Max       float64 `json:"max_seconds"`
}

// timingsOf sums up how long each of some calls took, with so many tasks in all.
func timingsOf(took []time.Duration, tasks int, all time.Duration) benchTimings {
	b := benchTimings{Tasks: tasks, Seconds: all.Seconds()}
	if all > 0 {
		b.PerSecond = math.Round(float64(tasks) / all.Seconds())
	}
	if len(took) == 0 {
		return b
	}
	slices.Sort(took)
	at := func(q float64) float64 { return took[int(math.Ceil(q*float64(len(took))))-1].Seconds() }
	b.P50, b.P95, b.P99, b.Max = at(0.5), at(0.95), at(0.99), at(1)
	return b
}

// benchFlags are the flags of bench.
type benchFlags struct {
	tasks, concurrency, producers, size int
	time                                duration
}

func (a *app) benchCommand() *cobra.Command {
	f := benchFlags{time: duration(5 * time.Second)}
	cmd := &cobra.Command{
		Use: "bench", Short: "Measure what this Redis and the network to it give",
		Long: "Measure how fast tasks are enqueued and drained, and how soon an idle worker starts one. All\n" +
			"tasks are in a queue of its own, {delayed-bench-…}, which it deletes at the end, after Ctrl-C too;\n" +
			"other queues are not touched. Producers and the worker are in this process, and their tasks do\n" +
			"nothing. It loads Redis as much as it can for up to five times --time: whatever else uses it\n" +
			"becomes slower meanwhile. If other queues are at work, or answers are uneven, a warning says so.\n\n" +
			"A process that is killed leaves the queue behind: delayed queue rm --force deletes it.",
		Example: "  delayed bench\n  delayed bench --tasks 100000 --time 30s --size 1024 --json",
	}
	fs := cmd.Flags()
	fs.IntVar(&f.tasks, "tasks", 20_000, "tasks to enqueue singly and in batches each, at most 1000000")
	fs.Var(&f.time, "time", "how long each part may take, at most 5m")
	fs.IntVar(&f.concurrency, "concurrency", 100, "handlers of the worker, at most 10000")
	fs.IntVar(&f.producers, "producers", 16, "goroutines that enqueue, at most 1000")
	fs.IntVar(&f.size, "size", 0, "bytes of the argument of each task, at most 100000")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := f.check(); err != nil {
			return err
		}
		if a.watched() {
			return usagef("--watch: bench measures once")
		}
		if err := a.connect(); err != nil {
			return err
		}
		return a.bench(cmd.Context(), &f)
	}
	return cmd
}

func (f *benchFlags) check() error {
	if f.time < duration(10*time.Millisecond) || f.time > duration(5*time.Minute) {
		return usagef("--time %v: expected 10ms to 5m", time.Duration(f.time))
	}
	return errors.Join(within("--tasks", f.tasks, 1, 1_000_000), within("--concurrency", f.concurrency, 1, 10_000),
		within("--producers", f.producers, 1, 1000), within("--size", f.size, 0, 100_000))
}

// bench measures, deletes the queue, and prints what was found.
func (a *app) bench(ctx context.Context, f *benchFlags) (err error) {
	v := &benchView{
		Queue: "{delayed-bench-" + strings.ToLower(rand.Text()[:10]) + "}", Concurrency: f.concurrency,
		Producers: f.producers, PayloadBytes: f.size, Warnings: []string{},
	}
	if err := a.benchLoad(ctx, v); err != nil {
		return err
	}
	r, err := newBenchRun(a.rdb, v.Queue, f)
	if err != nil {
		return err
	}
	defer func() {
		// Not with ctx, which Ctrl-C ends.
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), benchPatience)
		defer cancel()
		if failed := r.remove(end, a.ins); failed != nil {
			err = errors.Join(err, failed, errors.New("queue "+v.Queue+" may be left: delayed queue rm --force '"+
				v.Queue+"'"))
		}
	}()
	bar := a.bar()
	defer bar.Clear()
	for i, part := range []struct {
		name string
		do   func(context.Context) (benchTimings, error)
		to   *benchTimings
	}{
		{"round trips", r.roundTrips, &v.RoundTrip},
		{"wake", r.wake, &v.Wake},
		{"enqueue", r.enqueue, &v.Enqueue},
		{"enqueue in batches", r.batches, &v.Batch},
		{"drain", r.drain, &v.Drain},
	} {
		bar.Show(i+1, "of 5: "+part.name)
		if *part.to, err = part.do(ctx); err != nil && ctx.Err() == nil {
			return err
		}
		if ctx.Err() != nil {
			v.Interrupted = true
			break
		}
	}
	bar.Clear()
	v.uneven()
	if ctx.Err() == nil {
		if err := a.benchLoad(ctx, v); err != nil {
			return err
		}
	}
	if err := output(a, v, printBench); err != nil {
		return err
	}
	if v.Interrupted {
		return errInterrupted
	}
	return nil
}

// benchLoad warns of queues that are at work.
func (a *app) benchLoad(ctx context.Context, v *benchView) error {
	queues, err := a.ins.Queues(ctx)
	if err != nil {
		return err
	}
	for i := range queues {
		q := &queues[i]
		if q.Name == v.Queue || q.Active == 0 && (q.Pending == 0 || q.Workers == 0) {
			continue
		}
		text := "queue " + q.Name + " is at work in this Redis: it shares what was measured, and was slowed down"
		if !slices.Contains(v.Warnings, text) && len(v.Warnings) < 5 {
			v.Warnings = append(v.Warnings, text)
		}
	}
	return nil
}

// uneven warns of answers that took very different times before the bench itself made any load.
func (v *benchView) uneven() {
	if t := &v.RoundTrip; t.P95 > 5*t.P50 && t.P95 > 0.001 {
		v.Warnings = append(v.Warnings, "round trips before the load took "+took(t.P50)+" at the median and "+
			took(t.P95)+" at the 95th percentile: Redis, this machine or the network has other load")
	}
}

func printBench(p *term.Page, v *benchView) {
	t := term.NewTable(term.Column{Name: "WHAT"}, term.Num("TASKS"), term.Num("A SECOND"), term.Num("P50"),
		term.Num("P95"), term.Num("P99"), term.Spare("MAX", 1))
	for _, row := range []struct {
		name string
		t    *benchTimings
	}{
		{"round trip", &v.RoundTrip},
		{"enqueue, " + term.Count(v.Producers, "producer"), &v.Enqueue},
		{"enqueue 100 at once", &v.Batch},
		{"drain, " + term.Count(v.Concurrency, "handler"), &v.Drain},
		{"wake an idle worker", &v.Wake},
	} {
		cells := []term.Cell{term.C(row.name), term.Amount(row.t.Tasks), term.Amount(int(row.t.PerSecond), term.Bold)}
		for _, s := range []float64{row.t.P50, row.t.P95, row.t.P99, row.t.Max} {
			cell := term.C("-", term.Dim)
			if s > 0 {
				cell = term.C(took(s))
			}
			cells = append(cells, cell)
		}
		t.Row(cells...)
	}
	p.Table(t)
	for _, w := range v.Warnings {
		p.Line(term.C("warning: ", term.Yellow), term.C(w))
	}
}

const (
	benchPatience = 30 * time.Second // for deleting the queue at the end
	benchPings    = 200
	benchWakes    = 500
	benchBatch    = 100
)

// benchRun measures with one queue.
type benchRun struct {
	f       *benchFlags
	rdb     *delayed.Store
	q       *delayed.Queue
	worker  *delayed.Worker
	nothing *delayed.Function
	payload []byte

	enqueued int            // tasks, since the start
	handled  atomic.Int64   // tasks that have run
	done     chan time.Time // gets the time, if there is room, when a handler is called

	// Of the worker, once it was started.
	stop  context.CancelFunc
	ended chan error
}

func newBenchRun(rdb *delayed.Store, queue string, f *benchFlags) (*benchRun, error) {
	r := &benchRun{
		f: f, rdb: rdb, payload: []byte(strings.Repeat("x", f.size)), done: make(chan time.Time, 1),
	}
	r.nothing = delayed.Func(func([]byte) {
		at := time.Now()
		r.handled.Add(1)
		select {
		case r.done <- at:
		default:
		}
	}, delayed.Name("delayed.bench"))
	var err error
	if r.q, err = delayed.OpenQueue(queue, rdb, delayed.QueueConfig{}); err != nil {
		return nil, err
	}
	r.worker, err = delayed.NewWorker(rdb, delayed.WorkerConfig{
		Queues: delayed.Strict{queue}, Concurrency: f.concurrency,
		Logger: delayed.SlogLogger(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return r, r.worker.Register(r.nothing)
}

// limited bounds a part of the measurement.
func (r *benchRun) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, time.Duration(r.f.time))
}

// over reports whether an error only means that the time of a part is over.
func over(ctx context.Context, err error) bool {
	return errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil
}

// roundTrips measures single requests.
func (r *benchRun) roundTrips(ctx context.Context) (benchTimings, error) {
	if err := r.rdb.Ping(ctx); err != nil { // the first one connects
		return benchTimings{}, err
	}
	ctx, cancel := r.limited(ctx)
	defer cancel()
	var took []time.Duration
	begin := time.Now()
	for len(took) < benchPings && ctx.Err() == nil {
		start := time.Now()
		if err := r.rdb.Ping(ctx); err != nil && !over(ctx, err) {
			return benchTimings{}, err
		}
		took = append(took, time.Since(start))
	}
	return timingsOf(took, len(took), time.Since(begin)), nil
}

// enqueue measures producers that enqueue one task after the other.
func (r *benchRun) enqueue(ctx context.Context) (benchTimings, error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	took := make([][]time.Duration, r.f.producers)
	errs := make([]error, r.f.producers)
	var next atomic.Int64
	var producers sync.WaitGroup
	begin := time.Now()
	for i := range r.f.producers {
		producers.Go(func() {
			for next.Add(1) <= int64(r.f.tasks) && ctx.Err() == nil {
				start := time.Now()
				// A call that is under way when the time is over goes on: else it were unknown whether it counts.
				if _, err := r.q.DelayContext(context.WithoutCancel(ctx), r.nothing, r.payload); err != nil {
					errs[i] = err
					cancel()
					return
				}
				took[i] = append(took[i], time.Since(start))
			}
		})
	}
	producers.Wait()
	all := time.Since(begin)
	var calls []time.Duration
	for _, t := range took {
		calls = append(calls, t...)
	}
	r.enqueued += len(calls)
	return timingsOf(calls, len(calls), all), errors.Join(errs...)
}

// batches measures DelayMany.
func (r *benchRun) batches(ctx context.Context) (benchTimings, error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	var took []time.Duration
	sent := 0
	begin := time.Now()
	for sent < r.f.tasks && ctx.Err() == nil {
		calls := make([]*delayed.Task, min(benchBatch, r.f.tasks-sent))
		for i := range calls {
			calls[i] = delayed.Call(r.nothing, r.payload)
		}
		start := time.Now()
		if _, err := r.q.DelayMany(context.WithoutCancel(ctx), calls...); err != nil {
			return benchTimings{}, err
		}
		took = append(took, time.Since(start))
		sent += len(calls)
	}
	r.enqueued += sent
	return timingsOf(took, sent, time.Since(begin)), nil
}

// drain measures the worker, which runs what was enqueued.
func (r *benchRun) drain(ctx context.Context) (benchTimings, error) {
	ctx, cancel := r.limited(ctx)
	defer cancel()
	before := r.handled.Load()
	left := int64(r.enqueued) - before
	begin := time.Now()
	r.worker.Resume()
	for r.handled.Load()-before < left && ctx.Err() == nil {
		if _, err := r.await(ctx); err != nil {
			return benchTimings{}, err
		}
	}
	return timingsOf(nil, int(r.handled.Load()-before), time.Since(begin)), nil
}

// wake measures how soon an idle worker starts a task. It starts the worker, and pauses it in the end.
func (r *benchRun) wake(ctx context.Context) (benchTimings, error) {
	r.start(ctx)
	ctx, cancel := r.limited(ctx)
	defer cancel()
	var took []time.Duration
	var begin time.Time
	// The first task waits for the start of the worker, and is not measured.
	for i := 0; i <= min(benchWakes, r.f.tasks) && ctx.Err() == nil; i++ {
		start := time.Now()
		if i == 1 {
			begin = start
		}
		if _, err := r.q.DelayContext(context.WithoutCancel(ctx), r.nothing, r.payload); err != nil {
			return benchTimings{}, err
		}
		r.enqueued++
		at, err := r.await(ctx)
		if err != nil {
			return benchTimings{}, err
		}
		if i > 0 && !at.IsZero() {
			took = append(took, at.Sub(start))
		}
	}
	r.worker.Pause()
	all := time.Duration(0)
	if len(took) > 0 {
		all = time.Since(begin)
	}
	return timingsOf(took, len(took), all), nil
}

// start starts the worker. remove stops it.
func (r *benchRun) start(ctx context.Context) {
	// Ctrl-C ends the measurement, and then remove stops the worker.
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	r.ended = make(chan error, 1)
	r.stop = cancel
	go func() { r.ended <- r.worker.Run(running) }()
}

// await waits for a task that has run, and returns when its handler was called; the zero time if ctx ends before.
func (r *benchRun) await(ctx context.Context) (time.Time, error) {
	select {
	case at := <-r.done:
		return at, nil
	case err := <-r.ended:
		r.ended <- err // for remove
		return time.Time{}, fmt.Errorf("the worker has stopped: %w", cmp.Or(err, errors.New("another worker's order")))
	case <-ctx.Done():
		return time.Time{}, nil
	}
}

// remove stops the worker and deletes the queue.
func (r *benchRun) remove(ctx context.Context, ins *inspect.Inspector) error {
	if r.stop != nil {
		r.stop()
		select {
		case <-r.ended: // await has reported an error
		case <-ctx.Done():
			return errors.New("the worker does not stop")
		}
	}
	err := ins.DeleteQueue(ctx, r.q.Name(), true)
	if errors.Is(err, inspect.ErrNotFound) {
		return nil // nothing was enqueued
	}
	return err
}
