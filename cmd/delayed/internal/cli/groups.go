package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

// groupsView is the groups of calls that wait.
type groupsView document.Groups

func (a *app) groupCommand() *cobra.Command {
	list := func(cmd *cobra.Command, args []string) error {
		return a.show(cmd.Context(), func(ctx context.Context) (view, error) { return a.groups(ctx, args) })
	}
	cmd := &cobra.Command{
		Use: "groups [QUEUE...]", Aliases: []string{"group"},
		Short: "List groups of calls that wait for more calls, 100 of a queue at most",
		Args:  cobra.ArbitraryArgs, ValidArgsFunction: a.completeQueues, RunE: list,
	}
	cmd.AddCommand(&cobra.Command{
		Use: "ls [QUEUE...]", Aliases: []string{"list"}, Short: "List groups of calls that wait for more calls",
		Args: cobra.ArbitraryArgs, ValidArgsFunction: a.completeQueues, RunE: list,
	}, a.fireCommand())
	return cmd
}

// fireCommand makes groups due now.
func (a *app) fireCommand() *cobra.Command {
	var function string
	var yes bool
	cmd := &cobra.Command{
		Use: "fire QUEUE KEY", Short: "Make groups due now: a worker makes one call of their calls",
		Args: exactly("QUEUE", "KEY"), ValidArgsFunction: a.completeQueues,
	}
	cmd.Flags().StringVar(&function, "func", "", "only the groups of this function")
	yesFlag(cmd, &yes)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		queue := args[0]
		if err := a.known(ctx, queue); err != nil {
			return err
		}
		return a.each(&resultView{document.Did{Action: "fire"}, "fired"}, args[1:], func(key string) error {
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

func (a *app) groups(ctx context.Context, queues []string) (view, error) {
	queues, err := a.names(ctx, queues, func(q *inspect.Queue) bool { return q.Groups > 0 })
	if err != nil {
		return nil, err
	}
	var groups []inspect.Group
	if len(queues) > 0 {
		groups, err = a.ins.Groups(ctx, queues...)
	}
	v := groupsView(document.GroupsOf(groups))
	return &v, err
}

func (v *groupsView) print(p *term.Page) {
	if len(v.Groups) == 0 {
		p.Say(term.C("No groups wait.", term.Dim))
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

// names returns the given queues, or those of all queues that meet a condition.
func (a *app) names(ctx context.Context, given []string, cond func(*inspect.Queue) bool) ([]string, error) {
	if len(given) > 0 {
		for _, name := range given {
			if _, err := a.queue(ctx, name); err != nil {
				return nil, err
			}
		}
		return given, nil
	}
	queues, err := a.ins.Queues(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for i := range queues {
		if cond(&queues[i]) {
			names = append(names, queues[i].Name)
		}
	}
	return names, nil
}
