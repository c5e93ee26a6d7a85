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

// workersView is a list of workers.
type workersView document.Workers

func (a *app) workerCommand() *cobra.Command {
	var queues []string
	list := func(cmd *cobra.Command, _ []string) error { return a.listWorkers(cmd.Context(), "", queues) }
	flag := func(cmd *cobra.Command) *cobra.Command {
		cmd.Flags().StringSliceVarP(&queues, "queue", "q", nil, "only workers of these queues")
		a.completeFlag(cmd, "queue", a.completeQueues)
		return cmd
	}
	cmd := flag(&cobra.Command{
		Use: "workers", Aliases: []string{"worker", "w", "servers"},
		Short: "List workers and what each of them has claimed; pause, quiet, stop one",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) < 2 {
				return nil
			}
			return unknownCommand(cmd, args)
		},
		ValidArgsFunction: a.completeWorkers,
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) == 1 {
			return a.listWorkers(cmd.Context(), args[0], queues)
		}
		return list(cmd, args)
	}
	cmd.AddCommand(
		flag(&cobra.Command{
			Use: "ls", Aliases: []string{"list"}, Short: "List workers and what each of them has claimed", Args: none,
			RunE: list,
		}),
		&cobra.Command{
			Use: "show WORKER", Short: "Show a worker and what it has claimed", Args: exactly("WORKER"),
			ValidArgsFunction: a.completeWorkers,
			RunE: func(cmd *cobra.Command, args []string) error {
				return a.listWorkers(cmd.Context(), args[0], nil)
			},
		},
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

// listWorkers lists workers, only that with an id, or the beginning of one, if it is given.
func (a *app) listWorkers(ctx context.Context, id string, queues []string) error {
	return a.show(ctx, func(ctx context.Context) (view, error) {
		workers, err := a.ins.Workers(ctx, queues...)
		if err != nil {
			return nil, err
		}
		if id != "" {
			w, err := oneWorker(workers, id)
			if err != nil {
				return nil, err
			}
			workers = []inspect.Worker{*w}
		}
		read, err := document.ReadWorkers(ctx, a.ins, workers)
		v := workersView(read)
		return &v, err
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

func (v *workersView) print(p *term.Page) {
	if len(v.Workers) == 0 {
		p.Say(term.C("No workers.", term.Dim))
		return
	}
	t := term.NewTable(term.Column{Name: "WORKER"}, term.Column{Name: "HOST", Flex: true}, number("PID"),
		number("CLAIMS"), spare("MEMORY", 2), term.Column{Name: "QUEUES", Flex: true}, spare("ALIVE FOR", 1),
		term.Column{Name: "STATE", Optional: true})
	for i := range v.Workers {
		w := &v.Workers[i]
		var names []string
		claims, life := 0, 0.0
		for _, q := range w.Queues {
			names = append(names, q.Name)
			claims += q.Claims
			life = max(life, q.AliveSeconds)
		}
		dead := term.C("")
		if !w.Alive {
			dead = term.C("dead", term.Red)
		}
		t.Row(term.C(w.ID, term.Bold), term.C(w.Host), term.C(strconv.Itoa(w.PID)), amount(claims, term.Green),
			memory(w.MemoryBytes), term.C(strings.Join(names, " ")),
			term.C(term.Duration(time.Duration(life*float64(time.Second))), term.Dim), dead)
	}
	p.Table(t)
	for i := range v.Workers {
		printClaims(p, &v.Workers[i])
	}
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
	p.Say(term.C(term.Clip(w.ID, mostID), term.Bold), term.C(" has claimed", term.Dim))
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
func (a *app) orderCommand(
	use, short, text string, order inspect.Order,
) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: some, ValidArgsFunction: a.completeWorkers}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx := cmd.Context()
		if err := a.connect(); err != nil {
			return err
		}
		workers, err := a.ins.Workers(ctx)
		if err != nil {
			return err
		}
		return a.each(&resultView{document.Did{Action: cmd.Name()}, text}, args, func(id string) error {
			w, err := oneWorker(workers, id)
			if err != nil {
				return err
			}
			if !w.Alive() {
				return fmt.Errorf("%w: worker %s is dead; a sweeper will give back what it has claimed", errNotFound,
					w.ID)
			}
			return a.ins.OrderWorker(ctx, w.ID, order)
		})
	}
	return cmd
}
