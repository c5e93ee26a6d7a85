package cli

import (
	"context"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// queueCommand is the noun queue: without a verb it lists the queues, with a name it shows one.
func (a *app) queueCommand() *cobra.Command {
	list := func(cmd *cobra.Command, _ []string) error {
		return show(cmd.Context(), a, printQueues, func(ctx context.Context) (document.Queues, error) {
			queues, err := a.ins.Queues(ctx)
			return document.QueuesOf(queues), err
		})
	}
	one := func(cmd *cobra.Command, args []string) error {
		return show(cmd.Context(), a, printQueue, func(ctx context.Context) (v document.OneQueue, err error) {
			q, err := a.queue(ctx, args[0])
			if err != nil {
				return v, err
			}
			v.Queue = document.QueueOf(&q)
			if n, err := a.ins.Memory(ctx, args[0]); err == nil { // not every server and user may ask that
				v.Queue.MemoryBytes = &n
			}
			return v, nil
		})
	}
	cmd := listOrOne(&cobra.Command{
		Use: "queues", Aliases: []string{"queue", "q"},
		Short:             "List queues, show and steer one",
		Long:              "List all queues with what they hold. With a name, show that queue.",
		ValidArgsFunction: a.completeQueues,
	}, list, one)
	cmd.AddCommand(
		&cobra.Command{
			Use: "ls", Aliases: []string{"list"}, Short: "List all queues with what they hold", RunE: list,
		},
		&cobra.Command{
			Use: "show QUEUE", Aliases: []string{"inspect"}, Short: "Show a queue: sizes, workers, memory, counts",
			RunE: one,
		},
		a.historyCommand(),
	)
	cmd.AddCommand(a.queueControls()...)
	cmd.AddCommand(a.removeQueueCommand(), a.emptyQueueCommand())
	return cmd
}

// listOrOne lets a noun list all things without an argument, and show one with its name.
func listOrOne(cmd *cobra.Command, list, one func(*cobra.Command, []string) error) *cobra.Command {
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) < 2 {
			return nil
		}
		return unknownCommand(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return one(cmd, args)
		}
		return list(cmd, args)
	}
	return cmd
}

// held returns what a queue holds according to its document.
func held(q *document.Queue) *inspect.Queue {
	return &inspect.Queue{
		Legacy: q.Legacy, Workers: q.Workers, Pending: q.Pending, Active: q.Active, Scheduled: q.Scheduled,
		Retry: q.Retry, Parked: q.Parked, Aggregating: q.Aggregating, Archived: q.Archived, Completed: q.Completed,
	}
}

func printQueues(p *term.Page, v *document.Queues) {
	if len(v.Queues) == 0 {
		p.Line(term.C("No queues: nobody has enqueued a task here, and no worker has started. Is it the right Redis? "+
			"See delayed --help.", term.Dim))
		return
	}
	t := term.NewTable(
		term.Column{Name: "QUEUE", Flex: true}, term.Num("PENDING"), term.Spare("ACTIVE", 2),
		term.Spare("SCHEDULED", 3), term.Num("RETRY"), term.Rare("PARKED", 4), term.Rare("GROUPED", 7),
		term.Num("ARCHIVED"), term.Rare("COMPLETED", 8), term.Num("LATENCY"), term.Spare("WORKERS", 6),
		term.Spare("DONE TODAY", 9), term.Spare("FAILED", 5), term.Column{Name: "STATE", Optional: true},
	)
	for i := range v.Queues {
		q := &v.Queues[i]
		latency := term.C("-", term.Dim)
		if q.LatencySeconds > 0 {
			latency = term.C(term.Duration(term.Seconds(q.LatencySeconds)))
		}
		t.Row(term.C(q.Name, term.Bold), term.Amount(q.Pending), term.Amount(q.Active), term.Amount(q.Scheduled),
			term.Amount(q.Retry, term.Yellow), term.Amount(q.Parked, term.Yellow), term.Amount(q.Aggregating),
			term.Amount(q.Archived, term.Red), term.Amount(q.Completed), latency, term.Amount(q.Workers),
			term.Amount(q.Today.Processed), term.Amount(q.Today.Failed, term.Red), unusual(q))
	}
	p.Table(t)
	for i := range v.Queues {
		if q := &v.Queues[i]; q.Error != "" {
			p.Line(term.C("queue "+q.Name+": "+q.Error, term.Red))
		}
	}
}

// unusual is what is unusual about a queue.
func unusual(q *document.Queue) term.Cell {
	switch {
	case q.Error != "":
		return term.C("broken", term.Red)
	case q.Paused != nil:
		return term.C("paused", term.Yellow)
	case held(q).Unserved() > 0:
		return term.C("no workers", term.Red)
	case q.Legacy:
		return term.C("legacy", term.Dim)
	}
	return term.C("")
}

func printQueue(p *term.Page, v *document.OneQueue) {
	q := &v.Queue
	p.Line(term.C("Queue "), term.C(q.Name, term.Bold))
	if q.Paused != nil {
		p.Field("paused", term.C("since "+term.Moment(*q.Paused, p.Now), term.Yellow))
	}
	workers := term.C(term.Number(q.Workers))
	if held(q).Unserved() > 0 {
		workers = term.C("none: nothing runs its tasks", term.Red)
	}
	p.Field("workers", workers)
	if q.Legacy {
		p.Field("legacy", term.C("legacy workers share it; they are not counted"))
	}
	if q.Weight > 0 {
		p.Field("weight", term.C(strconv.Itoa(q.Weight)))
	}
	if q.LatencySeconds > 0 {
		p.Field("latency", term.C(term.Duration(term.Seconds(q.LatencySeconds))+": the age of the oldest pending task"))
	}
	if q.MemoryBytes != nil {
		p.Field("memory", term.C("about "+term.Bytes(*q.MemoryBytes)))
	}
	p.Space()
	printSizes(p, held(q).Size)
	if q.Suspects > 0 {
		p.Line(term.C(term.Count(q.Suspects, "pending task")+
			" died with a worker lately: they run with few others or alone", term.Yellow))
	}
	p.Space()
	printToday(p, &q.Today)
}

// printSizes lists how many tasks are in each state.
func printSizes(p *term.Page, size func(state.Task) int) {
	t := term.NewTable(term.Column{Name: "STATE"}, term.Num("TASKS"))
	for _, s := range inspect.States {
		t.Row(term.C(s.String()), term.Amount(size(s), term.StateStyle(s)))
	}
	p.Table(t)
}

// printToday lists the counts of a day; those that are rarely other than 0 only if they are.
func printToday(p *term.Page, c *inspect.Counts) {
	t := term.NewTable(term.Column{Name: "TODAY (UTC)"}, term.Num("RUNS"))
	for i, row := range []struct {
		name  string
		n     int64
		style term.Style
	}{
		{"processed", c.Processed, term.Plain},
		{"failed", c.Failed, term.Red},
		{"retried", c.Retried, term.Yellow},
		{"archived", c.Archived, term.Red},
		{"expired", c.Expired, term.Yellow},
		{"snoozed", c.Snoozed, term.Plain},
		{"canceled", c.Canceled, term.Plain},
		{"parked", c.Parked, term.Yellow},
		{"lost", c.Lost, term.Yellow},
		{"swept", c.Swept, term.Yellow},
		{"trimmed", c.Trimmed, term.Plain},
	} {
		if i < 4 || row.n > 0 {
			t.Row(term.C(row.name), term.Amount(row.n, row.style))
		}
	}
	p.Table(t)
}
