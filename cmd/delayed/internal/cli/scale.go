package cli

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect/document"
)

// scaleFlags are the flags of scale.
type scaleFlags struct {
	target                      duration
	concurrency, minimum, limit int
	figure                      string
}

var scaleFigures = []string{"wanted", "backlog", "latency", "pending", "workers"}

func (a *app) scaleCommand() *cobra.Command {
	f := scaleFlags{target: duration(time.Minute)}
	cmd := &cobra.Command{
		Use: "scale [QUEUE...]", Aliases: []string{"backlog"},
		Short: "Say how many seconds of work wait, and how many workers are wanted, for autoscalers",
		Long: "Say how many seconds of work wait in queues that the same workers serve, all queues if none is\n" +
			"named: pending tasks × mean run of the last 15 minutes / handlers of all workers. Wanted are as\n" +
			"many workers as bring that down to --target, and at least those whose handlers are busy. It is\n" +
			"at least one if something waits for a worker, or a periodic entry will tick: pause the entry or the\n" +
			"queue to let an autoscaler stop the last one. While the mean run is unknown, present workers stay.\n" +
			"Tasks that were snoozed, as by a semaphore, are no runs.\n\n" +
			"With --print only one figure is printed, a number on a line: wanted, backlog and latency (in\n" +
			"seconds), pending or workers. Paused queues do not count.",
		Example: "  delayed scale mail --target 30s\n" +
			"  kubectl scale deployment/mail --replicas $(delayed scale mail --max 20 --print wanted)",
	}
	fs := cmd.Flags()
	fs.Var(&f.target, "target", "how many seconds of work may wait")
	fs.IntVar(&f.concurrency, "concurrency", 0, "handlers of one worker; 0: as present workers have, or 1")
	fs.IntVar(&f.minimum, "min", 0, "wanted workers at least")
	fs.IntVar(&f.limit, "max", 0, "wanted workers at most; 0: no bound")
	fs.StringVar(&f.figure, "print", "", "only this figure: wanted, backlog, latency, pending or workers")
	a.completeFlag(cmd, "print", fixed(scaleFigures...))
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := f.check(a.json); err != nil {
			return err
		}
		write := func(p *term.Page, v *document.Scale) { printScale(p, v, f.figure) }
		return show(cmd.Context(), a, write, func(ctx context.Context) (document.Scale, error) {
			return a.scale(ctx, &f, args)
		})
	}
	return cmd
}

func (f *scaleFlags) check(json bool) error {
	switch {
	case f.target <= 0:
		return usagef("--target %v: expected a positive duration", time.Duration(f.target))
	case f.limit != 0 && f.limit < f.minimum:
		return usagef("--max %d: expected at least --min, %d", f.limit, f.minimum)
	case f.figure != "" && json:
		return usagef("expected --print or --json, found both")
	}
	if f.figure != "" && !slices.Contains(scaleFigures, f.figure) {
		return usagef("--print %s: expected wanted, backlog, latency, pending or workers", quote(f.figure))
	}
	for name, n := range map[string]int{"--concurrency": f.concurrency, "--min": f.minimum, "--max": f.limit} {
		if err := within(name, n, 0, math.MaxInt32); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) scale(ctx context.Context, f *scaleFlags, queues []string) (document.Scale, error) {
	b, err := a.ins.Backlog(ctx, queues...)
	if err != nil {
		return document.Scale{}, err
	}
	wanted, err := b.WorkersFor(time.Duration(f.target), f.concurrency)
	if err != nil {
		return document.Scale{}, err
	}
	if wanted = max(wanted, f.minimum); f.limit > 0 {
		wanted = min(wanted, f.limit)
	}
	return document.ScaleOf(&b, time.Duration(f.target), wanted), nil
}

// scaleFigure returns a figure as scripts read it.
func scaleFigure(v *document.Scale, name string) (text string, ok bool) {
	span := func(s float64) string { return strconv.FormatFloat(s, 'f', 3, 64) }
	text, ok = map[string]string{
		"wanted": strconv.Itoa(v.WantedWorkers), "backlog": span(v.BacklogSeconds),
		"latency": span(v.LatencySeconds), "pending": strconv.Itoa(v.Pending), "workers": strconv.Itoa(v.Workers),
	}[name]
	return text, ok
}

// printScale prints how much work waits and how many workers are wanted for it, or one figure alone.
func printScale(p *term.Page, v *document.Scale, figure string) {
	if text, ok := scaleFigure(v, figure); ok {
		p.Line(term.C(text))
		return
	}
	span := func(s float64) string { return term.Duration(term.Seconds(s)) }
	p.Field("wanted", term.C(fmt.Sprintf("%s for a backlog of at most %s", term.Count(v.WantedWorkers, "worker"),
		span(v.TargetSeconds)), term.Bold))
	p.Field("present", term.C(fmt.Sprintf("%s, %s, %d of them busy", term.Count(v.Workers, "worker"),
		term.Count(v.Concurrency, "handler"), v.Busy)))
	p.Field("backlog", term.C(span(v.BacklogSeconds)+" of work for all handlers, "+span(v.WorkSeconds)+" for one"))
	p.Field("latency", term.C(span(v.LatencySeconds)+": the age of the oldest pending task"))
	if v.Unmeasured > 0 {
		p.Field("unmeasured", term.C(term.Count(v.Unmeasured, "pending task")+
			" of queues without a known run time", term.Yellow))
	}
	p.Space()
	t := term.NewTable(term.Column{Name: "QUEUE", Flex: true}, term.Num("PENDING"), term.Spare("ACTIVE", 2),
		term.Num("LATENCY"), term.Num("MEAN RUN"), term.Num("WORK"), term.Column{Name: "STATE", Optional: true})
	for i := range v.Queues {
		q := &v.Queues[i]
		in := term.C("")
		if q.Paused {
			in = term.C("paused", term.Yellow)
		}
		mean := term.C("unknown", term.Dim)
		if q.MeanRunSeconds > 0 {
			mean = term.C(took(q.MeanRunSeconds))
		}
		t.Row(term.C(q.Name, term.Bold), term.Amount(q.Pending), term.Amount(q.Active),
			term.C(span(q.LatencySeconds)), mean, term.C(span(q.WorkSeconds)), in)
	}
	p.Table(t)
}
