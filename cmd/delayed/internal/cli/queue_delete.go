package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// removeQueueCommand deletes queues with all that Redis keeps of them.
func (a *app) removeQueueCommand() *cobra.Command {
	var force, yes bool
	cmd := &cobra.Command{
		Use: "rm QUEUE...", Aliases: []string{"remove", "delete"},
		Short: "Delete queues with everything that Redis keeps of them",
		Long: "Delete queues with everything that Redis keeps of them: counters, settings and periodic\n" +
			"entries, and with --force also tasks in all states. A queue that a living worker serves is\n" +
			"refused.",
		Args: some, ValidArgsFunction: a.completeQueues,
	}
	cmd.Flags().BoolVarP(&force, "force", "f", false, "also delete the tasks and periodic entries that it holds")
	yesFlag(cmd, &yes)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if err := a.connect(); err != nil {
			return err
		}
		return a.each(&resultView{document.Did{Action: "rm"}, "deleted"}, args, func(name string) error {
			q, err := a.queue(ctx, name)
			if err != nil {
				return err
			}
			held := 0
			for _, s := range inspect.States {
				held += q.Size(s)
			}
			question := "Delete queue " + term.Printable(name) + "?"
			if held > 0 && force {
				question = "Delete queue " + term.Printable(name) + " with " + term.Count(held, "task") + "?"
			}
			if err := a.confirm(ctx, yes, question); err != nil {
				return err
			}
			return a.ins.DeleteQueue(ctx, name, force)
		})
	}
	return cmd
}

// emptyQueueCommand deletes all tasks of a queue that are in given states.
func (a *app) emptyQueueCommand() *cobra.Command {
	var states []string
	var yes bool
	cmd := &cobra.Command{
		Use: "empty QUEUE --state STATE", Aliases: []string{"clear", "flush", "purge"},
		Short: "Delete all tasks of a queue in given states",
		Args:  exactly("QUEUE"), ValidArgsFunction: a.completeQueues,
	}
	cmd.Flags().StringSliceVarP(&states, "state", "s", nil, "state of the tasks, such as archived; several: a,b; all")
	yesFlag(cmd, &yes)
	a.completeStates(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(states) == 0 {
			return usagef("which tasks? expected --state with one or more of %s, or all", stateNames(deletable))
		}
		if len(states) == 1 && states[0] == "all" {
			states = nil
			for _, s := range deletable {
				states = append(states, s.String())
			}
		}
		return a.actOnAll(cmd.Context(), &bulk{
			action: inspect.Delete(), verb: "delete", queues: args, states: states, yes: yes,
		})
	}
	return cmd
}

// deletable are the states whose tasks can be deleted.
var deletable = []state.Task{
	state.Pending, state.Scheduled, state.Retry, state.Parked, state.Aggregating, state.Archived, state.Completed,
}

// join is errors.Join that keeps a single error as it is.
func join(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
