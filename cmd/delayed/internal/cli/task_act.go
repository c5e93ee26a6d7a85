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
	"github.com/godelayed/delayed/inspect/call"
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

// actionCommands are the verbs for tasks.
func (a *app) actionCommands() []*cobra.Command {
	fixed := func(action inspect.Action) func(*cobra.Command) (inspect.Action, error) {
		return func(*cobra.Command) (inspect.Action, error) { return action, nil }
	}
	return []*cobra.Command{
		a.actionCommand("run-now", []string{"retry", "run"},
			"Make tasks pending that are scheduled, retrying, parked or archived",
			act{verb: "run", states: term.Runnable, prepare: fixed(inspect.RunNow())}),
		a.actionCommand("archive", []string{"kill"},
			"Archive tasks that wait: they run only if somebody runs them again",
			act{verb: "archive", states: term.Archivable, prepare: fixed(inspect.Archive())}),
		a.actionCommand("delete", []string{"rm", "remove", "forget"}, "Delete tasks that wait or have ended",
			act{verb: "delete", states: term.Deletable, prepare: fixed(inspect.Delete())}),
		a.actionCommand("cancel", nil, "Cancel tasks that wait or run",
			act{verb: "cancel", states: term.Cancelable, prepare: fixed(inspect.Cancel())}),
		a.rescheduleCommand(), a.moveCommand(), a.editCommand(),
	}
}

func (a *app) rescheduleCommand() *cobra.Command {
	var at moment
	var in duration
	cmd := a.actionCommand("reschedule", nil, "Give another due time to tasks that are pending, scheduled or retrying",
		act{verb: "reschedule", states: term.Reschedulable, example: " --in 15m", prepare: func(
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
		act{verb: "move", states: term.Movable, example: " --to urgent", prepare: func(
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
		p.Line(term.C(r.Queue, term.Bold), term.C(" "+strings.TrimPrefix(r.State+" "+text, " ")))
		for _, f := range r.Failed {
			p.Line(term.C("  task "+f.ID+": "+document.ErrorText(f.Error), term.Red))
		}
		if r.FailedMore > 0 {
			p.Line(term.C("  and "+term.Number(r.FailedMore)+" more", term.Red))
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

// bulk is an action on all tasks of lists.
type bulk struct {
	action inspect.Action
	edit   *editFlags
	verb   string // in the infinitive, for the question
	where  string // what follows the queue in the question
	queue  string
	states []string
	among  []state.Task // the states that the action takes
	filter inspect.Filter
	yes    bool
	dry    bool
}

// actOnAll asks, then does an action to all tasks of lists that a filter matches. Ctrl-C stops it after a page.
func (a *app) actOnAll(ctx context.Context, b *bulk) error {
	if err := a.connect(); err != nil {
		return err
	}
	states, err := parseStates(b.states, b.among)
	if err != nil {
		return err
	}
	q, err := a.queue(ctx, b.queue)
	if err != nil {
		return err
	}
	held := 0
	for _, s := range states {
		held += q.Size(s)
	}
	if !b.dry && held > 0 {
		if err := a.confirm(ctx, b.yes, b.question(held, states)); err != nil {
			return err
		}
	}
	v := &document.Acted{Action: b.verb, DryRun: b.dry, Reports: []document.Report{}}
	if held == 0 {
		states = nil // nobody was asked about tasks that come meanwhile
	}
	var errs []error
	for _, s := range states {
		report, err := a.doAll(ctx, b, inspect.Query{State: s, Filter: b.filter}, q.Size(s))
		v.Reports = append(v.Reports, document.ReportOf(b.queue, s.String(), &report))
		errs = append(errs, unclear(err))
		if ctx.Err() != nil {
			v.Interrupted = true
			errs = append(errs, errInterrupted)
			break
		}
	}
	return a.acted(v, errs)
}

// question asks whether to go on.
func (b *bulk) question(held int, states []state.Task) string {
	tasks := strings.ReplaceAll(stateNames(states), ", ", " and ") + " task"
	text := term.Count(held, tasks)
	if which := call.FilterText(&b.filter); which != "" {
		text = "those of " + text + " that match " + which
	}
	return strings.ToUpper(b.verb[:1]) + b.verb[1:] + " " + text + " in queue " +
		term.Clip(b.queue, 128) + b.where + "?"
}

// doAll does an action to one list, with a progress bar.
func (a *app) doAll(ctx context.Context, b *bulk, q inspect.Query, held int) (inspect.Report, error) {
	bar := a.bar()
	bar.Total = held
	defer bar.Clear()
	progress := func(r inspect.Report) bool {
		note := "done " + term.Number(r.Done)
		if n := len(r.Failed) + r.FailedMore; n > 0 {
			note += ", failed " + term.Number(n)
		}
		bar.Show(r.Scanned, note)
		return ctx.Err() == nil
	}
	if b.dry {
		return a.countAll(ctx, b.queue, q, progress)
	}
	action := b.action
	if b.edit != nil {
		var some bool
		var err error
		if action, some, err = b.edit.actionFor(ctx, a, b.queue, q); err != nil || !some {
			return inspect.Report{}, err
		}
	}
	// The end of ctx stops it between two pages, not in the middle of one.
	return a.ins.DoAll(context.WithoutCancel(ctx), b.queue, action, q, progress)
}

// countAll counts the tasks of a list.
func (a *app) countAll(
	ctx context.Context, queue string, q inspect.Query, progress func(inspect.Report) bool,
) (r inspect.Report, err error) {
	q.Limit = 1000
	for {
		page, err := a.ins.Tasks(ctx, queue, q)
		if err != nil {
			return r, err
		}
		r.Scanned += page.Scanned
		r.Done += len(page.Tasks)
		if !progress(r) || page.Cursor == "" {
			return r, nil
		}
		q.Cursor = page.Cursor
	}
}

// editFlags are the new arguments of tasks.
type editFlags struct {
	args, kwargs string
	unchecked    bool
}

func (a *app) editCommand() *cobra.Command {
	e := &editFlags{}
	cmd := a.actionCommand("edit", nil, "Give tasks other arguments", act{
		verb: "edit", states: term.Movable, edit: e, example: ` --args '[42,"en"]'`,
		prepare: func(*cobra.Command) (inspect.Action, error) {
			if e.args == "" && e.kwargs == "" {
				return inspect.Action{}, usagef(`with what? expected --args with a JSON array, such as '[42,"en"]'`)
			}
			return inspect.Action{}, nil
		},
	})
	cmd.Flags().StringVar(&e.args, "args", "", `the new arguments as a JSON array, such as '[42,"en"]'`)
	cmd.Flags().StringVar(&e.kwargs, "kwargs", "", "keyword arguments of a Python function, as a JSON object")
	cmd.Flags().BoolVar(&e.unchecked, "unchecked", false,
		"do not check them against the signature that workers publish")
	return cmd
}

// action returns the action that gives a task the new arguments.
func (e *editFlags) action(ctx context.Context, a *app, t *inspect.Task) (inspect.Action, error) {
	if t.Function == "" {
		return inspect.Action{}, usagef("task %s: its function is unknown, so it cannot be edited", quote(t.ID))
	}
	texts, err := call.Split(e.args)
	if err != nil {
		return inspect.Action{}, usagef("--args: %w", err)
	}
	if t.Python {
		task, err := call.Python(t.Function, texts, e.kwargs)
		return inspect.Edit(task), misused(err)
	}
	if e.kwargs != "" {
		return inspect.Action{}, usagef("--kwargs is for Python functions, and %s is one of Go", t.Function)
	}
	fn, err := a.published(ctx, t.Function, t.Queue)
	if err != nil {
		return inspect.Action{}, err
	}
	if fn == nil && !e.unchecked {
		return inspect.Action{}, usagef("no worker of queue %s has published %s: start one, or give --unchecked",
			t.Queue, t.Function)
	}
	if e.unchecked {
		fn = nil
	}
	args, err := call.Arguments(texts, fn)
	if err != nil {
		return inspect.Action{}, misused(err)
	}
	return inspect.Edit(delayed.NewGoTask(t.Function, args...)), nil
}

// actionFor returns the action for all tasks of a list, and whether there are any. They must be of the function of the
// first.
func (e *editFlags) actionFor(
	ctx context.Context, a *app, queue string, q inspect.Query,
) (action inspect.Action, found bool, err error) {
	if q.Filter.Function == "" {
		return action, false, usagef("--all: expected --func, because all tasks get the same arguments")
	}
	for t, err := range a.ins.All(ctx, queue, q) {
		if err == nil {
			action, err = e.action(ctx, a, &t)
		}
		return action, true, err
	}
	return action, false, nil
}
