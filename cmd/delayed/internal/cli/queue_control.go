package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

// queueControls are the verbs pause, resume, restart and weight.
func (a *app) queueControls() []*cobra.Command {
	return []*cobra.Command{
		a.controlCommand("pause QUEUE...", nil, "Let workers run no further tasks of queues, until resume",
			"paused", (*inspect.Inspector).Pause),
		a.controlCommand("resume QUEUE...", []string{"unpause", "continue"}, "End a pause of queues",
			"resumed", (*inspect.Inspector).Resume),
		a.controlCommand("restart QUEUE...", nil,
			"Let all workers of queues finish their tasks and stop, so that supervisors start them again",
			"restarting the workers of", (*inspect.Inspector).Restart),
		a.weightCommand(),
	}
}

// controlCommands are the verbs that also stand without their noun.
func (a *app) controlCommands() []*cobra.Command { return a.queueControls() }

// resultView says what was done to a number of things.
type resultView struct {
	document.Did

	text string // what precedes the names
}

func (v *resultView) print(p *term.Page) {
	for _, name := range v.Done {
		p.Say(term.C(v.text+" "), term.C(name, term.Bold))
	}
}

// each does something to each of several things, goes on after an error, and shows what was done.
func (a *app) each(v *resultView, names []string, do func(string) error) error {
	v.Done = []string{}
	var errs []error
	for _, name := range names {
		if err := do(name); err != nil {
			errs = append(errs, err)
		} else {
			v.Done = append(v.Done, name)
		}
	}
	if len(v.Done) > 0 || a.json {
		if err := a.print(v, true); err != nil {
			errs = append(errs, err)
		}
	}
	return join(errs)
}

func (a *app) controlCommand(
	use string, aliases []string, short, text string, do func(*inspect.Inspector, context.Context, string) error,
) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Aliases: aliases, Short: short, Args: some, ValidArgsFunction: a.completeQueues,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		return a.each(&resultView{document.Did{Action: cmd.Name()}, text}, args, func(name string) error {
			if err := a.known(ctx, name); err != nil {
				return err
			}
			return do(a.ins, ctx, name)
		})
	}
	return cmd
}

func (a *app) weightCommand() *cobra.Command {
	return &cobra.Command{
		Use: "weight QUEUE N", Short: "Change how often workers with weighted queues serve a queue",
		Long: "Change the weight of a queue for all workers that serve it in weighted order: 1 to 1000, or 0\n" +
			"for the weight that each of them was configured with.",
		Args: exactly("QUEUE", "N"), ValidArgsFunction: a.completeQueues,
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usagef("weight %s: expected a number from 0 to 1000", quote(args[1]))
			}
			if err := within("weight", n, 0, 1000); err != nil {
				return err
			}
			v := &resultView{document.Did{Action: "weight"}, fmt.Sprintf("weight %d for", n)}
			return a.each(v, args[:1], func(name string) error {
				if err := a.known(cmd.Context(), name); err != nil {
					return err
				}
				return a.ins.SetWeight(cmd.Context(), name, n)
			})
		},
	}
}
