package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

func (a *app) groupCommand() *cobra.Command {
	list := func(cmd *cobra.Command, args []string) error {
		return show(cmd.Context(), a, printGroups, func(ctx context.Context) (document.Groups, error) {
			if err := a.known(ctx, args...); err != nil {
				return document.Groups{}, err
			}
			groups, err := a.ins.Groups(ctx, args...)
			return document.GroupsOf(groups), err
		})
	}
	cmd := &cobra.Command{
		Use: "groups [QUEUE...]", Aliases: []string{"group"},
		Short: "List groups of calls that wait for more calls, 100 of a queue at most", RunE: list,
	}
	cmd.AddCommand(&cobra.Command{
		Use: "ls [QUEUE...]", Aliases: []string{"list"}, Short: "List groups of calls that wait for more calls",
		RunE: list,
	}, a.fireCommand())
	return cmd
}

// fireCommand makes groups due now.
func (a *app) fireCommand() *cobra.Command {
	var function string
	var yes bool
	cmd := &cobra.Command{Use: "fire QUEUE KEY", Short: "Make groups due now: a worker makes one call of their calls"}
	cmd.Flags().StringVar(&function, "func", "", "only the groups of this function")
	yesFlag(cmd, &yes)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, queue := cmd.Context(), args[0]
		if err := a.known(ctx, queue); err != nil {
			return err
		}
		return a.each(cmd, "fired", args[1:], func(key string) error {
			question := "Fire group " + term.Printable(key) + " of queue " + term.Printable(queue) + " now?"
			if err := a.confirm(ctx, yes, question); err != nil {
				return err
			}
			_, err := a.ins.FireGroup(ctx, queue, key, function)
			return err
		})
	}
	return cmd
}

func printGroups(p *term.Page, v *document.Groups) {
	if len(v.Groups) == 0 {
		p.Line(term.C("No groups wait.", term.Dim))
		return
	}
	t := term.NewTable(term.Column{Name: "QUEUE"}, term.Column{Name: "GROUP", Flex: true},
		term.Column{Name: "FUNCTION", Flex: true}, term.Num("CALLS"), term.Column{Name: "DUE"})
	for _, g := range v.Groups {
		due := ""
		if g.Due != nil {
			due = term.Ago(*g.Due, p.Now)
		}
		t.Row(term.C(g.Queue), term.C(g.Key, term.Bold), term.C(inspect.ShortName(g.Function)), term.Amount(g.Size),
			term.C(due, term.Dim))
	}
	p.Table(t)
}
