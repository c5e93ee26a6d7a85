package cli

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// statsView is what all queues hold together.
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
	return &cobra.Command{
		Use: "stats", Aliases: []string{"status", "overview"}, Short: "Show what all queues hold together",
		Args: none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.show(cmd.Context(), func(ctx context.Context) (view, error) {
				queues, err := a.ins.Queues(ctx)
				if err != nil {
					return nil, err
				}
				workers, err := a.ins.Workers(ctx)
				v := sum(queues)
				for i := range workers {
					if workers[i].Alive() {
						v.Workers++
					}
				}
				return v, err
			})
		},
	}
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
