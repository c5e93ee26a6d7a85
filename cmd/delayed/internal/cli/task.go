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
	"github.com/godelayed/delayed/state"
)

// taskJSON is a task as JSON.
type taskJSON struct {
	Queue       string            `json:"queue"`
	State       string            `json:"state"`
	ID          string            `json:"id"`       // empty if its message carries none
	Function    string            `json:"function"` // its path
	Call        string            `json:"call"`     // the call as code, clipped and escaped
	Python      bool              `json:"python"`
	Args        []any             `json:"args"`             // bytes are in base64, structs are objects
	Kwargs      map[string]any    `json:"kwargs,omitempty"` // of a Python function
	Headers     map[string]string `json:"headers,omitempty"`
	SizeBytes   int               `json:"size_bytes"`
	Options     *optionsJSON      `json:"options,omitempty"`
	EnqueuedAt  *time.Time        `json:"enqueued_at"`      // by the producer's clock
	Due         *time.Time        `json:"due"`              // of parked, archived and completed tasks their end
	Attempt     int               `json:"attempt"`          // which attempt the next or present run is
	Deaths      int               `json:"deaths"`           // workers that died with it, in the last 72 h
	Worker      string            `json:"worker,omitempty"` // that has it, or had it last
	ClaimedAt   *time.Time        `json:"claimed_at,omitempty"`
	Reason      string            `json:"reason,omitempty"` // why it is in its state
	At          *time.Time        `json:"at,omitempty"`     // when the reason became known
	FirstFailed *time.Time        `json:"first_failed_at,omitempty"`
	BeganAt     *time.Time        `json:"began_at,omitempty"` // when the successful run began
	Error       string            `json:"error,omitempty"`
	Stack       string            `json:"stack,omitempty"`    // of its last panic
	Failures    []attemptJSON     `json:"failures,omitempty"` // its last attempts that failed, oldest first
	Result      any               `json:"result,omitempty"`   // of a completed task
	Progress    *progressJSON     `json:"progress,omitempty"`
	Problem     string            `json:"problem,omitempty"` // why its function or arguments are missing
}

// attemptJSON is an attempt that has failed.
type attemptJSON struct {
	Attempt int       `json:"attempt"` // 1 for the first
	At      time.Time `json:"at"`      // when it ended
	Worker  string    `json:"worker"`
	Error   string    `json:"error"`
	Stack   string    `json:"stack,omitempty"`
}

// progressJSON is the last progress that a task has reported.
type progressJSON struct {
	Done  int64  `json:"done"`
	Total int64  `json:"total"`
	Note  string `json:"note"`
}

// optionsJSON are the options of a task as JSON.
type optionsJSON struct {
	MaxRetry          *int       `json:"max_retry,omitempty"`
	TimeoutSeconds    float64    `json:"timeout_seconds,omitempty"`
	Deadline          *time.Time `json:"deadline,omitempty"`
	Expiry            *time.Time `json:"expiry,omitempty"`
	RetryUntil        *time.Time `json:"retry_until,omitempty"`
	BackoffSeconds    []float64  `json:"backoff_seconds,omitempty"`
	MaxBackoffSeconds float64    `json:"max_backoff_seconds,omitempty"`
	RetentionSeconds  float64    `json:"retention_seconds,omitempty"`
	KeepResultSeconds float64    `json:"keep_result_seconds,omitempty"`
	Lock              string     `json:"lock,omitempty"`
	Group             string     `json:"group,omitempty"`
}

// taskOf describes a task.
func taskOf(t *inspect.Task) taskJSON {
	j := taskJSON{
		Queue: t.Queue, State: t.State.String(), ID: t.ID, Function: t.Function, Call: t.Call, Python: t.Python,
		Args: []any{}, Headers: t.Headers, SizeBytes: t.Size, EnqueuedAt: stamp(t.EnqueuedAt), Due: stamp(t.Due),
		Attempt: t.Attempt, Deaths: t.Deaths, Worker: t.Worker, ClaimedAt: stamp(t.Claimed), Reason: t.Reason,
		At: stamp(t.At), FirstFailed: stamp(t.FirstFailed), BeganAt: stamp(t.Began), Error: t.Error, Stack: t.Stack,
		Result: call.Plain(t.Result), Problem: t.Problem, Options: optionsOf(&t.Options),
	}
	for _, arg := range t.Args {
		j.Args = append(j.Args, call.Plain(arg))
	}
	for _, f := range t.Failures {
		j.Failures = append(j.Failures, attemptJSON{f.Attempt, f.At, f.Worker, f.Error, f.Stack})
	}
	if len(t.Kwargs) > 0 {
		j.Kwargs, _ = call.Plain(t.Kwargs).(map[string]any)
	}
	if t.Done != 0 || t.Total != 0 || t.Note != "" {
		j.Progress = &progressJSON{t.Done, t.Total, t.Note}
	}
	return j
}

func optionsOf(o *inspect.Options) *optionsJSON {
	j := &optionsJSON{
		MaxRetry: o.MaxRetry, TimeoutSeconds: seconds(o.Timeout), Deadline: stamp(o.Deadline),
		Expiry: stamp(o.Expiry), RetryUntil: stamp(o.RetryUntil), MaxBackoffSeconds: seconds(o.RetryCap),
		RetentionSeconds: seconds(o.Retention), KeepResultSeconds: seconds(o.KeepResult), Lock: o.Lock, Group: o.Group,
	}
	for _, d := range o.RetryDelays {
		j.BackoffSeconds = append(j.BackoffSeconds, seconds(d))
	}
	if len(optionTexts(j)) == 0 {
		return nil
	}
	return j
}

// optionTexts writes options as words.
func optionTexts(o *optionsJSON) (texts []string) {
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
func (t *taskJSON) shownCall() string {
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
func (t *taskJSON) when(now time.Time) string {
	ago := func(at *time.Time) string {
		if at == nil {
			return ""
		}
		return term.Ago(*at, now)
	}
	switch stateOf(t.State) {
	case state.Active:
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
func (t *taskJSON) why() term.Cell {
	switch {
	case t.Error != "" && t.Reason != "" && t.Reason != "failed":
		return term.C(t.Reason+": "+t.Error, term.Red)
	case t.Error != "":
		return term.C(t.Error, term.Red)
	case t.Problem != "" && t.Function != "":
		return term.C(t.Problem, term.Red)
	case t.Reason != "" && t.Reason != "completed":
		return term.C(t.Reason, term.Yellow)
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
type foundView struct {
	Tasks []taskJSON `json:"tasks"`
}

func (a *app) showTask(ctx context.Context, id, queue string) error {
	return a.show(ctx, func(ctx context.Context) (view, error) {
		tasks, err := a.find(ctx, id, queue)
		v := &foundView{Tasks: []taskJSON{}}
		for i := range tasks {
			v.Tasks = append(v.Tasks, taskOf(&tasks[i]))
		}
		return v, err
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
