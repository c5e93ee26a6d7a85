package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/godelayed/delayed/cmd/delayed/internal/term"
	"github.com/godelayed/delayed/inspect"
	"github.com/godelayed/delayed/inspect/call"
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// shownCall is the call, or why there is none.
func shownCall(t *document.Task) string {
	switch {
	case t.Call != "":
		return t.Call
	case t.Function != "":
		return inspect.ShortName(t.Function) + "(…)"
	default:
		return t.Problem
	}
}

// when is what matters about the time of a task in its state.
func when(t *document.Task, now time.Time) string {
	ago := func(at *time.Time) string {
		if at == nil {
			return ""
		}
		return term.Ago(*at, now)
	}
	switch stateOf(t.State) {
	case state.Active:
		if t.StartedAt != nil {
			return "runs for " + term.Duration(max(now.Sub(*t.StartedAt), 0))
		}
		if t.ClaimedAt != nil {
			return "claimed " + ago(t.ClaimedAt)
		}
	case state.Scheduled, state.Retry, state.Aggregating:
		if t.Due != nil {
			return "due " + ago(t.Due)
		}
	case state.Pending:
	default:
		if t.At != nil {
			return t.State + " " + ago(t.At)
		}
	}
	if t.EnqueuedAt != nil {
		return "enqueued " + ago(t.EnqueuedAt)
	}
	return ""
}

// why is the reason for the state of a task.
func why(t *document.Task) term.Cell {
	switch cell := term.Why(t.Reason, t.Error); {
	case t.Error != "":
		return cell
	case t.Problem != "" && t.Function != "" && t.SizeBytes > 0: // of what has ended, less may be kept on purpose
		return term.C(t.Problem, term.Red)
	case cell.Text == "" && t.State == state.Active.String():
		return term.C(t.Worker, term.Dim)
	default:
		return cell
	}
}

// showTaskCommand shows tasks.
func (a *app) showTaskCommand() *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use: "show ID", Aliases: []string{"inspect"}, Short: "Show everything that is known of a task",
		RunE: func(cmd *cobra.Command, args []string) error { return a.showTask(cmd.Context(), args[0], queue) },
	}
	a.queueFlag(cmd, &queue, "queue of the task; without it, all queues are searched")
	return cmd
}

// queueFlag adds the flag --queue.
func (a *app) queueFlag(cmd *cobra.Command, queue *string, help string) {
	cmd.Flags().StringVarP(queue, "queue", "q", "", help)
	a.completeFlag(cmd, "queue", a.completeQueues)
}

func (a *app) showTask(ctx context.Context, id, queue string) error {
	return show(ctx, a, printFound, func(ctx context.Context) (document.Found, error) {
		tasks, err := a.find(ctx, id, queue)
		return document.FoundOf(tasks), err
	})
}

func printFound(p *term.Page, v *document.Found) {
	for i := range v.Tasks {
		p.Space()
		printTask(p, &v.Tasks[i])
	}
}

func printTask(p *term.Page, t *document.Task) {
	p.Line(term.C(shownCall(t), term.Bold))
	p.Field("id", term.C(t.ID))
	p.Field("queue", term.C(t.Queue))
	p.Field("state", term.C(t.State, term.StateStyle(stateOf(t.State))))
	p.Field("reason", term.C(string(t.Reason)))
	p.Field("function", term.C(t.Function))
	p.Field("problem", term.C(t.Problem, term.Red))
	at := func(name string, when *time.Time) {
		if when != nil {
			p.Field(name, term.C(term.Moment(*when, p.Now)))
		}
	}
	at("enqueued", t.EnqueuedAt)
	at(term.DueName(stateOf(t.State)), t.Due)
	at("claimed", t.ClaimedAt)
	at("started", t.StartedAt)
	at("began", t.BeganAt)
	at("first failed", t.FirstFailed)
	at("since", t.At)
	attempt := strconv.Itoa(t.Attempt)
	if t.Options != nil && t.Options.MaxRetry != nil {
		attempt += fmt.Sprintf(" of %d", *t.Options.MaxRetry+1)
	}
	p.Field("attempt", term.C(attempt))
	if t.Deaths > 0 {
		p.Field("deaths", term.C(term.Count(t.Deaths, "worker")+" died with it", term.Red))
	}
	p.Field("worker", term.C(t.Worker))
	p.Field("options", term.C(strings.Join(term.OptionTexts(t.Options), ", ")))
	for _, key := range sorted(t.Headers) {
		p.Field("header", term.C(key+"="+t.Headers[key]))
	}
	p.Field("size", term.C(term.Bytes(int64(t.SizeBytes))))
	if g := t.Progress; g != nil {
		text := term.Number(g.Done) + " of " + term.Number(g.Total)
		if g.Note != "" {
			text += ": " + g.Note
		}
		p.Field("progress", term.C(text, term.Green))
	}
	if t.Result != nil {
		text, err := call.JSON(t.Result)
		if err == nil {
			p.Field("result", term.C(string(text), term.Green))
		}
	}
	for _, f := range t.Failures {
		text := fmt.Sprintf("attempt %d, %s, on %s: %s", f.Attempt, term.Moment(f.At, p.Now), f.Worker, f.Error)
		p.Field("failed", term.C(text, term.Red))
	}
	p.Text("error", term.C(t.Error, term.Red))
	p.Text("stack", term.C(t.Stack))
}

// find returns the tasks with an id, in one queue or in all.
func (a *app) find(ctx context.Context, id, queue string) ([]inspect.Task, error) {
	if id == "" {
		return nil, usagef("the id is empty: expected that of a task")
	}
	var tasks []inspect.Task
	var err error
	if queue == "" {
		tasks, err = a.ins.Find(ctx, id)
	} else {
		if err := a.known(ctx, queue); err != nil {
			return nil, err
		}
		tasks = make([]inspect.Task, 1)
		tasks[0], err = a.ins.Task(ctx, queue, id)
	}
	if errors.Is(err, inspect.ErrNotFound) {
		err = fmt.Errorf("%w: expected a whole id; delayed tasks ls --id lists those with a beginning", err)
	}
	if err != nil {
		return nil, err
	}
	return tasks, nil
}

// findOne is find for a task that must be in one queue.
func (a *app) findOne(ctx context.Context, id, queue string) (inspect.Task, error) {
	tasks, err := a.find(ctx, id, queue)
	if err != nil {
		return inspect.Task{}, err
	}
	if len(tasks) > 1 {
		var queues []string
		for i := range tasks {
			queues = append(queues, tasks[i].Queue)
		}
		return inspect.Task{}, usagef("task %s is in several queues, %s: say which with --queue", quote(id),
			strings.Join(queues, ", "))
	}
	return tasks[0], nil
}
