package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

// statsView is what queues hold together.
type statsView document.Stats

func (a *app) statsCommand() *cobra.Command {
	var per, function string
	var last duration
	cmd := &cobra.Command{
		Use: "stats [QUEUE...]", Aliases: []string{"status", "overview"},
		Short: "Show what queues hold together, or what has run, by function and time",
		Long: "Show what queues hold together, all of them if none is named. With --per, show instead what\n" +
			"handlers have done: runs, failures, how long tasks waited and handlers ran (P50: half of them no\n" +
			"longer, P95: 95 %), and a graph, by function; and the same in each second, minute or day. Redis\n" +
			"keeps seconds for an hour, minutes for a day, and days for 90 days.",
		Example: "  delayed stats\n" +
			"  delayed stats mail --per minute\n" +
			"  delayed stats --per day --last 30d --func Welcome",
		Args: cobra.ArbitraryArgs, ValidArgsFunction: a.completeQueues,
	}
	fs := cmd.Flags()
	fs.StringVar(&per, "per", "", "second, minute or day: what has run, and in which of them")
	fs.Var(&last, "last", "with --per: how far back (default 1m, 1h or 14d)")
	fs.StringVar(&function, "func", "", "with --per: function: Welcome, mail.Welcome or its whole path")
	a.completeFlag(cmd, "per", fixed("second", "minute", "day"))
	a.completeFlag(cmd, "func", a.completeFunctions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cmd.Flags().Changed("per") {
			if last != 0 || function != "" {
				return usagef("--last and --func go with --per: expected --per second, minute or day")
			}
			return a.show(cmd.Context(), func(ctx context.Context) (view, error) { return a.overview(ctx, args) })
		}
		by, err := parsePer(per, time.Duration(last))
		if err != nil {
			return err
		}
		return a.show(cmd.Context(), func(ctx context.Context) (view, error) {
			return a.metrics(ctx, by, function, args)
		})
	}
	return cmd
}

// overview adds up what queues hold, and who works for them.
func (a *app) overview(ctx context.Context, names []string) (view, error) {
	queues, err := a.described(ctx, names)
	if err != nil {
		return nil, err
	}
	workers, err := a.ins.Workers(ctx, names...)
	v := statsView(document.StatsOf(queues, workers))
	return &v, err
}

func (v *statsView) print(p *term.Page) {
	queues := term.Count(v.Queues, "queue")
	if v.Paused > 0 {
		queues += " (" + term.Number(v.Paused) + " paused)"
	}
	p.Say(term.C(queues, term.Bold), term.C(", "), term.C(term.Count(v.Workers, "worker"), term.Bold))
	if v.LatencySeconds > 0 {
		p.Say(term.C("The oldest pending task has waited for "),
			term.C(term.Duration(time.Duration(v.LatencySeconds*float64(time.Second))), term.Bold))
	}
	p.Space()
	t := term.NewTable(term.Column{Name: "STATE"}, term.Num("TASKS"))
	for _, s := range inspect.States {
		t.Row(term.C(s.String()), term.Amount(v.States[s.String()], stateStyle(s)))
	}
	p.Table(t)
	p.Space()
	t = term.NewTable(term.Column{Name: "TODAY (UTC)"}, term.Num("RUNS"))
	for _, c := range countsOf(&v.Today) {
		t.Row(term.C(c.name), term.Amount(c.n, c.style))
	}
	p.Table(t)
}
