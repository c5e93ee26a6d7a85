package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
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
		p.Say(term.C("warning: ", term.Yellow), term.C(w))
	}
}
