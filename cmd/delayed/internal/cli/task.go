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
	"github.com/godelayed/delayed/inspect/document"
	"github.com/godelayed/delayed/state"
)

// optionTexts writes options as words.
func optionTexts(o *document.Options) (texts []string) {
	add := func(name, value string) { texts = append(texts, name+" "+value) }
	span := func(name string, seconds float64) {
		if seconds > 0 {
			add(name, term.Duration(time.Duration(seconds*float64(time.Second))))
		}
	}
	moment := func(name string, t *time.Time) {
		if t != nil {
			add(name, t.Format(time.RFC3339))
		}
	}
	if o.MaxRetry != nil {
		add("max-retry", strconv.Itoa(*o.MaxRetry))
	}
	span("timeout", o.TimeoutSeconds)
	moment("deadline", o.Deadline)
	moment("expires", o.Expiry)
	moment("retry-until", o.RetryUntil)
	for _, s := range o.BackoffSeconds {
		span("backoff", s)
	}
	span("max-backoff", o.MaxBackoffSeconds)
	span("retention", o.RetentionSeconds)
	span("keep-result", o.KeepResultSeconds)
	if o.Lock != "" {
		add("lock", o.Lock)
	}
	if o.Group != "" {
		add("group", o.Group)
	}
	return texts
}

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

// when says what matters about the time of a task in its state.
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

// why says why a task is where it is.
func why(t *document.Task) term.Cell {
	switch {
	case t.Error != "" && t.Reason != "" && t.Reason != state.ReasonFailed:
		return term.C(string(t.Reason)+": "+t.Error, term.Red)
	case t.Error != "":
		return term.C(t.Error, term.Red)
	case t.Problem != "" && t.Function != "" && t.SizeBytes > 0: // of what has ended, less may be kept on purpose
		return term.C(t.Problem, term.Red)
	case t.Reason != "" && t.Reason != state.ReasonCompleted:
		return term.C(string(t.Reason), term.Yellow)
	case t.State == state.Active.String():
		return term.C(t.Worker, term.Dim)
	}
	return term.C("")
}

// showTaskCommand shows tasks.
func (a *app) showTaskCommand() *cobra.Command {
	var queue string
	cmd := &cobra.Command{
		Use: "show ID", Aliases: []string{"inspect"}, Short: "Show everything that is known of a task",
		Args: exactly("ID"), ValidArgsFunction: a.completeIDs,
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

// foundView is the tasks that have an id: one in each queue at most.
type foundView document.Found

func (a *app) showTask(ctx context.Context, id, queue string) error {
	return a.show(ctx, func(ctx context.Context) (view, error) {
		tasks, err := a.find(ctx, id, queue)
		v := foundView(document.FoundOf(tasks))
		return &v, err
	})
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
		if _, err := a.queue(ctx, queue); err != nil {
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
