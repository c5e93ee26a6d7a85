package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// historyView is what became of a queue's tasks, day by day.
type historyView struct {
	Queue string    `json:"queue"`
	Days  []dayJSON `json:"days"`
}

// dayJSON is a day as JSON.
type dayJSON struct {
	Date string `json:"date"`
	inspect.Counts
}

func (a *app) historyCommand() *cobra.Command {
	var days int
	cmd := &cobra.Command{
		Use: "history QUEUE", Short: "Show what became of a queue's tasks, day by day",
		Args: exactly("QUEUE"), ValidArgsFunction: a.completeQueues,
	}
	cmd.Flags().IntVarP(&days, "days", "d", 10, "how many days, at most 90")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if days < 1 || days > 90 {
			return usagef("--days %d: expected 1 to 90", days)
		}
		return a.show(cmd.Context(), func(ctx context.Context) (view, error) {
			if _, err := a.queue(ctx, args[0]); err != nil {
				return nil, err
			}
			all, err := a.ins.History(ctx, args[0], days)
			if err != nil {
				return nil, err
			}
			v := &historyView{Queue: args[0], Days: []dayJSON{}}
			for _, d := range all {
				v.Days = append(v.Days, dayJSON{d.Date.Format("2006-01-02"), d.Counts})
			}
			return v, nil
		})
	}
	return cmd
}

func (v *historyView) print(p *term.Page) {
	t := term.NewTable(term.Column{Name: "DAY (UTC)"}, number("PROCESSED"), number("FAILED"), number("RETRIED"),
		number("ARCHIVED"), sometimes("EXPIRED"), sometimes("SNOOZED"), sometimes("CANCELED"), sometimes("PARKED"),
		sometimes("LOST"), sometimes("SWEPT"), sometimes("TRIMMED"))
	for i := range v.Days {
		d := &v.Days[i]
		t.Row(term.C(d.Date), amount(int(d.Processed)), amount(int(d.Failed), term.Red),
			amount(int(d.Retried), term.Yellow), amount(int(d.Archived), term.Red), amount(int(d.Expired)),
			amount(int(d.Snoozed)), amount(int(d.Canceled)), amount(int(d.Parked)), amount(int(d.Lost)),
			amount(int(d.Swept)), amount(int(d.Trimmed)))
	}
	p.Table(t)
}
