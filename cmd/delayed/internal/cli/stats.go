package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

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
	}
	fs := cmd.Flags()
	fs.StringVar(&per, "per", "", "second, minute or day: what has run, and in which of them")
	fs.Var(&last, "last", "with --per: how far back (default 1m, 1h or 14d)")
	fs.StringVar(&function, "func", "", "with --per: function: Welcome, mail.Welcome or its whole path")
	a.completeFlag(cmd, "per", fixed("second", "minute", "day"))
	a.completeFlag(cmd, "func", a.completeFunctions)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		slices.Sort(args)
		args = slices.Compact(args)
		if !cmd.Flags().Changed("per") {
			if last != 0 || function != "" {
				return usagef("--last and --func go with --per: expected --per second, minute or day")
			}
			return show(ctx, a, printStats, func(ctx context.Context) (v document.Stats, err error) {
				queues, err := a.queues(ctx, args)
				if err != nil {
					return v, err
				}
				workers, err := a.ins.Workers(ctx, args...)
				return document.StatsOf(queues, workers), err
			})
		}
		by, err := parsePer(per, time.Duration(last))
		if err != nil {
			return err
		}
		return show(ctx, a, printMetrics, func(ctx context.Context) (v document.Metrics, err error) {
			queues, err := a.queues(ctx, args)
			if err != nil {
				return v, err
			}
			return document.ReadMetrics(ctx, a.ins, by, function, queues)
		})
	}
	return cmd
}

func printStats(p *term.Page, v *document.Stats) {
	queues := term.Count(v.Queues, "queue")
	if v.Paused > 0 {
		queues += " (" + term.Number(v.Paused) + " paused)"
	}
	p.Line(term.C(queues, term.Bold), term.C(", "), term.C(term.Count(v.Workers, "worker"), term.Bold))
	if v.LatencySeconds > 0 {
		p.Line(term.C("The oldest pending task has waited for "),
			term.C(term.Duration(term.Seconds(v.LatencySeconds)), term.Bold))
	}
	p.Space()
	printSizes(p, func(s state.Task) int { return v.States[s.String()] })
	p.Space()
	printToday(p, &v.Today)
}

// parsePer reads --per and --last.
func parsePer(name string, last time.Duration) (document.Per, error) {
	per, err := document.ParsePer(name, last)
	var wrong *document.PerError
	switch {
	case errors.As(err, &wrong) && wrong.Last:
		return per, usagef("--last %w", err)
	case err != nil:
		return per, usagef("--per %w", err)
	}
	return per, nil
}

const (
	graphColumns = 20
	mostTimes    = 30 // rows of the newest times that people see; JSON has all
)

func printMetrics(p *term.Page, v *document.Metrics) {
	if len(v.Functions) == 0 {
		p.Line(term.C("Nothing has run in that time, or only workers in Python and legacy workers.", term.Dim))
		return
	}
	figures := func(f *document.Figures) []term.Cell {
		return []term.Cell{
			term.Amount(f.Runs), term.Amount(f.Failed, term.Red), term.C(took(f.Wait.P50)), term.C(took(f.Wait.P95)),
			term.C(took(f.Run.P50)), term.C(took(f.Run.P95)),
		}
	}
	columns := []term.Column{
		term.Num("RUNS"), term.Num("FAILED"), term.Spare("WAIT P50", 4), term.Num("WAIT P95"), term.Spare("RUN P50", 3),
		term.Num("RUN P95"),
	}
	names := []term.Column{{Name: "QUEUE", Flex: true, Drop: 1}, {Name: "FUNCTION", Flex: true}}
	t := term.NewTable(append(append(names,
		columns...), term.Column{Name: "RUNS PER " + strings.ToUpper(v.Per), Drop: 2})...)
	for i := range v.Functions {
		f := &v.Functions[i]
		name := inspect.ShortName(f.Function)
		if name == "" {
			name = "(others)"
		}
		row := append([]term.Cell{term.C(f.Queue, term.Bold), term.C(name)}, figures(&f.Figures)...)
		t.Row(append(row, term.C(term.Spark(f.Graph, graphColumns, term.Heights), term.Green))...)
	}
	p.Table(t)
	p.Space()
	t = term.NewTable(append([]term.Column{{Name: strings.ToUpper(v.Per) + " (UTC)"}}, columns...)...)
	layout := map[string]string{"second": time.TimeOnly, "minute": "2006-01-02 15:04", "day": time.DateOnly}[v.Per]
	times := v.Times[max(len(v.Times)-mostTimes, 0):]
	for i := range times {
		t.Row(append([]term.Cell{term.C(times[i].At.Format(layout))}, figures(&times[i].Figures)...)...)
	}
	p.Table(t)
	if n := len(v.Times) - len(times); n > 0 {
		p.Line(term.C("and "+term.Count(n, "earlier "+v.Per)+": --json has all", term.Dim))
	}
}

func (a *app) historyCommand() *cobra.Command {
	var days int
	cmd := &cobra.Command{Use: "history QUEUE", Short: "Show what became of a queue's tasks, day by day"}
	cmd.Flags().IntVarP(&days, "days", "d", 10, "how many days, at most 90")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := within("--days", days, 1, 90); err != nil {
			return err
		}
		return show(cmd.Context(), a, printHistory, func(ctx context.Context) (document.History, error) {
			if err := a.known(ctx, args[0]); err != nil {
				return document.History{}, err
			}
			all, err := a.ins.History(ctx, args[0], days)
			return document.HistoryOf(args[0], all), err
		})
	}
	return cmd
}

func printHistory(p *term.Page, v *document.History) {
	t := term.NewTable(term.Column{Name: "DAY (UTC)"}, term.Num("PROCESSED"), term.Num("FAILED"), term.Num("RETRIED"),
		term.Num("ARCHIVED"), term.Rare("EXPIRED", 0), term.Rare("SNOOZED", 0), term.Rare("CANCELED", 0),
		term.Rare("PARKED", 0), term.Rare("LOST", 0), term.Rare("SWEPT", 0), term.Rare("TRIMMED", 0))
	for i := range v.Days {
		d := &v.Days[i]
		t.Row(term.C(d.Date), term.Amount(d.Processed), term.Amount(d.Failed, term.Red),
			term.Amount(d.Retried, term.Yellow), term.Amount(d.Archived, term.Red), term.Amount(d.Expired),
			term.Amount(d.Snoozed), term.Amount(d.Canceled), term.Amount(d.Parked), term.Amount(d.Lost),
			term.Amount(d.Swept), term.Amount(d.Trimmed))
	}
	p.Table(t)
}
