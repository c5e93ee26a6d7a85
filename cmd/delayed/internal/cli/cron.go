package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed"
	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

func (a *app) cronCommand() *cobra.Command {
	list := func(cmd *cobra.Command, args []string) error {
		return show(cmd.Context(), a, printEntries, func(ctx context.Context) (document.Entries, error) {
			entries, err := a.entries(ctx, args)
			return document.EntriesOf(entries), err
		})
	}
	cmd := &cobra.Command{
		Use: "cron [QUEUE...]", Aliases: []string{"periodic", "schedule"},
		Short: "List periodic entries; run, pause, remove one", RunE: list,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "ls [QUEUE...]", Aliases: []string{"list"}, Short: "List periodic entries", RunE: list,
		},
		a.entryCommand("run ENTRY...", []string{"run-now"}, "Enqueue the tasks of entries now; their ticks stay", "run",
			func(ctx context.Context, queue, name string) error {
				ref, err := a.ins.RunEntry(ctx, queue, name)
				if err == nil && !a.json {
					a.done(term.C("task "+ref.ID(), term.Dim))
				}
				return err
			}),
		a.entryCommand("pause ENTRY...", nil, "Let entries tick no more until resume", "paused",
			func(ctx context.Context, queue, name string) error { return a.ins.PauseEntry(ctx, queue, name) }),
		a.entryCommand("resume ENTRY...", []string{"unpause"}, "End a pause of entries", "resumed",
			func(ctx context.Context, queue, name string) error { return a.ins.ResumeEntry(ctx, queue, name) }),
		a.entryCommand("rm ENTRY...", []string{"remove", "delete"}, "Remove entries and their history; one that code "+
			"declares comes back when its program starts", "removed",
			func(ctx context.Context, queue, name string) error { return a.ins.RemoveEntry(ctx, queue, name) }),
		a.entryHistoryCommand(),
	)
	return cmd
}

// entries lists periodic entries of the given queues, or of all.
func (a *app) entries(ctx context.Context, queues []string) ([]inspect.Entry, error) {
	if err := a.known(ctx, queues...); err != nil {
		return nil, err
	}
	return a.ins.Entries(ctx, queues...)
}

func printEntries(p *term.Page, v *document.Entries) {
	if len(v.Entries) == 0 {
		p.Line(term.C("No periodic entries.", term.Dim))
		return
	}
	t := term.NewTable(term.Column{Name: "QUEUE", Drop: 1}, term.Column{Name: "ENTRY"},
		term.Column{Name: "SPEC", Flex: true}, term.Column{Name: "ZONE", Drop: 2},
		term.Column{Name: "FUNCTION", Flex: true}, term.Column{Name: "NEXT"},
		term.Column{Name: "PREVIOUS", Drop: 4}, term.Column{Name: "OWNER", Drop: 3, Optional: true},
		term.Column{Name: "STATE", Optional: true})
	for i := range v.Entries {
		e := &v.Entries[i]
		state := term.C("")
		switch {
		case e.Paused:
			state = term.C("paused", term.Yellow)
		case e.Waiting:
			state = term.C("waits for the previous task", term.Yellow)
		}
		t.Row(term.C(e.Queue), term.C(e.Name, term.Bold), term.C(e.Spec), term.C(e.Zone),
			term.C(inspect.ShortName(e.Function)), ago(e.Next, p.Now), ago(e.Previous, p.Now), term.C(e.Owner), state)
	}
	p.Table(t)
}

// ago is a cell with a time.
func ago(t *time.Time, now time.Time) term.Cell {
	if t == nil {
		return term.C("-", term.Dim)
	}
	return term.C(term.Ago(*t, now))
}

// entryCommand does something to periodic entries.
func (a *app) entryCommand(
	use string, aliases []string, short, done string, do func(ctx context.Context, queue, name string) error,
) *cobra.Command {
	var queue string
	cmd := a.verb(use, aliases, short, done, func(ctx context.Context, name string) error {
		queue, err := a.queueOfEntry(ctx, name, queue)
		if err != nil {
			return err
		}
		return do(ctx, queue, name)
	})
	a.queueFlag(cmd, &queue, "queue of the entries; without it, all queues are searched")
	return cmd
}

// queueOfEntry returns the queue that has an entry.
func (a *app) queueOfEntry(ctx context.Context, name, queue string) (string, error) {
	if queue != "" {
		return queue, a.known(ctx, queue)
	}
	entries, err := a.ins.Entries(ctx)
	if err != nil {
		return "", err
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
		switch {
		case e.Name != name:
		case queue != "":
			return "", usagef("entry %s is in queues %s and %s: say which with --queue", quote(name), queue, e.Queue)
		default:
			queue = e.Queue
		}
	}
	if queue == "" {
		return "", fmt.Errorf("%w: %s: delayed cron ls lists the entries of all queues%s", delayed.ErrNoEntry,
			quote(name), nearest(name, names))
	}
	return queue, nil
}

// entryHistoryCommand shows the history of an entry.
func (a *app) entryHistoryCommand() *cobra.Command {
	var from string
	cmd := &cobra.Command{Use: "history ENTRY", Short: "Show what became of the last ticks of an entry"}
	a.queueFlag(cmd, &from, "queue of the entry; without it, all queues are searched")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return show(cmd.Context(), a, printTicks, func(ctx context.Context) (document.Ticks, error) {
			queue, err := a.queueOfEntry(ctx, args[0], from)
			if err != nil {
				return document.Ticks{}, err
			}
			runs, err := a.ins.EntryHistory(ctx, queue, args[0])
			return document.TicksOf(queue, args[0], runs), err
		})
	}
	return cmd
}

func printTicks(p *term.Page, v *document.Ticks) {
	if len(v.Ticks) == 0 {
		p.Line(term.C("No ticks yet.", term.Dim))
		return
	}
	t := term.NewTable(term.Column{Name: "TICK"}, term.Column{Name: "RESULT"}, term.Column{Name: "TASK"})
	for _, k := range v.Ticks {
		when := ""
		if k.Tick != nil {
			when = term.Moment(*k.Tick, p.Now)
		}
		style := term.Yellow
		if k.Result == "enqueued" {
			style = term.Green
		}
		t.Row(term.C(when), term.C(k.Result, style), term.C(k.Task))
	}
	p.Table(t)
}
