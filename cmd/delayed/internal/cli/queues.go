package cli

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// queueCommand is the noun queue: without a verb it lists the queues, with a name it shows one.
func (a *app) queueCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "queues", Aliases: []string{"queue", "q"},
		Short: "List queues, show and steer one",
		Long:  "List all queues with what they hold. With a name, show that queue.",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				return a.showQueue(cmd.Context(), args[0])
			}
			return a.listQueues(cmd.Context())
		},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return nil
			}
			return unknownCommand(cmd, args)
		},
		ValidArgsFunction: a.completeQueues,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "ls", Aliases: []string{"list"}, Short: "List all queues with what they hold", Args: none,
			RunE: func(cmd *cobra.Command, _ []string) error { return a.listQueues(cmd.Context()) },
		},
		&cobra.Command{
			Use: "show QUEUE", Aliases: []string{"inspect"}, Short: "Show a queue: sizes, workers, memory, counts",
			Args: exactly("QUEUE"),
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.showQueue(cmd.Context(), args[0])
			},
			ValidArgsFunction: a.completeQueues,
		},
		a.historyCommand(),
	)
	cmd.AddCommand(a.queueControls()...)
	cmd.AddCommand(a.removeQueueCommand(), a.emptyQueueCommand())
	return cmd
}

// held returns what a document says that a queue holds.
func held(q *document.Queue) *inspect.Queue {
	return &inspect.Queue{
		Legacy: q.Legacy, Workers: q.Workers, Pending: q.Pending, Active: q.Active, Scheduled: q.Scheduled,
		Retry: q.Retry, Parked: q.Parked, Aggregating: q.Aggregating, Archived: q.Archived, Completed: q.Completed,
	}
}

func latency(q *document.Queue) time.Duration {
	return time.Duration(q.LatencySeconds * float64(time.Second))
}

// queuesView is the list of queues.
type queuesView document.Queues

func (a *app) listQueues(ctx context.Context) error {
	return a.show(ctx, func(ctx context.Context) (view, error) {
		queues, err := a.ins.Queues(ctx)
		v := queuesView(document.QueuesOf(queues))
		return &v, err
	})
}

func (v *queuesView) print(p *term.Page) {
	if len(v.Queues) == 0 {
		p.Say(term.C("No queues: nobody has enqueued a task here, and no worker has started. Is it the right Redis? "+
			"See delayed --help.", term.Dim))
		return
	}
	t := term.NewTable(
		term.Column{Name: "QUEUE", Flex: true}, term.Num("PENDING"), term.Spare("ACTIVE", 2),
		term.Spare("SCHEDULED", 3), term.Num("RETRY"), term.Rare("PARKED", 4), term.Rare("GROUPED", 7),
		term.Num("ARCHIVED"), term.Rare("COMPLETED", 8), term.Num("LATENCY"), term.Spare("WORKERS", 6), term.Spare("DONE TODAY", 9), term.Spare("FAILED", 5),
		term.Column{Name: "STATE", Optional: true},
	)
	for i := range v.Queues {
		q := &v.Queues[i]
		t.Row(term.C(q.Name, term.Bold), term.Amount(q.Pending), term.Amount(q.Active), term.Amount(q.Scheduled),
			term.Amount(q.Retry, term.Yellow), term.Amount(q.Parked, term.Yellow), term.Amount(q.Aggregating),
			term.Amount(q.Archived, term.Red), term.Amount(q.Completed), latencyCell(q), workersCell(q),
			term.Amount(q.Today.Processed), term.Amount(q.Today.Failed, term.Red), stateCell(q))
	}
	p.Table(t)
	for i := range v.Queues {
		if q := &v.Queues[i]; q.Error != "" {
			p.Say(term.C("queue "+q.Name+": "+q.Error, term.Red))
		}
	}
}

// stateCell says what is unusual about a queue.
func stateCell(q *document.Queue) term.Cell {
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

func latencyCell(q *document.Queue) term.Cell {
	if q.LatencySeconds == 0 {
		return term.C("-", term.Dim)
	}
	return term.C(term.Duration(latency(q)))
}

func workersCell(q *document.Queue) term.Cell { return term.Amount(q.Workers) }

// queueView is one queue.
type queueView document.OneQueue

func (a *app) showQueue(ctx context.Context, name string) error {
	return a.show(ctx, func(ctx context.Context) (view, error) {
		q, err := a.queue(ctx, name)
		if err != nil {
			return nil, err
		}
		v := &queueView{Queue: document.QueueOf(&q)}
		if n, err := a.ins.Memory(ctx, name); err == nil { // not every server and user may ask that
			v.Queue.MemoryBytes = &n
		}
		return v, nil
	})
}

func (v *queueView) print(p *term.Page) {
	q := &v.Queue
	p.Say(term.C("Queue "), term.C(q.Name, term.Bold))
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
		p.Field("latency", term.C(term.Duration(latency(q))+": the age of the oldest pending task"))
	}
	if q.MemoryBytes != nil {
		p.Field("memory", term.C("about "+term.Bytes(*q.MemoryBytes)))
	}
	p.Space()
	t := term.NewTable(term.Column{Name: "STATE"}, term.Num("TASKS"))
	for _, s := range inspect.States {
		t.Row(term.C(s.String()), term.Amount(held(q).Size(s), stateStyle(s)))
	}
	p.Table(t)
	if q.Suspects > 0 {
		p.Say(term.C(term.Count(q.Suspects, "pending task")+
			" died with a worker lately: they run with few others or alone", term.Yellow))
	}
	p.Space()
	t = term.NewTable(term.Column{Name: "TODAY (UTC)"}, term.Num("RUNS"))
	for _, c := range countsOf(&q.Today) {
		t.Row(term.C(c.name), term.Amount(c.n, c.style))
	}
	p.Table(t)
}

// stateStyle is the colour of tasks in a state.
func stateStyle(s state.Task) term.Style {
	switch s {
	case state.Archived:
		return term.Red
	case state.Retry, state.Parked:
		return term.Yellow
	case state.Active:
		return term.Green
	default:
		return term.Plain
	}
}

// named is a count with its name.
type named struct {
	name  string
	n     int64
	style term.Style
}

// countsOf lists counts; those that are rarely other than 0 only if they are.
func countsOf(c *inspect.Counts) []named {
	all := []named{
		{"processed", c.Processed, term.Plain},
		{"failed", c.Failed, term.Red},
		{"retried", c.Retried, term.Yellow},
		{"archived", c.Archived, term.Red},
	}
	for _, rare := range []named{
		{"expired", c.Expired, term.Yellow},
		{"snoozed", c.Snoozed, term.Plain},
		{"canceled", c.Canceled, term.Plain},
		{"parked", c.Parked, term.Yellow},
		{"lost", c.Lost, term.Yellow},
		{"swept", c.Swept, term.Yellow},
		{"trimmed", c.Trimmed, term.Plain},
	} {
		if rare.n > 0 {
			all = append(all, rare)
		}
	}
	return all
}
