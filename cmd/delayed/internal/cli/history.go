package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect/document"
)

// historyView is what became of a queue's tasks, day by day.
type historyView document.History

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
			v := historyView(document.HistoryOf(args[0], all))
			return &v, nil
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
