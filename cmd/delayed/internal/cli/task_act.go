package cli

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// act is what a verb does to tasks.
type act struct {
	verb    string // in the infinitive, for questions
	states  []state.Task
	prepare func(cmd *cobra.Command) (inspect.Action, error) // from the verb's own flags
	edit    *editFlags                                       // of the verb edit: the action depends on the task
	to      *string                                          // of the verb move: the queue
	example string                                           // flags that the verb needs, for examples
}

var (
	waiting  = []state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked}
	runnable = []state.Task{state.Scheduled, state.Retry, state.Parked, state.Archived}
	movable  = []state.Task{state.Pending, state.Scheduled, state.Retry, state.Parked, state.Archived}
	endable  = []state.Task{
		state.Pending, state.Active, state.Scheduled, state.Retry, state.Parked, state.Aggregating,
	}
	shiftable = []state.Task{state.Pending, state.Scheduled, state.Retry}
)

// actionCommands are the verbs for tasks.
func (a *app) actionCommands() []*cobra.Command {
	fixed := func(action inspect.Action) func(*cobra.Command) (inspect.Action, error) {
		return func(*cobra.Command) (inspect.Action, error) { return action, nil }
	}
	return []*cobra.Command{
		a.actionCommand("run-now", []string{"retry", "run"},
			"Make tasks pending that are scheduled, retrying, parked or archived",
			act{verb: "run", states: runnable, prepare: fixed(inspect.RunNow())}),
		a.actionCommand("archive", []string{"kill"},
			"Archive tasks that wait: they run only if somebody runs them again",
			act{verb: "archive", states: waiting, prepare: fixed(inspect.Archive())}),
		a.actionCommand("delete", []string{"rm", "remove", "forget"}, "Delete tasks that wait or have ended",
			act{verb: "delete", states: deletable, prepare: fixed(inspect.Delete())}),
		a.actionCommand("cancel", nil, "Cancel tasks that wait or run",
			act{verb: "cancel", states: endable, prepare: fixed(inspect.Cancel())}),
		a.rescheduleCommand(), a.moveCommand(), a.editCommand(),
	}
}

func (a *app) rescheduleCommand() *cobra.Command {
	var at moment
	var in duration
	cmd := a.actionCommand("reschedule", nil, "Give another due time to tasks that are pending, scheduled or retrying",
		act{verb: "reschedule", states: shiftable, example: " --in 15m", prepare: func(
			cmd *cobra.Command,
		) (inspect.Action, error) {
			if at.IsZero() == !cmd.Flags().Changed("in") {
				return inspect.Action{}, usagef("when? expected one of --at and --in")
			}
			if at.IsZero() {
				at.Time = a.Now().Add(time.Duration(in))
			}
			return inspect.Reschedule(at.Time), nil
		}})
	cmd.Flags().Var(&at, "at", "the time, such as 2026-01-31T15:04:05Z, or 2026-01-31 15:04 in the local zone")
	cmd.Flags().Var(&in, "in", "the time from now on, such as 15m or 2d, by the clock of this machine")
	return cmd
}

func (a *app) moveCommand() *cobra.Command {
	var to string
	cmd := a.actionCommand("move", []string{"mv"}, "Move tasks to another queue",
		act{verb: "move", states: movable, example: " --to urgent", prepare: func(
			*cobra.Command,
		) (inspect.Action, error) {
			if to == "" {
				return inspect.Action{}, usagef("where to? expected --to with the name of a queue")
			}
			return inspect.MoveTo(to), nil
		}, to: &to})
	cmd.Flags().StringVar(&to, "to", "", "queue to move them to")
	a.completeFlag(cmd, "to", a.completeQueues)
	return cmd
}

// actionCommand is a verb for tasks: those with given ids, or with --all those that filters mean.
func (a *app) actionCommand(name string, aliases []string, short string, do act) *cobra.Command {
	var (
		filter inspect.Filter
		queue  string
		states []string
		all    bool
		bulk   bulk
	)
	cmd := &cobra.Command{
		Use: name + " ID... | --all --queue QUEUE --state STATE", Aliases: aliases, Short: short,
		Long: short + ".\n\nGive the ids of tasks, or --all with a queue, states and filters. States: " +
			stateNames(do.states) + ".",
		Example: "  delayed " + name + " 01J9ZQ" + do.example + "\n" +
			"  delayed " + name + " --all --queue mail --state " + do.states[len(do.states)-1].String() +
			" --func Welcome" + do.example,
		Args: cobra.ArbitraryArgs, ValidArgsFunction: a.completeIDs,
	}
	fs := cmd.Flags()
	a.queueFlag(cmd, &queue, "queue of the tasks; without it, ids are looked for in all queues")
	fs.BoolVar(&all, "all", false, "all tasks of --queue and --state that the filters mean")
	fs.StringSliceVarP(&states, "state", "s", nil, "with --all: states of the tasks; several: a,b")
	addFilter(cmd, &filter)
	yesFlag(cmd, &bulk.yes)
	fs.BoolVar(&bulk.dry, "dry-run", false, "with --all: only count the tasks")
	a.completeTaskFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if err := a.connect(); err != nil {
			return err
		}
		if !all && (!filter.IsZero() || len(states) > 0) {
			return usagef("filters and --state go with --all: add it to mean all tasks that match, or give ids alone")
		}
		var action inspect.Action
		var err error
		if do.prepare != nil {
			if action, err = do.prepare(cmd); err != nil {
				return err
			}
		}
		if !all {
			if len(args) == 0 {
				return usagef("which tasks? expected ids, or --all with --queue and --state")
			}
			return a.actOnIDs(ctx, name, action, &do, queue, args)
		}
		if len(args) > 0 {
			return usagef("expected ids or --all, found both")
		}
		if queue == "" || len(states) == 0 {
			return usagef("--all: expected --queue, and --state with one or more of %s", stateNames(do.states))
		}
		b := bulk
		b.action, b.edit, b.verb, b.filter = action, do.edit, do.verb, filter
		b.queue, b.states, b.among = queue, states, do.states
		if do.to != nil {
			if *do.to == queue {
				return sameQueue(queue)
			}
			b.where = ", to queue " + term.Clip(*do.to, 128)
		}
		return a.actOnAll(ctx, &b)
	}
	return cmd
}

// printActed prints what an action has done.
func printActed(p *term.Page, v *document.Acted) {
	for i := range v.Reports {
		r := &v.Reports[i]
		verb := ": done "
		if v.DryRun {
			verb = ": would do "
		}
		text := v.Action + verb + term.Number(r.Done)
		if r.Skipped > 0 {
			text += ", skipped " + term.Number(r.Skipped) + " that changed meanwhile"
		}
		p.Say(term.C(r.Queue, term.Bold), term.C(" "+strings.TrimPrefix(r.State+" "+text, " ")))
		for _, f := range r.Failed {
			p.Say(term.C("  task "+f.ID+": "+document.ErrorText(f.Error), term.Red))
		}
		if r.FailedMore > 0 {
			p.Say(term.C("  and "+term.Number(r.FailedMore)+" more", term.Red))
		}
	}
}

// actOnIDs does an action to single tasks.
func (a *app) actOnIDs(
	ctx context.Context, verb string, action inspect.Action, do *act, queue string, ids []string,
) error {
	v := &document.Acted{Action: verb, Reports: []document.Report{}}
	var errs []error
	found := map[string][]string{} // ids by queue
	var order []string
	for _, id := range ids {
		t, err := a.findOne(ctx, id, queue)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if do.to != nil && *do.to == t.Queue {
			errs = append(errs, sameQueue(t.Queue))
			continue
		}
		if do.edit != nil { // each task has arguments of its own function
			one, err := do.edit.action(ctx, a, &t)
			if err == nil {
				err = a.do(ctx, v, one, t.Queue, id)
			}
			errs = append(errs, err)
			continue
		}
		if !slices.Contains(order, t.Queue) {
			order = append(order, t.Queue)
		}
		found[t.Queue] = append(found[t.Queue], id)
	}
	for _, name := range order {
		errs = append(errs, a.do(ctx, v, action, name, found[name]...))
	}
	return a.acted(v, errs)
}

// sameQueue is the error of tasks that are to be moved to their own queue.
func sameQueue(name string) error {
	return usagef("--to %s: expected another queue than that of the tasks", quote(name))
}

// do does an action to tasks of one queue and adds the report to a view.
func (a *app) do(ctx context.Context, v *document.Acted, action inspect.Action, queue string, ids ...string) error {
	r, err := a.ins.Do(ctx, queue, action, ids...)
	v.Reports = append(v.Reports, document.ReportOf(queue, "", &r))
	return unclear(err)
}

// unclear adds to an error what an operator must know about it.
func unclear(err error) error {
	if errors.Is(err, delayed.ErrUnknown) {
		return errors.Join(err, errors.New("it may be done or not: look before you repeat it"))
	}
	return err
}

// acted shows what was done and returns what went wrong.
func (a *app) acted(v *document.Acted, errs []error) error {
	if len(v.Reports) > 0 || a.json {
		if err := output(a, v, printActed); err != nil {
			return err
		}
	}
	if err := join(errs); err != nil {
		return err
	}
	for i := range v.Reports {
		if len(v.Reports[i].Failed) > 0 {
			return errSilent // the report has them
		}
	}
	return nil
}
