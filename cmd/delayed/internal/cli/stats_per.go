package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

// metricsView is what handlers have done from one time to another.
type metricsView document.Metrics

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

// metrics reads what handlers have done.
func (a *app) metrics(ctx context.Context, per document.Per, function string, names []string) (view, error) {
	queues, err := a.described(ctx, names)
	if err != nil {
		return nil, err
	}
	read, err := document.ReadMetrics(ctx, a.ins, per, function, queues)
	v := metricsView(read)
	return &v, err
}

// described describes the given queues, or all of them.
func (a *app) described(ctx context.Context, names []string) (queues []inspect.Queue, err error) {
	if len(names) == 0 {
		return a.ins.Queues(ctx)
	}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		q, err := a.queue(ctx, name)
		if err != nil {
			return nil, err
		}
		queues = append(queues, q)
	}
	return queues, nil
}

const (
	graphColumns = 20
	mostTimes    = 30 // rows of the newest times that people see; JSON has all
)

func (v *metricsView) print(p *term.Page) {
	if len(v.Functions) == 0 {
		p.Say(term.C("Nothing has run in that time, or only workers in Python and legacy workers.", term.Dim))
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
		t.Row(append(row, term.C(term.Spark(f.Graph, graphColumns), term.Green))...)
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
		p.Say(term.C("and "+term.Count(n, "earlier "+v.Per)+": --json has all", term.Dim))
	}
}
