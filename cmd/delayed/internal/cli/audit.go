package cli

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect/document"
)

func (a *app) auditCommand() *cobra.Command {
	var limit, skip int
	cmd := &cobra.Command{
		Use: "audit", Aliases: []string{"log"},
		Short: "Show who has acted on tasks, queues, workers and periodic entries, the latest first",
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "records, at most 1000")
	cmd.Flags().IntVar(&skip, "skip", 0, "records to leave out, the latest first")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := errors.Join(within("--limit", limit, 1, 1000), within("--skip", skip, 0, math.MaxInt32)); err != nil {
			return err
		}
		return show(cmd.Context(), a, printAudit, func(ctx context.Context) (document.Audit, error) {
			records, err := a.ins.Audit(ctx, skip, limit)
			return document.AuditOf(records), err
		})
	}
	return cmd
}

func printAudit(p *term.Page, v *document.Audit) {
	if len(v.Records) == 0 {
		p.Line(term.C("Nobody has acted yet.", term.Dim))
		return
	}
	t := term.NewTable(term.Column{Name: "AT"}, term.Column{Name: "WHO", Flex: true},
		term.Column{Name: "ACTION", Flex: true}, term.Column{Name: "QUEUE"}, term.Num("DONE"), term.Rare("FAILED", 0),
		term.Column{Name: "WHICH", Flex: true, Drop: 1})
	for i := range v.Records {
		r := &v.Records[i]
		when, which := "", strings.TrimSpace(r.Target+" "+strings.Join(r.IDs, " "))
		if r.At != nil {
			when = r.At.Format("2006-01-02 15:04:05Z")
		}
		if r.More > 0 {
			which += " and " + term.Number(r.More) + " more"
		}
		if r.State != "" {
			which = "all " + r.State
			if r.Filter != "" {
				which += " with " + r.Filter
			}
		}
		t.Row(term.C(when), term.C(r.Actor), term.C(r.Action, term.Bold), term.C(r.Queue), term.Amount(r.Done),
			term.Amount(r.Failed, term.Red), term.C(which))
	}
	p.Table(t)
}
