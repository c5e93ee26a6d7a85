package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// statsView is what queues hold together.
type statsView struct {
	Queues         int            `json:"queues"`
	Paused         int            `json:"paused"`
	Workers        int            `json:"workers"`
	LatencySeconds float64        `json:"latency_seconds"` // the longest
	States         map[string]int `json:"states"`
	Groups         int            `json:"groups"`
	Today          inspect.Counts `json:"today"`
}

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
	v := sum(queues)
	for i := range workers {
		if workers[i].Alive() {
			v.Workers++
		}
	}
	return v, err
}

// sum adds up queues.
func sum(queues []inspect.Queue) *statsView {
	v := &statsView{Queues: len(queues), States: map[string]int{}}
	for _, s := range inspect.States {
		v.States[s.String()] = 0
	}
	for i := range queues {
		q := &queues[i]
		for _, s := range inspect.States {
			v.States[s.String()] += q.Size(s)
		}
		if !q.Paused.IsZero() {
			v.Paused++
		}
		v.Groups += q.Groups
		v.LatencySeconds = max(v.LatencySeconds, seconds(q.Latency))
		t, c := &v.Today, &q.Today
		for _, pair := range [][2]*int64{
			{&t.Processed, &c.Processed},
			{&t.Failed, &c.Failed},
			{&t.Retried, &c.Retried},
			{&t.Archived, &c.Archived},
			{&t.Expired, &c.Expired},
			{&t.Snoozed, &c.Snoozed},
			{&t.Canceled, &c.Canceled},
			{&t.Parked, &c.Parked},
			{&t.Lost, &c.Lost},
			{&t.Swept, &c.Swept},
			{&t.Trimmed, &c.Trimmed},
		} {
			*pair[0] += *pair[1]
		}
	}
	return v
}

func (v *statsView) print(p *term.Page) {
	queues := count(v.Queues, "queue")
	if v.Paused > 0 {
		queues += " (" + term.Number(v.Paused) + " paused)"
	}
	p.Say(term.C(queues, term.Bold), term.C(", "), term.C(count(v.Workers, "worker"), term.Bold))
	if v.LatencySeconds > 0 {
		p.Say(term.C("The oldest pending task has waited for "),
			term.C(term.Duration(time.Duration(v.LatencySeconds*float64(time.Second))), term.Bold))
	}
	p.Space()
	t := term.NewTable(term.Column{Name: "STATE"}, number("TASKS"))
	for _, s := range inspect.States {
		t.Row(term.C(s.String()), amount(v.States[s.String()], stateStyle(s)))
	}
	p.Table(t)
	p.Space()
	t = term.NewTable(term.Column{Name: "TODAY (UTC)"}, number("RUNS"))
	for _, c := range countsOf(&v.Today) {
		t.Row(term.C(c.name), amount(int(c.n), c.style))
	}
	p.Table(t)
}
