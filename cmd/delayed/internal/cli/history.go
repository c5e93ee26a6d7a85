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
