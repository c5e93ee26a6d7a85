package cli

import (
	"context"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
)

// queueControls are the verbs for queues that also stand without their noun: pause, resume, restart and weight.
func (a *app) queueControls() []*cobra.Command {
	control := func(
		use string, aliases []string, short, done string, do func(*inspect.Inspector, context.Context, string) error,
	) *cobra.Command {
		return a.verb(use, aliases, short, done, func(ctx context.Context, name string) error {
			if err := a.known(ctx, name); err != nil {
				return err
			}
			return do(a.ins, ctx, name)
		})
	}
	return []*cobra.Command{
		control("pause QUEUE...", nil, "Let workers run no further tasks of queues, until resume",
			"paused", (*inspect.Inspector).Pause),
		control("resume QUEUE...", []string{"unpause", "continue"}, "End a pause of queues",
			"resumed", (*inspect.Inspector).Resume),
		control("restart QUEUE...", nil,
			"Let all workers of queues finish their tasks and stop, so that supervisors start them again",
			"restarting the workers of", (*inspect.Inspector).Restart),
		a.weightCommand(),
	}
}

func (a *app) weightCommand() *cobra.Command {
	return &cobra.Command{
		Use: "weight QUEUE N", Short: "Change how often workers with weighted queues serve a queue",
		Long: "Change the weight of a queue for all workers that serve it in weighted order: 1 to 1000, or 0\n" +
			"for the weight that each of them was configured with.",
		RunE: func(cmd *cobra.Command, args []string) error {
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return usagef("weight %s: expected a number from 0 to 1000", quote(args[1]))
			}
			if err := within("weight", n, 0, 1000); err != nil {
				return err
			}
			return a.each(cmd, fmt.Sprintf("weight %d for", n), args[:1], func(name string) error {
				if err := a.known(cmd.Context(), name); err != nil {
					return err
				}
				return a.ins.SetWeight(cmd.Context(), name, n)
			})
		},
	}
}

// removeQueueCommand deletes queues with all that Redis keeps of them.
func (a *app) removeQueueCommand() *cobra.Command {
	var force, yes bool
	cmd := a.verb("rm QUEUE...", []string{"remove", "delete"}, "Delete queues with everything that Redis keeps of them",
		"deleted", func(ctx context.Context, name string) error {
			q, err := a.queue(ctx, name)
			if err != nil {
				return err
			}
			held := 0
			for _, s := range inspect.States {
				held += q.Size(s)
			}
			question := "Delete queue " + term.Printable(name)
			if held > 0 && force {
				question += " with " + term.Count(held, "task")
			}
			if err := a.confirm(ctx, yes, question+"?"); err != nil {
				return err
			}
			return a.ins.DeleteQueue(ctx, name, force)
		})
	cmd.Long = "Delete queues with everything that Redis keeps of them: counters, settings and periodic\n" +
		"entries, and with --force also tasks in all states. A queue that a living worker serves is\n" +
		"refused."
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also delete the tasks and periodic entries that it holds")
	yesFlag(cmd, &yes)
	return cmd
}

// emptyQueueCommand deletes all tasks of a queue that are in given states.
func (a *app) emptyQueueCommand() *cobra.Command {
	var states []string
	var yes bool
	cmd := &cobra.Command{
		Use: "empty QUEUE --state STATE", Aliases: []string{"clear", "flush", "purge"},
		Short: "Delete all tasks of a queue in given states",
	}
	cmd.Flags().StringSliceVarP(&states, "state", "s", nil, "state of the tasks, such as archived; several: a,b; all")
	yesFlag(cmd, &yes)
	a.completeStates(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(states) == 0 {
			return usagef("which tasks? expected --state with one or more of %s, or all", stateNames(term.Deletable))
		}
		if len(states) == 1 && states[0] == "all" {
			states = nil
			for _, s := range term.Deletable {
				states = append(states, s.String())
			}
		}
		return a.actOnAll(cmd.Context(), &bulk{
			action: inspect.Delete(), verb: "delete", queue: args[0], states: states, among: term.Deletable, yes: yes,
		})
	}
	return cmd
}
