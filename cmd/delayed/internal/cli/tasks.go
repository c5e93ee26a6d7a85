package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// taskCommand is the noun task: "tasks QUEUE" lists, "task ID" shows.
func (a *app) taskCommand() *cobra.Command {
	cmd := a.listTasksCommand("tasks [QUEUE...]")
	cmd.Aliases = []string{"task", "t"}
	cmd.Short = "List tasks, show and change them"
	cmd.Long += "\n\ntasks QUEUE lists the tasks of a queue, task ID shows a task."
	list := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.CalledAs() != "task" || len(args) == 0 {
			err := list(cmd, args)
			if errors.Is(err, inspect.ErrNotFound) && len(args) > 0 { // a verb was taken for a queue
				if verbs := cmd.SuggestionsFor(args[0]); len(verbs) > 0 {
					err = fmt.Errorf("%w; did you mean %s %s?", err, cmd.CommandPath(), strings.Join(verbs, " or "))
				}
			}
			return err
		}
		if len(args) > 1 {
			return usagef("expected 1 argument, found %d: usage: %s; see %s --help", len(args), cmd.UseLine(),
				cmd.CommandPath())
		}
		return a.showTask(cmd.Context(), args[0], cmd.Flag("queue").Value.String())
	}
	cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, begun string) (proposed, cobra.ShellCompDirective) {
		if cmd.CalledAs() == "task" {
			return a.completeIDs(cmd, args, begun)
		}
		return a.completeQueues(cmd, args, begun)
	}
	ls := a.listTasksCommand("ls [QUEUE...]")
	ls.Aliases = []string{"list"}
	cmd.AddCommand(ls, a.showTaskCommand(), a.enqueueCommand())
	cmd.AddCommand(a.actionCommands()...)
	cmd.AddCommand(a.exportCommand(), a.importCommand())
	return cmd
}

// listTasksCommand lists tasks.
func (a *app) listTasksCommand(use string) *cobra.Command {
	var (
		filter inspect.Filter
		states []string
		query  inspect.Query
		queue  string
	)
	cmd := &cobra.Command{
		Use: use, Short: "List tasks of queues, of all queues if none is named",
		Long: "List tasks of queues, in all states or in those of --state. Filters select among them; a page\n" +
			"ends after --limit tasks, or after --scan tasks that were looked at. The cursor at its end\n" +
			"leads to the next.",
		Example: "  delayed tasks ls mail --state retry --func Welcome --error timeout\n" +
			"  delayed tasks ls mail -s archived --older-than 7d --json",
	}
	fs := cmd.Flags()
	fs.StringSliceVarP(&states, "state", "s", nil, "states of the tasks: "+stateNames(inspect.States))
	a.queueFlag(cmd, &queue, "queue of the tasks; the same as an argument")
	addFilter(cmd, &filter)
	fs.BoolVar(&query.NewestFirst, "newest-first", false, "begin with the task that came last")
	fs.IntVarP(&query.Limit, "limit", "n", 30, "tasks in a list, at most 1000")
	fs.IntVar(&query.ScanLimit, "scan", 10_000, "tasks to look at for a list")
	fs.StringVar(&query.Cursor, "cursor", "", "where the page before has ended; with one queue and one state")
	a.completeTaskFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if queue != "" {
			args = append(args, queue)
		}
		wanted, err := parseStates(states, inspect.States)
		if err != nil {
			return err
		}
		if query.Cursor != "" && (len(args) != 1 || len(wanted) != 1) {
			return usagef("--cursor belongs to one list: expected one queue and --state with one state")
		}
		if err := errors.Join(within("--limit", query.Limit, 1, 1000),
			within("--scan", query.ScanLimit, 1, math.MaxInt32)); err != nil {
			return err
		}
		query.Filter = filter
		write := func(p *term.Page, v *document.Lists) { printLists(p, v, len(args) == 1 && len(wanted) == 1) }
		return show(cmd.Context(), a, write, func(ctx context.Context) (document.Lists, error) {
			return a.lists(ctx, args, wanted, query)
		})
	}
	return cmd
}

// lists reads a page of each list.
func (a *app) lists(
	ctx context.Context, queues []string, states []state.Task, query inspect.Query,
) (document.Lists, error) {
	v := document.Lists{Lists: []document.List{}}
	queues, err := a.names(ctx, queues)
	if err != nil {
		return v, err
	}
	if len(states) == 0 {
		states = inspect.States
	}
	for _, name := range queues {
		for _, s := range states {
			query.State = s
			page, err := a.ins.Tasks(ctx, name, query)
			if err != nil {
				return v, err
			}
			v.Lists = append(v.Lists, document.ListOf(name, s, &page))
		}
	}
	return v, nil
}

// printLists prints lists; empty ones only if all are wanted.
func printLists(p *term.Page, v *document.Lists, all bool) {
	shown := 0
	for i := range v.Lists {
		l := &v.Lists[i]
		if len(l.Tasks) == 0 && l.Cursor == "" && !all {
			continue
		}
		if shown++; shown > 1 {
			p.Space()
		}
		printList(p, l)
	}
	if shown == 0 {
		p.Line(term.C("No such tasks.", term.Dim))
	}
}

func printList(p *term.Page, l *document.List) {
	p.Line(term.C(l.Queue, term.Bold), term.C(" "+l.State, term.StateStyle(stateOf(l.State))),
		term.C(": "+term.Number(len(l.Tasks))+" of "+term.Number(l.Total), term.Dim))
	if len(l.Tasks) > 0 {
		t := term.NewTable(term.Column{Name: "ID", Optional: true}, term.Column{Name: "CALL", Flex: true},
			term.Column{Name: "WHEN", Drop: 1}, term.Column{Name: "ATTEMPT", Right: true, Drop: 2},
			term.Column{Name: "WHY", Flex: true, Optional: true})
		for i := range l.Tasks {
			task := &l.Tasks[i]
			t.Row(term.C(term.Clip(task.ID, mostID)), term.C(shownCall(task)), term.C(when(task, p.Now), term.Dim),
				term.Amount(task.Attempt), why(task))
		}
		p.Table(t)
	}
	if l.Cursor != "" && len(l.Tasks) < l.Total { // a page that is full has a cursor although nothing may follow
		p.Line(term.C("More: add --cursor "+l.Cursor, term.Dim))
	}
}

// mostID is how much of an id a list shows.
const mostID = 64

// stateOf returns the state of a name.
func stateOf(name string) state.Task {
	for _, s := range inspect.States {
		if s.String() == name {
			return s
		}
	}
	return state.Unknown
}

// sorted returns the keys of a map in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// addFilter adds the flags that select tasks; they set the fields of a filter.
func addFilter(cmd *cobra.Command, f *inspect.Filter) {
	for i := range call.Conditions {
		c := &call.Conditions[i]
		cmd.Flags().Var(&textFlag{c.Kind, func(s string) error {
			if s == "" {
				return nil
			}
			return c.Set(f, s)
		}}, c.Flag, c.Help)
	}
}

// textFlag is a flag whose texts a function reads.
type textFlag struct {
	kind string // text, duration, time, number or flag
	set  func(string) error
}

func (f *textFlag) String() string { return "" }

func (f *textFlag) Set(s string) error { return f.set(s) }

func (f *textFlag) Type() string {
	switch f.kind {
	case "flag":
		return "bool"
	case "number":
		return "int"
	case "text":
		return "string"
	}
	return f.kind
}

// parseStates reads the states of --state.
func parseStates(names []string, among []state.Task) ([]state.Task, error) {
	var states []state.Task
	for _, name := range names {
		i := slices.IndexFunc(among, func(s state.Task) bool { return s.String() == canonical(name) })
		if i < 0 {
			return nil, usagef("--state %s: expected one of %s", quote(name), stateNames(among))
		}
		if !slices.Contains(states, among[i]) {
			states = append(states, among[i])
		}
	}
	return states, nil
}

// canonical returns a state's name for what people call it elsewhere.
func canonical(name string) string {
	switch name = strings.ToLower(name); name {
	case "dead", "failed":
		return "archived"
	case "retrying", "retries":
		return "retry"
	case "running", "processing":
		return "active"
	case "waiting", "ready", "enqueued":
		return "pending"
	case "done", "succeeded":
		return "completed"
	case "delayed":
		return "scheduled"
	}
	return name
}

func stateNames(states []state.Task) string {
	names := make([]string, len(states))
	for i, s := range states {
		names[i] = s.String()
	}
	return strings.Join(names, ", ")
}
