package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/document"
)

func (a *app) workerCommand() *cobra.Command {
	var queues []string
	list := func(cmd *cobra.Command, _ []string) error {
		return a.showWorkers(cmd.Context(), printWorkers, func(ctx context.Context) ([]inspect.Worker, error) {
			return a.ins.Workers(ctx, queues...)
		})
	}
	one := func(cmd *cobra.Command, args []string) error {
		write := func(p *term.Page, v *document.Workers) { printWorker(p, &v.Workers[0]) }
		return a.showWorkers(cmd.Context(), write, func(ctx context.Context) ([]inspect.Worker, error) {
			workers, err := a.ins.Workers(ctx, queues...)
			if err != nil {
				return nil, err
			}
			w, err := oneWorker(workers, args[0])
			if err != nil {
				return nil, err
			}
			return []inspect.Worker{*w}, nil
		})
	}
	flag := func(cmd *cobra.Command) *cobra.Command {
		cmd.Flags().StringSliceVarP(&queues, "queue", "q", nil, "only workers of these queues")
		a.completeFlag(cmd, "queue", a.completeQueues)
		return cmd
	}
	cmd := flag(listOrOne(&cobra.Command{
		Use: "workers", Aliases: []string{"worker", "w", "servers"},
		Short:             "List workers and what each of them has claimed; pause, quiet, stop one",
		ValidArgsFunction: a.completeWorkers,
	}, list, one))
	cmd.AddCommand(
		flag(&cobra.Command{
			Use: "ls", Aliases: []string{"list"}, Short: "List workers and what each of them has claimed", RunE: list,
		}),
		&cobra.Command{Use: "show WORKER", Short: "Show a worker and what it has claimed", RunE: one},
		a.orderCommand("pause WORKER...", "Let workers claim no more tasks until resume; what runs goes on", "paused",
			inspect.OrderPause),
		a.orderCommand("resume WORKER...", "End a pause of workers", "resumed", inspect.OrderResume),
		a.orderCommand("quiet WORKER...", "Let workers claim no more tasks for good; what runs goes on", "quieted",
			inspect.OrderQuiet),
		a.orderCommand("stop WORKER...", "Let workers finish what runs and stop", "stopping",
			inspect.OrderStop),
	)
	return cmd
}

// showWorkers shows workers with what they have claimed.
func (a *app) showWorkers(
	ctx context.Context, write func(*term.Page, *document.Workers),
	read func(context.Context) ([]inspect.Worker, error),
) error {
	return show(ctx, a, write, func(ctx context.Context) (document.Workers, error) {
		workers, err := read(ctx)
		if err != nil {
			return document.Workers{}, err
		}
		return document.ReadWorkers(ctx, a.ins, workers)
	})
}

// oneWorker finds a worker by its id or the beginning of it.
func oneWorker(workers []inspect.Worker, id string) (found *inspect.Worker, err error) {
	for i := range workers {
		w := &workers[i]
		switch {
		case w.ID == id:
			return w, nil
		case !strings.HasPrefix(w.ID, id):
		case found != nil:
			return nil, usagef("worker %s: several ids begin like that: write more of it", quote(id))
		default:
			found = w
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w: worker %s: expected the id of a living one, or its beginning; delayed workers "+
			"lists them", errNotFound, quote(id))
	}
	return found, nil
}

func printWorkers(p *term.Page, v *document.Workers) {
	if len(v.Workers) == 0 {
		p.Line(term.C("No workers.", term.Dim))
		return
	}
	t := term.NewTable(term.Column{Name: "WORKER"}, term.Column{Name: "HOST", Flex: true}, term.Spare("PID", 2),
		term.Column{Name: "STATE"}, term.Num("CLAIMS"), term.Spare("MEMORY", 4),
		term.Column{Name: "QUEUES", Flex: true}, term.Spare("UP", 3),
		term.Column{Name: "VERSION", Optional: true, Drop: 5},
		term.Column{Name: "PROGRAM", Optional: true, Flex: true, Drop: 1},
		term.Column{Name: "RUNS LONGEST", Optional: true, Flex: true, Drop: 6})
	for i := range v.Workers {
		w := &v.Workers[i]
		var names []string
		for _, q := range w.Queues {
			names = append(names, q.Name)
		}
		up := ""
		if w.StartedAt != nil && w.Alive {
			up = term.Duration(max(p.Now.Sub(*w.StartedAt), 0))
		}
		t.Row(term.C(w.ID[:min(len(w.ID), briefID)], term.Bold), term.C(w.Host), term.C(strconv.Itoa(w.PID)),
			term.Condition(w.Condition), term.Claims(w.Claims, w.Concurrency),
			memory(w.MemoryBytes), term.C(strings.Join(names, " ")), term.C(up, term.Dim), term.C(w.Version),
			term.C(w.Program), term.C(longest(w, p.Now)))
	}
	p.Table(t)
	for i := range v.Workers {
		printClaims(p, &v.Workers[i])
	}
}

// briefID is how much of an id lists of workers show. Commands take the beginning of an id for it.
const briefID = 12

// printWorker shows one worker.
func printWorker(p *term.Page, w *document.Worker) {
	p.Field("worker", term.C(w.ID, term.Bold))
	if w.Host != "" {
		p.Field("host", term.C(w.Host+", process "+strconv.Itoa(w.PID)))
	}
	p.Field("state", term.Condition(w.Condition))
	p.Field("claims", term.Claims(w.Claims, w.Concurrency))
	for _, q := range w.Queues {
		life := "dead there"
		if q.AliveSeconds > 0 {
			life = "alive for " + term.Duration(term.Seconds(q.AliveSeconds))
		}
		p.Field("queue", term.C(q.Name+", "+term.Count(q.Claims, "claim")+", "+life))
	}
	p.Field("order", term.C(w.Order))
	p.Field("program", term.C(w.Program))
	p.Field("version", term.C(w.Version))
	if w.StartedAt != nil {
		p.Field("started", term.C(term.Moment(*w.StartedAt, p.Now)))
	}
	if w.MemoryBytes > 0 {
		p.Field("memory", memory(w.MemoryBytes))
	}
	if len(w.Running) > 0 {
		p.Space()
		p.Line(term.C("Runs for more than a second", term.Dim))
		t := term.NewTable(term.Column{Name: "QUEUE", Drop: 1}, term.Column{Name: "ID", Optional: true},
			term.Column{Name: "FUNCTION", Flex: true}, term.Num("FOR"))
		for _, r := range w.Running {
			t.Row(term.C(r.Queue), term.C(term.Clip(r.ID, mostID)), term.C(r.Function),
				term.C(term.Duration(max(p.Now.Sub(r.StartedAt), 0)), term.Green))
		}
		p.Table(t)
		if w.MoreRunning > 0 {
			p.Line(term.C("and "+term.Number(w.MoreRunning)+" more", term.Dim))
		}
	}
	printClaims(p, w)
}

// longest is the task that has run for longest.
func longest(w *document.Worker, now time.Time) string {
	if w.Longest == nil {
		return ""
	}
	return inspect.ShortName(w.Longest.Function) + " " + term.Duration(max(now.Sub(w.Longest.StartedAt), 0))
}

// memory is how much memory a process takes.
func memory(bytes int64) term.Cell {
	if bytes == 0 {
		return term.C("-", term.Dim)
	}
	return term.C(term.Bytes(bytes))
}

// printClaims lists what a worker has claimed.
func printClaims(p *term.Page, w *document.Worker) {
	if len(w.Tasks) == 0 {
		return
	}
	p.Space()
	p.Line(term.C(term.Clip(w.ID, mostID), term.Bold), term.C(" has claimed", term.Dim))
	t := term.NewTable(term.Column{Name: "QUEUE", Drop: 2}, term.Column{Name: "ID", Optional: true},
		term.Column{Name: "CALL", Flex: true}, term.Column{Name: "SINCE", Drop: 1},
		term.Column{Name: "PROGRESS", Optional: true, Flex: true})
	for i := range w.Tasks {
		task := &w.Tasks[i]
		progress := term.C("")
		if g := task.Progress; g != nil {
			progress = term.C(fmt.Sprintf("%d/%d %s", g.Done, g.Total, g.Note), term.Green)
		}
		t.Row(term.C(task.Queue), term.C(term.Clip(task.ID, mostID)), term.C(shownCall(task)),
			term.C(when(task, p.Now), term.Dim), progress)
	}
	p.Table(t)
}

// orderCommand gives workers an order.
func (a *app) orderCommand(use, short, done string, order inspect.Order) *cobra.Command {
	return a.verb(use, nil, short, done, func(ctx context.Context, id string) error {
		workers, err := a.ins.Workers(ctx)
		if err != nil {
			return err
		}
		w, err := oneWorker(workers, id)
		if err != nil {
			return err
		}
		if !w.Alive() {
			return fmt.Errorf("%w: worker %s is dead; a sweeper will give back what it has claimed", errNotFound, w.ID)
		}
		return a.ins.OrderWorker(ctx, w.ID, order)
	})
}
